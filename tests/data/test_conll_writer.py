"""Written CoNLL files: what is read back, which bytes stay, and what cannot be written."""

import codecs
import gzip
import os
from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from consilience.data.conll import Chains, read_conll
from consilience.data.conll_writer import write_conll
from consilience.errors import InputError, InputWarning, OutputRefused

QUICK = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
TOKENS = 7


def chains_of(mentions, documents=("d",), entities=None):
    """Chains of rows of document, first and last token, entity."""
    columns = np.array(mentions, int).reshape(-1, 4).T
    return Chains.from_spans(*columns, documents=list(documents), entities=entities)


def spans_of(chains):
    return chains.document.tolist(), chains.start.tolist(), chains.end.tolist()


def mentions_of(chains):
    """Everything but the names of entities: for each document its spans, by entity."""
    found = {}
    for document, start, end, entity in zip(*spans_of(chains), chains.entity.tolist(), strict=True):
        own = found.setdefault(chains.documents[document], {})
        own.setdefault(entity if entity >= 0 else ("none", start, end), []).append((start, end))
    return {document: sorted(entities.values()) for document, entities in found.items()}


def crosses(one, other):
    (first, last), (start, end) = sorted((one, other))
    return first < start <= last < end


@st.composite
def random_chains(draw, non_referring=False):
    """Chains of up to two documents, in which no two mentions of an entity cross."""
    lowest = -1 if non_referring else 0
    rows, spans_of = [], {}
    for _ in range(draw(st.integers(0, 12))):
        document, entity = draw(st.integers(0, 1)), draw(st.integers(lowest, 3))
        span = tuple(sorted((draw(st.integers(0, TOKENS - 1)), draw(st.integers(0, TOKENS - 1)))))
        own = spans_of.setdefault((document, entity), [])
        if entity < 0 or not any(crosses(span, other) for other in own):
            own.append(span)
            rows.append((document, *span, entity if entity < 0 else 4 * document + entity))
    names = draw(st.sampled_from([("3", "0", "10", "7") * 2, tuple(map(str, range(8))), tuple("abcdefgh")]))
    return chains_of(rows, ("one; part 0", "two; part 1"), names)


ROWS = "".join(f"x\t{token}  w{token}   -\n" for token in range(TOKENS))
TEMPLATE = f"#begin document one; part 0\n{ROWS}#end document\n#begin document two; part 1\n{ROWS}#end document\n"
TEMPLATE_UA = "# global.columns = ID FORM IDENTITY REFERENCE\n" + "".join(
    f"# newdoc id = {document}\n" + "".join(f"{token + 1}  w  _  _\n" for token in range(TOKENS))
    for document in ("one; part 0", "two; part 1")
)


def written(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# ---- there and back ----


@QUICK
@given(chains=random_chains())
def test_what_is_written_without_a_template_is_read_back(tmp_path, chains):
    write_conll(chains, tmp_path / "out.conll", force=True)
    read = read_conll(tmp_path / "out.conll")
    assert read.documents.tolist() == chains.documents.tolist()
    assert mentions_of(read) == mentions_of(chains)


@QUICK
@given(chains=random_chains())
def test_what_is_written_to_a_template_is_read_back(tmp_path, chains):
    template = written(tmp_path / "key.conll", TEMPLATE)
    write_conll(chains, tmp_path / "out.conll.gz", template=template, force=True)
    assert mentions_of(read_conll(tmp_path / "out.conll.gz")) == mentions_of(chains)
    # The file just written is as good a template; its own brackets go.
    none = chains_of([], chains.documents.tolist())
    write_conll(none, tmp_path / "none.conll", template=tmp_path / "out.conll.gz", force=True)
    assert (tmp_path / "none.conll").read_text() == TEMPLATE


@QUICK
@given(chains=random_chains(non_referring=True))
def test_conll_ua_keeps_what_refers_to_nothing_and_what_crosses(tmp_path, chains):
    template = written(tmp_path / "key.conllua", TEMPLATE_UA)
    write_conll(chains, tmp_path / "out.conllua", template=template, force=True)
    read = read_conll(tmp_path / "out.conllua")
    assert mentions_of(read) == mentions_of(chains)
    write_conll(read, tmp_path / "again.conllua", template=tmp_path / "out.conllua", force=True)
    assert mentions_of(read_conll(tmp_path / "again.conllua")) == mentions_of(chains)
    if len({*zip(*spans_of(chains), strict=True)}) == chains.num_mentions:
        assert (tmp_path / "again.conllua").read_text() == (tmp_path / "out.conllua").read_text()


@pytest.mark.public_data
def test_litbank_is_its_own_template(tmp_path):
    folder = Path(os.environ["CONSILIENCE_DATA"]) / "litbank"
    chains = read_conll(folder)
    write_conll(chains, tmp_path / "out", template=folder)
    written = sorted((tmp_path / "out").iterdir())
    assert [path.name for path in written] == sorted(path.name for path in folder.iterdir())
    for path in written:
        assert gzip.decompress(path.read_bytes()) == gzip.decompress((folder / path.name).read_bytes())


# ---- the bytes of a template ----


def test_every_byte_stays_but_those_of_the_brackets(tmp_path):
    text = codecs.BOM_UTF8 + (
        "#begin document (d); part 000\r\n# a comment (1)\r\nd 0   Ann     (7\r\nd 1   é \t 7)|(8)  \r\n\r\n"
        "d 2   saw     *\r\nd 3   it      _\r\nd 4   .       (9)\r\n#end document"
    ).encode()
    chains = chains_of([(0, 0, 1, 0), (0, 3, 3, 0), (0, 2, 3, 1)], ["(d); part 000"], ["7", "4"])
    write_conll(chains, tmp_path / "out.conll", template=written(tmp_path / "key.conll", text))
    expected = text.replace(b"7)|(8)", b"7)").replace(b"saw     *", b"saw     (4").replace(b"(9)", b"*")
    assert (tmp_path / "out.conll").read_bytes() == expected.replace(b"it      _", b"it      4)|(7)")


def test_an_empty_last_column_stays_empty(tmp_path):
    text = "#begin document d\nd\tAnn\t_\t(7)\nd\tsaw\t_\t\nd\tit\t_\t\n#end document\n"
    write_conll(chains_of([(0, 2, 2, 0)]), tmp_path / "out.conll", template=written(tmp_path / "key.conll", text))
    assert (tmp_path / "out.conll").read_text() == text.replace("(7)", "").replace("it\t_\t", "it\t_\t(0)")


def test_unchanged_cells_keep_the_order_of_their_brackets(tmp_path):
    text = "#begin document d\nd (1|(2|(3)\nd (4)|1)|2)\n#end document\n"
    template = written(tmp_path / "key.conll", text)
    write_conll(read_conll(template), tmp_path / "out.conll", template=template)
    assert (tmp_path / "out.conll").read_text() == text


def test_brackets_of_a_token_are_ends_beginnings_whole(tmp_path):
    mentions = [(0, 0, 2, 1), (0, 1, 2, 2), (0, 2, 3, 3), (0, 2, 4, 4), (0, 2, 2, 5)]
    write_conll(chains_of(mentions), tmp_path / "out.conll")
    assert (tmp_path / "out.conll").read_text().splitlines() == [
        "#begin document d", "d\t0\t(1", "d\t1\t(2", "d\t2\t2)|1)|(4|(3|(5)", "d\t3\t3)", "d\t4\t4)", "#end document"
    ]  # fmt: skip


def test_entities_are_numbered_where_their_names_are_no_numbers(tmp_path):
    mentions = [(0, 1, 1, 0), (0, 0, 0, 1), (1, 0, 0, 2), (1, 1, 1, 3)]
    write_conll(chains_of(mentions, ["a", "b"], ["x", "5", "5", "12"]), tmp_path / "out.conll")
    cells = [line.split("\t")[-1] for line in (tmp_path / "out.conll").read_text().splitlines() if "\t" in line]
    assert cells == ["(0)", "(1)", "(5)", "(12)"]


def test_conll_ua_keeps_ids_and_minimal_spans_of_the_template(tmp_path):
    text = (
        "# global.columns = ID FORM IDENTITY BRIDGING\n# newdoc id = d\n"
        "1\tthe\t(EntityID=1|MarkableID=markable_2|Min=2|SemType=dn|ElementOf=9\tx\n2\tcat\t)\ty\n"
        "2.1\t_\t(EntityID=1|MarkableID=markable_1)\t_\n3\tit\t(EntityID=1|MarkableID=markable_3)\t(MarkableID=3)\n"
    )
    mentions = [(0, 0, 1, 0), (0, 1, 1, 0), (0, 2, 2, -1)]
    template = written(tmp_path / "key.conllua", text)
    write_conll(chains_of(mentions, entities=["6"]), tmp_path / "out.conllua", template=template)
    assert (tmp_path / "out.conllua").read_text().splitlines()[2:] == [
        "1\tthe\t(EntityID=6|MarkableID=markable_2|Min=2\tx",
        "2\tcat\t)(EntityID=6|MarkableID=markable_4)\ty",
        "2.1\t_\t_\t_",
        "3\tit\t(EntityID=7-Pseudo|MarkableID=markable_3)\t(MarkableID=3)",
    ]


# ---- warnings and errors ----


def test_what_cannot_be_written_is_counted(tmp_path):
    template = written(tmp_path / "key.conll", TEMPLATE)
    with pytest.warns(InputWarning, match="1 of 2 documents of the template"):
        write_conll(chains_of([], ["one; part 0"]), tmp_path / "out.conll", template=template)
    with pytest.warns(InputWarning, match="refer to nothing; left out: 2 mentions"):
        write_conll(chains_of([(0, 0, 0, -1), (0, 1, 1, -1), (0, 2, 2, 0)]), tmp_path / "out.conll", force=True)
    assert read_conll(tmp_path / "out.conll").start.tolist() == [2]


@pytest.mark.parametrize("second", [(0, 1, 3, 0), (0, 2, 3, 0)])
def test_crossing_mentions_of_one_entity_are_refused(tmp_path, second):
    with pytest.raises(InputError, match=f"entity 0 in the document 'd' cross or touch.*0 to 2, and {second[1]} to 3"):
        write_conll(chains_of([(0, 0, 2, 0), second]), tmp_path / "out.conll")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("mentions", "documents", "words"),
    [
        ([(1, 0, 0, 0)], ["four", "three"], "the template has no document of the chains.*four"),
        ([(1, 0, TOKENS, 0)], ["one; part 0", "two; part 1"], "'two; part 1' has 7 tokens here, and .* token 7;"),
    ],
)
def test_templates_that_do_not_fit_are_refused_before_anything_is_written(tmp_path, mentions, documents, words):
    folder = tmp_path / "key"
    folder.mkdir()
    one, two = TEMPLATE.split("#begin document two")
    written(folder / "a.conll", one)
    written(folder / "b.conll", f"#begin document two{two}")
    with pytest.raises(InputError, match=words):
        write_conll(chains_of(mentions, documents), tmp_path / "out", template=folder)
    assert not (tmp_path / "out").exists()
    written(folder / "c.conll", one)
    with pytest.raises(InputError, match="c.conll, line 1: the document 'one; part 0' is also in .*a.conll"):
        write_conll(chains_of([], ["two; part 1"]), tmp_path / "out", template=folder)


def test_a_template_may_have_some_of_the_documents(tmp_path):
    template = written(tmp_path / "key.conll", "#begin document one\nx -\n#end document\n")
    both = chains_of([(0, 0, 0, 0), (1, 0, 0, 1)], ["one", "two"])
    with pytest.warns(InputWarning, match="1 of 2 documents of the chains are not in the template"):
        write_conll(both, tmp_path / "out.conll", template=template)
    assert read_conll(tmp_path / "out.conll").documents.tolist() == ["one"]


def test_crossing_mentions_of_one_entity_can_be_left_out(tmp_path):
    chains = chains_of([(0, 0, 2, 0), (0, 1, 3, 0), (0, 2, 4, 0), (0, 1, 3, 1), (0, 5, 6, 0)])
    with pytest.warns(InputWarning, match="left out: 2 mentions"):
        write_conll(chains, tmp_path / "out.conll", crossing="drop")
    found = read_conll(tmp_path / "out.conll")
    assert list(zip(found.start.tolist(), found.end.tolist(), strict=True)) == [(0, 2), (1, 3), (5, 6)]


def test_a_file_that_cannot_be_written_leaves_the_others_as_they_were(tmp_path):
    folder, out = tmp_path / "key", tmp_path / "out"
    folder.mkdir()
    for name in ("a", "b"):
        written(folder / f"{name}.conll", f"#begin document {name}\nx (1)\n#end document\n")
    (out / "b.conll").mkdir(parents=True)
    written(out / "a.conll", "old")
    with pytest.raises(OutputRefused, match="b.conll is not a regular file"):
        write_conll(read_conll(folder), out, template=folder, force=True)
    assert (out / "a.conll").read_text() == "old"
    assert sorted(path.name for path in out.iterdir()) == ["a.conll", "b.conll"]


def test_paths_that_cannot_be_written_to(tmp_path):
    chains = chains_of([(0, 0, 0, 0)])
    with pytest.raises(InputError, match="files ending in '.csv' are not read as CoNLL"):
        write_conll(chains, tmp_path / "out.csv")
    with pytest.raises(OutputRefused, match="is not a regular file"):
        write_conll(chains, tmp_path, force=True)
    written(tmp_path / "key.conll", TEMPLATE)
    with pytest.raises(OutputRefused, match="key.conll is not a folder"):
        write_conll(chains, tmp_path / "key.conll", template=tmp_path)
    with pytest.raises(OutputRefused, match="key.conll is not a folder; make it first"):
        write_conll(chains, tmp_path / "key.conll/out.conll")


@pytest.mark.parametrize("into_folder", [False, True])
def test_a_template_is_never_replaced(tmp_path, into_folder):
    template = written(tmp_path / "key.conll", TEMPLATE)
    given, out = (tmp_path, tmp_path) if into_folder else (template, template)
    with pytest.raises(OutputRefused, match="key.conll is an input of this command"):
        write_conll(chains_of([(0, 0, 0, 0)], ["one; part 0"]), out, template=given, force=True)
    assert template.read_text() == TEMPLATE


@pytest.mark.parametrize("name", ["", " d", "two\nlines", "\ud800", "#d"])
def test_names_that_cannot_stand_in_a_file(tmp_path, name):
    with pytest.raises(InputError, match="1 problem"):
        write_conll(chains_of([(0, 0, 0, 0)], [name]), tmp_path / "out.conll")


def test_chains_that_are_no_chains(tmp_path):
    with pytest.raises(InputError, match="two documents have the same name"):
        write_conll(chains_of([], ["d", "d"]), tmp_path / "out.conll")
    with pytest.raises(InputError, match="'d' has no tokens"):
        write_conll(chains_of([(0, 2, 1, 0)]), tmp_path / "out.conll")
    with pytest.raises(InputError, match="went through JAX"):
        write_conll(jax.tree.map(np.asarray, chains_of([(0, 0, 0, 0)])), tmp_path / "out.conll")


def test_an_existing_file_is_replaced_and_keeps_the_usual_permissions(tmp_path):
    path = written(tmp_path / "out.conll", "old")
    ordinary = path.stat().st_mode
    with pytest.raises(OutputRefused, match="out.conll exists; .*force=True"):
        write_conll(chains_of([(0, 0, 0, 0)]), path)
    write_conll(chains_of([(0, 0, 0, 0)]), path, force=True)
    assert read_conll(path).num_mentions == 1
    assert path.stat().st_mode == ordinary
