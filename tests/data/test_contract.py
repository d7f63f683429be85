"""What all contracts share: columns, ids by dimension, and the symmetries that follow from their declarations."""

import functools
import re
from pathlib import Path

import jax
import numpy as np
import pytest

import consilience as cs
from consilience.data import Annotations, Constraints, Mentions, Rankings, Ratings, Records
from consilience.data.contract import Contract
from consilience.errors import UnknownName, UnsupportedRequest

LABELS = {"item": ["b", "a", "b"], "annotator": ["x", "x", "y"], "label": ["no", "yes", "no"]}
DATA = {
    Annotations: lambda: cs.read_annotations(LABELS),
    Ratings: lambda: cs.read_ratings({**LABELS, "rating": [1.0, 2.0, 4.0]}),
    Rankings: lambda: cs.read_rankings(
        {
            "item": ["b", "b", "a", "b", "b"], "annotator": ["x", "x", "x", "y", "y"],
            "class": ["p", "q", "q", "q", "r"], "rank": [1, 2, 1, 1, 1],
        }
    ),
    Mentions: lambda: cs.read_mentions(
        {
            "mention_id": ["m2", "m1", "m2", "m3"], "annotator_id": ["x", "x", "y", "y"],
            "annotation": ["DO(m1)", "DN", "DN", "PR(m1)"], "gold": ["DO(m1)", "DN", "DO(m1)", ""],
            "document_id": ["d", "d", "d", "d"], "start": [5, 1, 5, 8], "end": [6, 2, 6, 8],
        }
    ),
    Records: lambda: cs.read_records(
        {
            "left": {"id": ["r1", "r2"], "name": ["ann", "bob"], "city": ["ulm", ""], "entity": ["1", "2"]},
            "right": {"id": ["r3"], "name": ["ann"], "city": ["jena"], "entity": ["1"]},
        },
        entity="entity",
    ),
    Constraints: lambda: cs.read_constraints(
        {"expert": ["x", "x", "y"], "item_a": ["a", "c", "b"], "item_b": ["b", "a", "c"], "answer": [1, 0, 1]},
        features={"item": ["a", "b", "c"], "size": [1.0, 2.0, 4.0], "age": [3.0, 5.0, 1.0]},
    ),
}  # fmt: skip
IDS = {
    Annotations: {"item": ["b", "a"], "annotator": ["x", "y"], "label": ["no", "yes"], "class": ["no", "yes"]},
    Ratings: {"item": ["b", "a"], "annotator": ["x", "y"]},
    Rankings: {"item": ["b", "a"], "annotator": ["x", "y"], "class": ["p", "q", "r"]},
    Mentions: {
        "mention": ["m2", "m1", "m3"], "annotator": ["x", "y"], "document": ["d"], "class": ["DN", "DO", "NR", "PR"],
    },
    Records: {
        "record": ["r1", "r2", "r3"], "field": ["name", "city"], "file": ["left", "right"],
        "known_entity": ["1", "2"],
    },
    Constraints: {"expert": ["x", "y"], "item": ["a", "b", "c"], "feature": ["size", "age"]},
}  # fmt: skip

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.InputWarning")


@pytest.fixture(params=DATA, ids=lambda contract: contract.__name__)
def contract(request) -> type[Contract]:
    return request.param


def test_ids_by_dimension(contract):
    ids = DATA[contract]().ids
    assert {dimension: names.tolist() for dimension, names in ids.items()} == IDS[contract]


def test_a_copy_that_went_through_jax_has_no_ids(contract):
    data = DATA[contract]()
    moved = jax.tree.map(np.asarray, data)
    assert jax.jit(lambda one: one)(data).counts == moved.counts == data.counts
    assert set(moved.ids) <= {"class"}  # the types of mentions are nobody's ids
    with pytest.raises(KeyError):
        moved.ids["item"]


# ---- columns ----


def test_the_guide_names_every_column_and_reader(contract):
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "data.md").read_text(encoding="utf-8")
    (line,) = [line for line in guide.splitlines() if line.startswith("|") and f"`cs.{contract.reader}`" in line]
    words = set(re.findall(r"\w+", line.replace("an id,", "id")))
    assert {column.name for column in contract.columns} <= words
    assert getattr(cs, contract.reader) == contract.read


# ---- sizes and shapes ----


def test_what_readers_make_fits_its_declaration(contract):
    data = DATA[contract]()
    assert data.problem() is None
    for name, (dimensions, codes) in contract._axes().items():
        if getattr(data, name) is None:
            continue
        longer = np.repeat(getattr(data, name), 2, axis=0)
        assert data.replace(**{name: longer}).problem().startswith(f"'{name}' has the shape")
        if codes:
            past = np.full_like(getattr(data, name), data.size_of(codes))
            found = data.replace(**{name: past}).problem()
            assert re.fullmatch(f"'{name}' has codes outside (0|-1) to {data.size_of(codes) - 1}", found)
        assert None not in map(data.size_of, dimensions)


def test_an_empty_contract_has_its_sizes_and_no_row(contract):
    data = DATA[contract]()
    sizes = {name: getattr(data, name) for name in contract.names("size") if name != f"num_{contract.rows}s"}
    empty = contract.empty(**sizes)
    assert {name: getattr(empty, name) for name in sizes} == sizes
    assert getattr(empty, f"num_{contract.rows}s") == 0
    for name, (dimensions, _) in contract._axes().items():
        if (array := getattr(empty, name)) is not None:
            assert np.shape(array) == tuple(map(empty.size_of, dimensions))
    assert contract.empty().counts == dict.fromkeys(data.counts, 0)


# ---- symmetries ----


def statement(data):
    """Return what data say in the users' own ids, as lines that do not depend on codes or on the order of rows."""
    ids = data.ids
    named = {dimension: names.tolist() for dimension, names in ids.items()}

    def name(dimension, code):
        return None if code < 0 else named[dimension][code]

    if isinstance(data, Records):
        rows = [
            (name("record", i), name("file", data.source[i]), name("known_entity", data.entity[i]),
             *sorted((field, data.column(field)[i]) for field in data.fields))
            for i in range(data.num_records)
        ]  # fmt: skip
    elif isinstance(data, Rankings):
        of_report = [[] for _ in range(data.num_reports)]
        for report, block, entry in zip(data.report, data.block, data.entry, strict=True):
            assert data.entry_item[entry] == data.report_item[report]
            of_report[report].append((int(block), name("class", data.entry_class[entry])))
        rows = [
            (name("item", i), name("annotator", a), *sorted(ranked))
            for i, a, ranked in zip(data.report_item, data.report_annotator, of_report, strict=True)
        ]
    elif isinstance(data, Mentions):
        of_mention = [
            (name("mention", i), name("document", data.document[i]), int(data.start[i]), int(data.end[i]),
             int(data.gold_type[i]), name("mention", data.gold_antecedent[i]))
            for i in range(data.num_mentions)
        ]  # fmt: skip
        rows = [
            (name("mention", m), name("annotator", a), int(t), name("mention", to))
            for m, a, t, to in zip(data.mention, data.annotator, data.type, data.antecedent, strict=True)
        ] + of_mention
    elif isinstance(data, Constraints):
        rows = [
            (name("expert", e), *sorted((name("item", a), name("item", b))), int(together))
            for e, a, b, together in zip(data.expert, data.item_a, data.item_b, data.together, strict=True)
        ] + [
            (name("item", i), name("feature", f), data.feature[i, f])
            for i in range(data.num_items) for f in range(data.num_features)
        ]  # fmt: skip
    else:
        said = data.label if isinstance(data, Annotations) else data.rating
        rows = [
            (name("item", i), name("annotator", a), name("label", value) if isinstance(data, Annotations) else value)
            for i, a, value in zip(data.item, data.annotator, said, strict=True)
        ]
        if isinstance(data, Annotations) and data.gold is not None:
            rows += [(name("item", i), "gold", name("label", code)) for i, code in enumerate(data.gold)]
    return sorted(map(repr, rows))


def assert_is_as_read(data):
    """Check the orders that readers leave, on which models rely."""
    if isinstance(data, Rankings):
        again = Rankings.from_codes(
            data.report_item, data.report_annotator, data.report, data.block, data.entry_class[data.entry],
            items=data.items, annotators=data.annotators, classes=data.classes,
        )  # fmt: skip
        assert again.fingerprint() == data.fingerprint()
    if isinstance(data, Records):
        assert (np.diff(data.source) >= 0).all()
    if isinstance(data, Constraints):
        assert (data.item_a < data.item_b).all()


def renameable(contract):
    fixed = {"class"} if contract in (Mentions, Annotations) else set()  # labels are renamed as labels
    return sorted({*IDS[contract]} - fixed)


@pytest.mark.parametrize(
    ("contract", "dimension"),
    [(contract, dimension) for contract in DATA for dimension in renameable(contract)],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_things_keep_their_ids_and_all_that_is_said_of_them_when_they_are_renamed(contract, dimension):
    data = DATA[contract]()
    size = len(data.ids[dimension])
    order = np.roll(np.arange(size), 1)  # of two, the other one; of three, no swap, which would be its own inverse
    renamed = data.renamed(dimension, order)
    if dimension != "record":  # records stand in the order of their files
        assert renamed.ids[dimension].tolist() == data.ids[dimension][np.argsort(order)].tolist()
        assert renamed.renamed(dimension, np.argsort(order)).ids[dimension].tolist() == data.ids[dimension].tolist()
    assert statement(renamed) == statement(data)
    assert_is_as_read(renamed)
    if size > 1:
        assert renamed.fingerprint() != data.fingerprint()
    assert renamed.counts == data.counts


def test_rows_in_another_order_say_the_same(contract):
    data = DATA[contract]()
    number = data.size_of(data.rows)
    order = np.roll(np.arange(number), 1)
    other = data.reordered(order)
    assert statement(other) == statement(data)
    assert_is_as_read(other)
    if contract is not Rankings and contract is not Records:  # which keep their items, and their files, together
        for name, (dimensions, _) in contract._axes().items():
            if dimensions == (contract.rows,) and contract is not Constraints:
                assert np.array_equal(getattr(other, name), getattr(data, name)[order]), name


def test_every_row_so_many_times(contract):
    data = DATA[contract]()
    more = data.repeated(3)
    assert_is_as_read(more)
    assert more.size_of(more.rows) == 3 * data.size_of(data.rows) == getattr(more, f"num_{contract.rows}s")
    if contract is Records:
        assert len(set(more.records)) == 9
        assert sorted(more.column("name")) == sorted(3 * data.column("name").tolist())
        return
    assert set(statement(more)) == set(statement(data))
    said, once = statement(more), statement(data)
    per_thing = [line for line in once if said.count(line) == 1]
    assert len(said) == 3 * (len(once) - len(per_thing)) + len(per_thing)
    assert {dimension: names.tolist() for dimension, names in more.ids.items()} == IDS[contract]


def test_labels_are_the_classes_of_annotations():
    data = cs.read_annotations({**LABELS, "gold": ["no", "yes", "no"]})
    first, second = data.renamed("label", [1, 0]), data.renamed("class", [1, 0])
    assert first.fingerprint() == second.fingerprint()
    assert first.label.tolist() == [1, 0, 1]
    assert first.gold.tolist() == [1, 0]
    assert first.labels.tolist() == ["yes", "no"]


def test_codes_stay_when_there_are_no_ids(contract):
    data = DATA[contract]()
    dimension = {Records: "file", Constraints: "expert"}.get(contract, "annotator")
    named, bare = (one.renamed(dimension, [1, 0]) for one in (data, jax.tree.map(np.asarray, data)))
    assert dimension not in bare.ids
    for one, two in zip(jax.tree.leaves(bare), jax.tree.leaves(named), strict=True):
        assert np.array_equal(one, two)


def test_what_is_no_permutation_is_refused(contract):
    data = DATA[contract]()
    with pytest.raises(UnknownName, match="have no dimension 'nothing'"):
        data.renamed("nothing", [0])
    dimension = next(iter(data.ids))
    for wrong in ([0], [0, 0], [1, 2], [0, 0, 1], np.arange(len(data.ids[dimension]) + 1)):
        with pytest.raises(UnsupportedRequest, match="each once"):
            data.renamed(dimension, wrong)


def test_pairs_that_may_be_linked_move_with_their_records():
    data = DATA[Records]().with_candidates({"record_a": ["r3", "r1"], "record_b": ["r2", "r2"]})
    other = data.renamed("record", [1, 0, 2])
    assert {tuple(sorted(pair)) for pair in other.records[other.candidate]} == {("r1", "r2"), ("r2", "r3")}
    assert (other.candidate[:, 0] < other.candidate[:, 1]).all()
    assert np.array_equal(other.candidate, np.unique(other.candidate, axis=0))
    with pytest.raises(UnsupportedRequest, match="after repeating"):
        data.repeated(2)


# ---- as tables

TABLES = {
    cs.read_annotations: {
        "item": ["b", "a", "a"], "annotator": ["x", "x", "y"], "label": ["1", "2", "1"], "gold": ["1", None, None],
    },
    cs.read_ratings: {"item": ["a", "b"], "annotator": ["x", "y"], "rating": [0.5, 2.0]},
    cs.read_rankings: {"item": ["a"] * 3, "annotator": ["x"] * 3, "class": ["p", "q", "r"], "rank": [1, 1, 2]},
    cs.read_mentions: {"mention_id": ["m", "n"], "annotator_id": ["x", "x"], "annotation": ["DN", "DO(m)"]},
    cs.read_records: {"id": ["r", "s"], "name": ["Ann", None], "town": ["Ulm", "Bonn"]},
    cs.read_predictions: {"item": ["a", "a", "b"], "class": ["p", "q", "q"], "rank": [1, 2, 1]},
    cs.read_partition: {"record": ["r", "s"], "entity": ["1", "1"]},
    cs.read_class_map: {"class": ["p", "q"], "group": ["1", "2"]},
    cs.read_verdicts: {"item": ["a", "a"], "system": ["A", "A"], "annotator": ["x", "y"], "label": [1, 0]},
}  # fmt: skip


@pytest.mark.parametrize("read", TABLES)
def test_data_as_a_frame_are_read_as_they_were(read):
    data = read(TABLES[read])
    frame = data.to_pandas()
    assert read(frame).fingerprint() == data.fingerprint()
    assert set(TABLES[read]) <= set(frame)
    assert len(data) == data.num_items if read is cs.read_predictions else len(frame)
    assert "<table>" in data._repr_html_()


def test_answers_and_chains_as_frames():
    answers = cs.example("answers.csv").to_pandas()
    assert set(answers["answer"]) == {"together", "apart"}
    pairs = {"expert": ["x"] * 3, "item_a": list("aab"), "item_b": list("bcc")}
    read = functools.partial(cs.read_constraints, grades=3, dont_know="informative")
    data = read({**pairs, "answer": ["1", "3", "?"], "order": [0, 1, 1]})
    assert data.to_pandas()["answer"].tolist() == ["1", "3", "dont_know"]
    assert "<td>dont_know</td>" in data._repr_html_()
    assert read(data.to_pandas()).fingerprint() == data.fingerprint()
    chains = cs.Chains.from_spans([0, 0], [0, 2], [1, 2], [0, -1], documents=["news"]).to_pandas().fillna("")
    assert chains.values.tolist() == [["news", 0, 1, "0"], ["news", 2, 2, ""]]


def test_what_a_notebook_shows_is_escaped():
    hostile = "<script>alert(1)</script>"
    labels = {"item": [hostile] * 9, "annotator": list("abcdefghi"), "label": ["&", "<b>", "&"] * 3}
    data = cs.read_annotations(labels)
    fit = cs.fit("dirichlet", data, draws=20)
    system = cs.Predictions.from_lists([["&"]], items=[hostile], classes=["&", "<b>"], name=hostile)
    for shown in (data, fit, cs.certainty(fit), cs.compare(fit, {hostile: system}), cs.agreement(data)):
        html = shown._repr_html_()
        assert "<script" not in html
        assert "<b>&lt;" not in html.replace("<td>&lt;b&gt;", "")
        assert html.count("<tr>") <= 6
