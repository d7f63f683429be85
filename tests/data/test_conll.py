"""CoNLL files: what is read from good ones, and what is said of bad ones."""

import gzip
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from consilience.data.conll import Chains, read_conll
from consilience.data.conll_text import match_documents
from consilience.errors import InputError

GOOD = """#begin document (news); part 000
news 0 0 Ann (1
news 0 1 Lee 1)|(2)

news 0 2 saw -
news 0 3 her (1)
news 0 4 . _
#end document
#begin document (talk); part 001
talk\t0\tx\t(1(2
talk\t0\ty\t2)1)
#end document
"""


def written(tmp_path, text, name="key.conll"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_mentions_entities_and_documents(tmp_path):
    chains = read_conll(written(tmp_path, GOOD))
    assert (chains.num_documents, chains.num_mentions, chains.num_entities) == (2, 5, 4)
    assert chains.documents.tolist() == ["(news); part 000", "(talk); part 001"]
    spans = np.stack([chains.document, chains.start, chains.end], axis=1).tolist()
    assert spans == [[0, 0, 1], [0, 1, 1], [0, 3, 3], [1, 0, 1], [1, 0, 1]]
    # Entity 1 of one document is not entity 1 of the other.
    assert chains.entity.tolist() == [0, 1, 0, 2, 3]
    assert chains.entities.tolist() == ["1", "2", "1", "2"]


def test_spans_of_one_entity_may_nest_and_cross_those_of_others(tmp_path):
    text = "#begin document d\nd (1\nd (1\nd (2\nd 1)\nd 1)\nd 2)\n#end document\n"
    chains = read_conll(written(tmp_path, text))
    assert list(zip(chains.start.tolist(), chains.end.tolist(), chains.entity.tolist(), strict=True)) == [
        (0, 4, 0), (1, 3, 0), (2, 5, 1)
    ]  # fmt: skip


def test_mentions_are_sorted_longer_ones_first():
    spans = [(0, 2, 2, 1), (1, 0, 0, 2), (0, 0, 1, 1), (0, 0, 4, 0), (0, 0, 1, 0)]
    found = Chains.from_spans(*np.array(spans).T, documents=["one", "two"])
    columns = found.document, found.start, found.end, found.entity
    expected = [(0, 0, 4, 0), (0, 0, 1, 0), (0, 0, 1, 1), (0, 2, 2, 1), (1, 0, 0, 2)]
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == expected


@pytest.mark.parametrize(("names", "known", "codes"), [
    (["Ann", "Bo"], ["(wiki/Bo); part 000", "(wiki/Ann); part 000"], [1, 0]),
    (["Ann"], ["(wiki/Ann); part 000", "(news/Ann); part 000"], [-1]),  # which of two
    (["(wiki/Ann); part 000", "(news/Ann); part 000"], ["Ann"], [-1, -1]),
    (["Ann", "Ann part 001"], ["(wiki/Ann); part 001", "(wiki/Ann); part 000"], [1, 0]),
])  # fmt: skip
def test_documents_are_matched_by_plain_names_that_are_unique(names, known, codes):
    assert match_documents(names, known) == codes


def test_compressed_files(tmp_path):
    path = tmp_path / "key.conll.gz"
    path.write_bytes(gzip.compress(GOOD.encode()))
    assert read_conll(path).num_mentions == 5


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (GOOD.replace("1)|(2)", "(2)"), "line 2", "begins here and never ends"),
        (GOOD.replace("her (1)", "her 1)"), "line 6", "ends that never began"),
        (GOOD.replace("saw -", "saw verb"), "line 5", "no column of brackets"),
        (GOOD.replace("saw -", "saw (1)x"), "line 5", "no column of brackets"),
        (GOOD.removesuffix("#end document\n"), "line 11", "does not end"),
        ("news 0 0 Ann (1)\n" + GOOD, "line 1", "outside of documents"),
        (GOOD.replace("#end document\n#begin", "#begin"), "line 8", "begins before the last one ends"),
        ("\n", None, "no line '#begin document'"),
        (GOOD.replace("(talk); part 001", "(news); part 000"), "line 9", "occurs twice.*key.conll, line 1"),
        ("# newdoc id = d\n# global.Entity = eid-etype\n1\tIt\t_\n", "line 2", "CorefUD"),
    ],
)
def test_bad_conll_2012_is_refused_with_its_line(tmp_path, text, line, words):
    with pytest.raises(InputError, match=words) as refused:
        read_conll(written(tmp_path, text))
    assert line is None or line in str(refused.value)
    assert "key.conll" in str(refused.value)


def test_begin_and_end_may_stand_apart_from_their_sign(tmp_path):
    text = "# begin document d\n0\tan\t(object-1(place-2)\n1\teye\tobject-1)\n# end document\n\n"
    chains = read_conll(written(tmp_path, text))
    assert chains.documents.tolist() == ["d"]
    assert sorted(chains.entities) == ["object-1", "place-2"]


def test_a_document_without_a_name_takes_that_of_its_file(tmp_path):
    path = tmp_path / "GUM_news_one.conll.gz"
    path.write_bytes(gzip.compress(2 * b"# begin document\n0\tan\t(1)\n# end document\n"))
    chains = read_conll(path)
    assert chains.documents.tolist() == ["GUM_news_one", "GUM_news_one/2"]


def test_entities_are_in_the_order_of_their_first_brackets(tmp_path):
    """In a cell those of one token are read first, as by the official scorer."""
    text = "#begin document d\nd\t(9|(7|(8)\nd\t7)|9)\nd\t(2)|(1)\n#end document\n"
    assert read_conll(written(tmp_path, text)).entities.tolist() == ["8", "9", "7", "2", "1"]


def test_an_empty_last_cell_is_no_mention(tmp_path):
    text = "#begin document d\nd\tan\tDT\t(1)\nd\teye\tNN\t\nd\tit\t(1)\t\n#end document\n"
    assert read_conll(written(tmp_path, text)).start.tolist() == [0, 2]


# ---- folders and lists ----


def one_document(name, brackets="(1)"):
    return f"#begin document {name}\nx {brackets}\n#end document\n"


def test_folders_are_read_by_name_and_lists_in_their_order(tmp_path):
    written(tmp_path, one_document("b"), "b.v4_gold_conll")
    (tmp_path / "a.conll.gz").write_bytes(gzip.compress(one_document("a", "(2)").encode()))
    for other in ("README.txt", ".c.conll", "notes.csv"):
        written(tmp_path, "no CoNLL", other)
    (tmp_path / "d.conll").mkdir()
    chains = read_conll(tmp_path)
    assert chains.documents.tolist() == ["a", "b"]
    assert chains.entities[chains.entity].tolist() == ["2", "1"]
    listed = [str(tmp_path / "b.v4_gold_conll"), tmp_path / "a.conll.gz"]
    assert read_conll(listed).documents.tolist() == ["b", "a"]
    assert read_conll(tuple(listed)).document.tolist() == [0, 1]


def test_folders_without_files_and_empty_lists(tmp_path):
    written(tmp_path, one_document("a"), "a.txt")
    with pytest.raises(InputError, match="no CoNLL file in this folder"):
        read_conll(tmp_path)
    with pytest.raises(InputError, match="list of files is empty"):
        read_conll([])
    with pytest.raises(InputError, match="no such file"):
        read_conll([tmp_path / "b.conll"])


def test_problems_of_all_files_are_shown_with_their_files(tmp_path):
    written(tmp_path, one_document("a"), "a.conll")
    written(tmp_path, one_document("b", "(1"), "b.conll")
    written(tmp_path, one_document("a", "1)"), "c.conll")
    with pytest.raises(InputError, match="3 problems") as refused:
        read_conll(tmp_path)
    shown = str(refused.value)
    assert "b.conll, line 2: a mention of entity 1 begins here and never ends" in shown
    assert "c.conll, line 2: a mention of entity 1 ends that never began" in shown
    assert f"c.conll, line 1: the document 'a' occurs twice; it began before in {tmp_path / 'a.conll'}, line 1" in shown


@pytest.mark.public_data
def test_litbank_is_read_from_its_folder():
    chains = read_conll(Path(os.environ["CONSILIENCE_DATA"]) / "litbank")
    assert (chains.num_documents, chains.num_mentions, chains.num_entities) == (100, 29103, 7927)
    sizes = np.bincount(chains.entity)
    assert (sizes[sizes > 1].sum(), (sizes > 1).sum()) == (23340, 2164)


# ---- damaged files ----


@st.composite
def damaged(draw, good):
    """Return a good text with a few bytes changed, or lines left out, repeated, cut or with other columns."""
    text = bytearray(good)
    for _ in range(draw(st.integers(1, 3))):
        lines = bytes(text).splitlines(keepends=True) or [b""]
        place = draw(st.integers(0, len(lines) - 1))
        match draw(st.integers(0, 4)):
            case 0:
                changed = draw(st.integers(0, max(len(text) - 1, 0)))
                text[changed : changed + 1] = bytes([draw(st.integers(0, 255))])
                continue
            case 1:
                del lines[place]
            case 2:
                lines.insert(place, draw(st.sampled_from(lines)))
            case 3:
                lines[place] = b"\t".join(reversed(lines[place].split())) + b"\n"
            case 4:
                lines[place] = lines[place][: draw(st.integers(0, len(lines[place])))]
        text = bytearray(b"".join(lines))
    return bytes(text)


GOOD_UA = """# global.columns = ID FORM IDENTITY BRIDGING
# newdoc id = one
1\tAnn\t(EntityID=1|MarkableID=m1|Min=1\t_
2\tLee\t)(EntityID=2|MarkableID=m2)\t_

3\tit\t(EntityID=3-Pseudo|MarkableID=m3)\t_
# newdoc id = two
1 _ (EntityID=1|MarkableID=m1(EntityID=2|MarkableID=m2|ElementOf=1 _
1.1 _ (EntityID=1|MarkableID=m4) _
2 _ m1)m2) _
"""


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=damaged(GOOD.encode()) | damaged(GOOD_UA.encode()) | damaged(gzip.compress(GOOD.encode()))
    | st.binary(max_size=60),
    name=st.sampled_from(["key.conll", "key.conll.gz"]),
)  # fmt: skip
def test_damaged_files_are_read_or_refused(tmp_path, content, name):
    path = tmp_path / name
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            chains = read_conll(path)
        except InputError:
            return
    assert isinstance(chains, Chains)
    assert (chains.start <= chains.end).all()
    assert (chains.start >= 0).all()
    assert (chains.entity < chains.num_entities).all()
    assert (chains.document < chains.num_documents).all()
