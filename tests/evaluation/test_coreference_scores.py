"""Scores of a response against a key: matched mentions, repeated spans, mentions that refer to nothing, and tables."""

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import consilience as cs
from consilience.data import Chains
from consilience.errors import InputError, InputWarning, UnknownName
from consilience.evaluation.chains import BASES as METRICS
from consilience.evaluation.chains import CONLL, bases_of, value_of

OFFICIAL = {"muc": "muc", "bcub": "b3", "ceafe": "ceafe", "ceafm": "ceafm", "blanc": "blanc"}


def chains(rows, documents=("d",)):
    """Make chains of ``(document, start, end, entity)``; entities are told apart by document and name, None is none."""
    named = sorted({(row[0], row[3]) for row in rows if row[3] is not None})
    codes = {name: code for code, name in enumerate(named)}
    entity = [codes.get((row[0], row[3]), -1) for row in rows]
    columns = [np.array([row[place] for row in rows], int) for place in range(3)]
    return Chains.from_spans(*columns, np.array(entity, int), documents=list(documents))


def of_letters(text, document=0):
    """Return rows, a token for each letter: equal ones are one entity, ``-`` refers to nothing, ``.`` is no mention."""
    return [
        (document, place, place, None if letter == "-" else letter)
        for place, letter in enumerate(text)
        if letter != "."
    ]


def f1(scores):
    return {metric: 100 * scores[metric].f1 for metric in (*METRICS, "non-referring")}


# ---- repeated spans ----


@pytest.mark.oracles
@pytest.mark.parametrize(("case", "repeated"), [("TC-A-8", 1), ("TC-A-9", 10)])
def test_a_span_in_two_entities_is_scored_as_by_the_official_scorer(case, repeated, oracles_folder):
    folder = oracles_folder / "coreference"
    official = json.loads((folder / "expected_scores.json").read_text())[case]["official"]
    key = cs.read_conll(folder / "cases" / "TC-A.key")
    response = cs.read_conll(folder / "cases" / f"{case}.response")
    with pytest.warns(InputWarning, match=f"{repeated} mentions? of the response repeat"):
        scores = cs.score_coreference(key, response)
    for name, (_, _, f, recall, precision) in official.items():
        found = scores[OFFICIAL[name]]
        for value, text in ((found.recall, recall), (found.precision, precision)):
            part, whole = map(float, text.split("/"))
            assert value == pytest.approx(part / whole, abs=1e-9), name
        assert abs(100 * found.f1 - f) < 0.0101, name


def test_of_a_repeated_span_of_the_response_the_first_entity_counts():
    """Key a a b b; the response has the second mention in the entity of the first one and in that of the others."""
    key, right = chains(of_letters("aabb")), chains(of_letters("aabb"))
    twice = chains([*of_letters("aabb"), (0, 1, 1, "b")])
    with pytest.warns(InputWarning, match="1 mentions of the response repeat .* the first of its entities counts"):
        scores = cs.score_coreference(key, twice)
    for metric in METRICS:
        assert scores[metric] == cs.score_coreference(key, right)[metric]


def test_the_first_entity_is_that_of_the_earlier_mention_and_not_of_the_lower_code():
    rows = [(0, 0, 0, "z"), (0, 1, 1, "z"), (0, 1, 1, "a"), (0, 2, 2, "a")]
    with pytest.warns(InputWarning, match="repeat"):
        scores = cs.score_coreference(chains(of_letters("zza")), chains(rows))
    assert scores.conll == cs.score_coreference(chains(of_letters("zza")), chains(of_letters("zza"))).conll


@pytest.mark.parametrize(("long", "short"), ["ab", "ba"])
def test_of_entities_that_begin_together_that_of_one_token_is_the_first(long, short):
    rows = [(0, 0, 1, long), (0, 3, 3, long), (0, 0, 0, short), (0, 3, 3, short), (0, 9, 9, short)]
    with pytest.warns(InputWarning, match="repeat"):
        scores = cs.score_coreference(chains([(0, 3, 3, "k"), (0, 9, 9, "k")]), chains(rows))
    assert scores.sums["muc"][0, 0] == 1


def test_a_repeated_span_of_the_key_is_kept_and_the_last_has_the_responses():
    """Key {0 1} {1 2}, of which 1 stands in both; response {0 1}, {1 2} and {0 1 2}."""
    key = chains([(0, 0, 0, "a"), (0, 1, 1, "a"), (0, 1, 1, "b"), (0, 2, 2, "b")])
    found = {}
    for text in ("aa.", ".bb", "aaa"):
        with pytest.warns(InputWarning, match="1 mentions of the key repeat .* they are kept"):
            found[text] = cs.score_coreference(key, chains(of_letters(text)))
    assert [found[text].sums["muc"][:2, 0].tolist() for text in found] == [[0, 2], [1, 2], [1, 2]]
    assert [found[text].sums["mentions"][0, 0] for text in found] == [2, 2, 3]
    # How much entities have in common counts the mention in both: 1 · 2/2 + 1 · 1/2 of four, and two are aligned.
    assert found["aa."].sums["b3"][:2, 0].tolist() == [1.5, 4]
    assert found["aa."].sums["ceafm"][:2, 0].tolist() == [2, 4]


@pytest.mark.parametrize(
    ("text", "official"), [("aaa", (50.0, 33.33, 40.0)), ("aab", (50.0, 100.0, 66.66)), ("abbb", (50.0, 50.0, 48.57))]
)
def test_blanc_of_a_key_that_repeats_a_span_counts_pairs_of_spans(text, official):
    """Key {0 1} {1 2}: two pairs corefer, and four do not, of which two also corefer and one is of 1 with itself."""
    key = chains([(0, 0, 0, "a"), (0, 1, 1, "a"), (0, 1, 1, "b"), (0, 2, 2, "b")])
    with pytest.warns(InputWarning, match="1 mentions of the key repeat"):
        found = cs.score_coreference(key, chains(of_letters(text)))["blanc"]
    assert 100 * np.array([found.recall, found.precision, found.f1]) == pytest.approx(official, abs=0.0101)


def test_a_repeated_span_that_the_key_lacks_stays_twice():
    key, response = chains(of_letters("aa")), chains([*of_letters("aa"), (0, 5, 5, "a"), (0, 5, 5, "b")])
    scores = cs.score_coreference(key, response)
    assert scores.sums["mentions"][:, 0].tolist() == [2, 2, 2, 4]


@pytest.mark.parametrize("token", [0, 6])
@pytest.mark.parametrize("side", ["key", "response"])
def test_of_a_span_that_also_refers_to_nothing_the_entity_counts(side, token):
    """The entity is the first in the text, or the second, after many mentions of the first."""
    plain = chains(of_letters("aaaaabb"))
    both = chains([*of_letters("aaaaabb"), (0, token, token, None)])
    with pytest.warns(InputWarning, match=f"1 mentions of the {side} repeat"):
        scores = cs.score_coreference(both, plain) if side == "key" else cs.score_coreference(plain, both)
    assert scores["muc"].f1 == 1
    assert scores["b3"].f1 == 1


# ---- mentions that refer to nothing ----


def toy():
    """Key and response of "It rains today, John greets Mary, he …": It and today refer to nothing, or It and Mary."""
    return chains(of_letters("--jmj")), chains(of_letters("-tj-j"))


def test_mentions_that_refer_to_nothing():
    scores = cs.score_coreference(*toy())
    assert scores["non-referring"] == (0.5, 0.5, 0.5)
    found = f1(scores)
    assert found["muc"] == 100
    assert found["b3"] == pytest.approx(200 / 3)
    assert found["ceafe"] == 50
    assert found["lea"] == pytest.approx(200 / 3)
    assert 100 * scores.conll == pytest.approx(72.22, abs=0.005)


def test_the_entities_of_the_toy_agree_without_singletons():
    scores = cs.score_coreference(*toy(), singletons=False)
    assert [scores[metric].f1 for metric in ("mentions", "muc", "b3", "ceafe", "ceafm", "lea")] == [1] * 6
    assert scores.conll == 1
    assert scores["non-referring"] == (0.5, 0.5, 0.5)
    assert not scores.singletons


def test_recall_and_precision_of_what_refers_to_nothing():
    scores = cs.score_coreference(chains(of_letters("---a-")), chains(of_letters("-bbb.")))
    assert scores["non-referring"].recall == 1 / 4
    assert scores["non-referring"].precision == 1


def test_the_files_of_the_toy_are_read_and_scored(tmp_path):
    """CoNLL-UA files of one token a line."""
    entities = ("E1-Pseudo", "E2-Pseudo", "E3", "E4", "E3"), ("E1-Pseudo", "E2", "E3", "E4-Pseudo", "E3")
    read = []
    for name, column in zip(("key", "response"), entities, strict=True):
        lines = ["# global.columns = ID FORM IDENTITY", "# newdoc id = d", "# sent_id = d-1"]
        cells = [f"(EntityID={entity}|MarkableID=markable_{place})" for place, entity in enumerate(column)]
        lines += [f"{place}\tw\t{cell}" for place, cell in enumerate(cells, 1)]
        path = tmp_path / f"{name}.conllua"
        path.write_text("\n".join(lines) + "\n")
        read.append(cs.read_conll(path))
    scores, by_hand = cs.score_coreference(*read), cs.score_coreference(*toy())
    for metric, values in by_hand.sums.items():
        np.testing.assert_allclose(scores.sums[metric], values, err_msg=metric)


# ---- documents ----


def two_documents():
    return chains([*of_letters("aabb"), *of_letters("ccc", 1)], ["one", "two"])


def test_documents_are_matched_by_name_in_any_order():
    key = two_documents()
    other_order = chains([*of_letters("ccc"), *of_letters("aabb", 1)], ["two", "one"])
    scores = cs.score_coreference(key, other_order)
    assert all(scores[metric].f1 == 1 for metric in METRICS)


def test_a_document_that_the_response_lacks_counts_in_recall():
    with pytest.warns(InputWarning, match="1 documents of the key are not in the response"):
        scores = cs.score_coreference(two_documents(), chains(of_letters("aabb"), ["one"]))
    assert scores["mentions"] == pytest.approx((4 / 7, 1, 8 / 11))
    assert scores["muc"] == pytest.approx((2 / 4, 1, 2 / 3))
    assert scores.by_document["muc"].tolist() == [1, 0]


def test_a_document_that_the_key_lacks_does_not_count():
    with pytest.warns(InputWarning, match="1 documents of the response are not in the key and were left out"):
        scores = cs.score_coreference(chains(of_letters("aabb"), ["one"]), two_documents())
    assert all(scores[metric].f1 == 1 for metric in METRICS)
    assert scores.by_document["document"].tolist() == ["one"]


def test_without_a_common_document_both_are_named():
    with pytest.raises(InputError, match=r"it has 'x' and not 'one', 'two'"):
        cs.score_coreference(two_documents(), chains(of_letters("aabb"), ["x"]))


def test_the_same_span_of_another_document_is_another_mention():
    key = chains([*of_letters("aa"), *of_letters("..bb", 1)], ["one", "two"])
    response = chains([*of_letters("..aa"), *of_letters("bb", 1)], ["one", "two"])
    assert cs.score_coreference(key, response)["mentions"].f1 == 0


def test_an_entity_of_two_documents_is_refused():
    crossing = Chains.from_spans([0, 1], [0, 0], [0, 0], [0, 0], documents=["one", "two"])
    for key, response, side in ((crossing, two_documents(), "key"), (two_documents(), crossing, "response")):
        with pytest.raises(InputError, match=f"1 entities of the {side} have mentions in several documents"):
            cs.score_coreference(key, response)


def test_documents_add_up_before_they_are_divided():
    """MUC recall 1/1 and 0/3: 1/4 of both together, and not the mean of 1 and 0."""
    key = chains([*of_letters("aa"), *of_letters("bbbb", 1)], ["one", "two"])
    response = chains([*of_letters("aa"), *of_letters("bcde", 1)], ["one", "two"])
    scores = cs.score_coreference(key, response)
    assert scores["muc"].recall == 1 / 4
    assert scores.by_document["muc"].tolist() == [1, 0]


# ---- nothing to score ----


@pytest.mark.parametrize("texts", [("", "aab"), ("aab", ""), ("", "")])
def test_of_nothing_every_score_is_zero(texts):
    scores = cs.score_coreference(*(chains(of_letters(text)) for text in texts))
    assert all(scores[metric].f1 == 0 for metric in METRICS)
    assert scores.conll == 0
    assert "conll" in repr(scores)
    assert len(scores.by_document) == 1


def test_singletons_against_themselves():
    """As the official scorer has it: MUC finds no link, all others are right."""
    alone = chains(of_letters("abc"))
    scores = cs.score_coreference(alone, alone)
    assert f1(scores) == {metric: 0 if metric in ("muc", "non-referring") else 100 for metric in f1(scores)}
    assert scores.conll == pytest.approx(2 / 3)
    assert cs.score_coreference(alone, alone, singletons=False).conll == 0


def test_singletons_are_left_out_on_both_sides():
    key, response = chains(of_letters("aabc..")), chains(of_letters("aab.cd"))
    without = cs.score_coreference(key, response, singletons=False)
    assert all(without[metric].f1 == 1 for metric in METRICS if metric != "blanc")
    assert without["mentions"].f1 > cs.score_coreference(key, response)["mentions"].f1


# ---- what is shown ----


def test_the_table_has_a_row_for_each_score():
    scores = cs.score_coreference(*toy())
    table = scores.table.set_index("score")
    assert list(table) == ["recall", "precision", "f1"]
    assert list(table.index) == [*METRICS, "non-referring", "conll"]
    assert [str(dtype) for dtype in table.dtypes] == ["float64"] * 3
    assert table["f1"]["b3"] == pytest.approx(2 / 3)
    assert table["f1"]["conll"] == scores.conll
    assert table.loc["conll", ["recall", "precision"]].isna().all()
    assert isinstance(scores["muc"].f1, float)


def test_what_refers_to_nothing_is_told_only_where_there_is_some():
    scores = cs.score_coreference(chains(of_letters("aab")), chains(of_letters("abb")))
    assert "non-referring" not in scores.table["score"].tolist()
    assert "non-referring" not in scores.by_document
    assert "non-referring" not in repr(scores)
    assert scores["non-referring"].f1 == 0


def test_rows_of_documents_are_the_scores_of_each_by_itself():
    pairs = [("aabb", "abbb"), ("a-ab", "abba"), ("....", "aa.."), ("ab.c", "abc.")]
    documents = [f"d{place}" for place in range(len(pairs))]
    key, response = (
        chains([row for place, pair in enumerate(pairs) for row in of_letters(pair[side], place)], documents)
        for side in (0, 1)
    )
    table = cs.score_coreference(key, response).by_document
    assert table["document"].tolist() == documents
    for (_, row), pair in zip(table.iterrows(), pairs, strict=True):
        alone = cs.score_coreference(*(chains(of_letters(text)) for text in pair))
        assert row["conll"] == pytest.approx(alone.conll)
        for metric in (*METRICS, "non-referring"):
            assert row[metric] == pytest.approx(alone[metric].f1), metric


@pytest.mark.parametrize(("singletons", "said"), [(True, "included"), (False, "excluded")])
def test_it_prints_what_was_counted(singletons, said):
    text = repr(cs.score_coreference(*toy(), singletons=singletons))
    first, head, *rows = text.splitlines()
    assert first.endswith(f"singletons {said}")
    assert ("3 mentions of the key and 3 of the response, 2 in common" in first) == singletons
    assert head.split() == ["recall", "precision", "F1"]
    shown = {row.split()[0]: row.split()[1:] for row in rows}
    assert list(shown) == [*METRICS, "non-referring", "conll"]
    assert shown["b3"] == (["66.67%"] * 3 if singletons else ["100.00%"] * 3)
    assert shown["conll"] == (["72.22%"] if singletons else ["100.00%"])


# ---- names ----


def test_unknown_scores_are_named():
    with pytest.raises(UnknownName, match="'bleu'; there are mentions, muc"):
        cs.score_coreference(*toy())["bleu"]
    for name in ("bleu", "conll-recall", "muc-f1", "MUC", "", "-recall"):
        with pytest.raises(UnknownName, match="write one of these") as error:
            bases_of((name,))
        assert repr(name) in str(error.value)


def test_names_say_which_number_is_meant():
    scores = cs.score_coreference(*toy())
    for metric in (*METRICS, "non-referring"):
        for name, place in ((metric, 2), (f"{metric}-recall", 0), (f"{metric}-precision", 1)):
            added = {one: values.sum(axis=1, keepdims=True) for one, values in scores.sums.items()}
            assert value_of(name, added) == [scores[metric][place]]
    assert bases_of(("conll", "lea-recall", "muc-precision", "lea")) == (*CONLL, "lea")


# ---- any key and response ----


@st.composite
def files(draw):
    """Return rows of a key and a response, in one to three documents; entities do not cross them."""
    num_documents = draw(st.integers(1, 3))
    spans = st.tuples(st.integers(0, num_documents - 1), st.integers(0, 4), st.integers(0, 1))
    sides = []
    for _ in range(2):
        side = draw(st.dictionaries(spans, st.sampled_from(["a", "b", "c", None]), max_size=8))
        sides.append([(document, start, start + more, name) for (document, start, more), name in side.items()])
    return sides, [f"d{place}" for place in range(num_documents)]


def entities(rows, *, singletons):
    groups = {}
    for document, start, end, name in rows:
        if name is not None:
            groups.setdefault((document, name), set()).add((document, start, end))
    return [group for group in groups.values() if singletons or len(group) > 1]


def muc_of(sets, others):
    """Count the links that remain when the others cut each set into parts."""
    kept = sum(
        len(one) - len([1 for other in others if one & other]) - len(one - set().union(*others, set())) for one in sets
    )
    return [kept, sum(len(one) - 1 for one in sets)]


def b3_of(sets, others):
    return [
        sum(len(one & other) ** 2 / len(one) for one in sets for other in others),
        sum(len(one) for one in sets),
    ]


def lea_of(sets, others):
    total = 0.0
    for one in sets:
        links = len(one) * (len(one) - 1) / 2
        found = sum(len(one & other) * (len(one & other) - 1) / 2 for other in others)
        total += len(one) * (found / links if links else float(one in others))
    return [total, sum(len(one) for one in sets)]


@settings(deadline=None, max_examples=80)
@given(files(), st.booleans())
def test_sums_are_those_of_the_definitions(case, singletons):
    (key_rows, response_rows), documents = case
    scores = cs.score_coreference(chains(key_rows, documents), chains(response_rows, documents), singletons=singletons)
    key, response = (entities(rows, singletons=singletons) for rows in (key_rows, response_rows))
    for metric, count in (("muc", muc_of), ("b3", b3_of), ("lea", lea_of)):
        expected = count(key, response) + count(response, key)
        np.testing.assert_allclose(scores.sums[metric].sum(axis=1), expected, atol=1e-9, err_msg=metric)
    own, other = ({row[:3] for row in rows if row[3] is None} for rows in (key_rows, response_rows))
    np.testing.assert_array_equal(
        scores.sums["non-referring"].sum(axis=1), [len(own & other), len(own), len(own & other), len(other)]
    )
    mentions = [set().union(*side, set()) for side in (key, response)]
    common = len(mentions[0] & mentions[1])
    np.testing.assert_array_equal(
        scores.sums["mentions"].sum(axis=1), [common, len(mentions[0]), common, len(mentions[1])]
    )


@settings(deadline=None, max_examples=40)
@given(files())
def test_exchanging_the_sides_exchanges_recall_and_precision(case):
    (key_rows, response_rows), documents = case
    key, response = chains(key_rows, documents), chains(response_rows, documents)
    there, back = cs.score_coreference(key, response), cs.score_coreference(response, key)
    for metric in (*METRICS, "non-referring"):
        if metric != "blanc":  # which counts a kind of pairs only where the key has it
            recall, precision, f = there[metric]
            assert back[metric] == pytest.approx((precision, recall, f)), metric


@settings(deadline=None, max_examples=40)
@given(files())
def test_what_is_scored_against_itself_is_right(case):
    (rows, _), documents = case
    scores = cs.score_coreference(chains(rows, documents), chains(rows, documents))
    sizes = Counter(row[:1] + row[3:] for row in rows if row[3] is not None)
    for metric in ("mentions", "b3", "ceafe", "ceafm", "lea"):
        assert scores[metric].f1 == (1 if sizes else 0)
    assert scores["muc"].f1 == (1 if any(size > 1 for size in sizes.values()) else 0)
