"""CoNLL-UA files: what is read from good ones, what is left out, and what is said of bad ones."""

import pytest

from consilience.data.conll import read_conll
from consilience.errors import InputError, InputWarning

# Made by hand after the test cases of the scorer of Universal Anaphora: spaces, and the last column missing once.
GOOD = """# global.columns = ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC IDENTITY BRIDGING DISCOURSE_DEIXIS REFERENCE NOM_SEM
# newdoc id = one
# sent_id = one-1
# text = Ann Lee 's cat
1     Ann  _  _  _  _  _  _  _  _  (EntityID=1|MarkableID=markable_2|Min=4|SemType=dn(EntityID=2|MarkableID=markable_1|Min=1,2  _  _  _  _
2     Lee  _  _  _  _  _  _  _  _  _  _  _  _
3     's   _  _  _  _  _  _  _  _  )  _  _  _  _
4     cat  _  _  _  _  _  _  _  _  )(EntityID=1|MarkableID=markable_3|SemType=do)  _  _  _  _

# sent_id = one-2
5     It   _  _  _  _  _  _  _  _  (EntityID=3-Pseudo|MarkableID=markable_4|SemType=expletive)  _  _  _  _
6     rains  _  _  _  _  _  _  _  _  _  _  _  _  _

# newdoc id = two
1     They  _  _  _  _  _  _  _  _  (EntityID=1|MarkableID=markable_1)  _  _  _  _
"""  # noqa: E501

SHORT = "# global.columns = ID FORM IDENTITY\n# newdoc id = d\n"


def written(tmp_path, text, name="key.CONLLUA"):
    path = tmp_path / name
    path.write_text(text)
    return path


def rows(*cells):
    return SHORT + "".join(f"{number}\tx\t{cell}\n" for number, cell in enumerate(cells, 1))


def spans(chains):
    return list(zip(chains.start.tolist(), chains.end.tolist(), chains.entity.tolist(), strict=True))


def test_mentions_of_conll_ua(tmp_path):
    chains = read_conll(written(tmp_path, GOOD))
    assert chains.documents.tolist() == ["one", "two"]
    assert chains.document.tolist() == [0, 0, 0, 0, 1]
    # Entity 1 of one document is not entity 1 of the other; the entity of "it" is none.
    assert spans(chains) == [(0, 3, 0), (0, 2, 1), (3, 3, 0), (4, 4, -1), (0, 0, 2)]
    assert chains.entities.tolist() == ["1", "2", "1"]


def test_tabs_keep_words_with_spaces_whole(tmp_path):
    text = SHORT + "1\tNew York\t(EntityID=1|MarkableID=m1\n2\tis\t)\n3\ta\t\n"
    assert spans(read_conll(written(tmp_path, text))) == [(0, 1, 0)]


def test_markables_that_cross_end_by_name(tmp_path):
    text = rows("(EntityID=1|MarkableID=m1", "(EntityID=2|MarkableID=m2", "m1)", "m2)")
    assert spans(read_conll(written(tmp_path, text))) == [(0, 2, 0), (1, 3, 1)]


def test_a_span_that_stands_twice_is_kept_twice(tmp_path):
    text = rows("(EntityID=1|MarkableID=m1(EntityID=1|MarkableID=m2", "))")
    assert spans(read_conll(written(tmp_path, text))) == [(0, 1, 0), (0, 1, 0)]


@pytest.mark.parametrize(
    ("text", "left_out", "kept"),
    [
        (
            SHORT + "1\tx\t(EntityID=1|MarkableID=m1)\n1.1\t_\t(EntityID=1|MarkableID=m2)\n1.2\t_\t_\n"
            "2\tx\t(EntityID=1|MarkableID=m3)\n",
            "left out: 1 markables of empty nodes", [(0, 0, 0), (1, 1, 0)],
        ),
        (
            rows("(EntityID=1|MarkableID=m1)", "(EntityID=2|MarkableID=m2)", "(EntityID=1|MarkableID=m1)"),
            "left out: 1 markables of several parts", [(1, 1, 0)],
        ),
        (
            rows("(EntityID=1|MarkableID=m1|ElementOf=3)", "(EntityID=2|MarkableID=m2|ElementOf=3,4)"),
            "left out: 2 split antecedents", [(0, 0, 0), (1, 1, 1)],
        ),
    ],
)  # fmt: skip
def test_what_chains_cannot_hold_is_counted(tmp_path, text, left_out, kept):
    with pytest.warns(InputWarning, match=left_out):
        assert spans(read_conll(written(tmp_path, text))) == kept


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (rows("(EntityID=1|MarkableID=m1", "_"), "line 3", "markable m1 begins here and never ends"),
        (rows("_", ")"), "line 4", "a markable ends that never began"),
        (rows("(EntityID=1|MarkableID=m1", "m2)"), "line 4", "markable m2 ends that never began"),
        (rows("(EntityID=1)"), "line 3", "has no MarkableID"),
        (rows("(EntityId=1|MarkableId=m1)"), "line 3", "has no EntityID and no MarkableID"),
        (rows("(EntityID=1|MarkableID=m1|dn)"), "line 3", "no list of attributes"),
        (rows("(EntityID=|MarkableID=m1)"), "line 3", "no list of attributes"),
        (rows("(EntityID=1|EntityID=2|MarkableID=m1)"), "line 3", "no list of attributes"),
        (rows("(EntityID=1|MarkableID=m1@(EntityID=2|MarkableID=m2)", ")"), "line 3", "no list of attributes"),
        (rows("()"), "line 3", "no list of attributes"),
        (rows("(1)"), "line 3", "no list of attributes"),
        (rows("-"), "line 3", "no list of markables"),
        (rows("(EntityID=1|MarkableID=m1)x"), "line 3", "no list of markables"),
        (rows("(EntityID=1_Pseudo|MarkableID=m1)"), "line 3", "not clear whether this markable refers"),
        (rows("(EntityID=1|MarkableID=m1)", "(EntityID=2|MarkableID=m1)"), "line 4", "parts of markable m1 have diff"),
        (SHORT + "1\tx\ty\t_\n", "line 3", "the row has 4 columns where global.columns names 3"),
        (SHORT + "1 _\n", "line 3", "the row has 2 columns where global.columns names 3"),
        (SHORT + "1-2\tdu\t_\n", "line 3", "neither a token's"),
        (SHORT + "0\t_\t_\n", "line 3", "neither a token's"),
        (SHORT + "1.1\t_\t(EntityID=1|MarkableID=m1\n", "line 3", "at an empty node"),
        (SHORT.replace(" id = d", ""), "line 2", "the document has no name"),
        (SHORT + "# newdoc id = d\n", "line 3", "occurs twice.*line 2"),
        (SHORT.replace("# newdoc id = d", "") + "1\tx\t_\n", "line 3", "outside of documents"),
        (SHORT.replace("IDENTITY", "MISC"), "line 1", "has to name the column IDENTITY once.*CorefUD"),
        (SHORT + "# global.columns = ID IDENTITY\n", "line 3", "columns change within the file"),
        ("# global.columns = ID FORM IDENTITY\n", None, "no line '# newdoc id"),
    ],
)
def test_bad_conll_ua_is_refused_with_its_line(tmp_path, text, line, words):
    with pytest.raises(InputError, match=words) as refused:
        read_conll(written(tmp_path, text))
    assert line is None or line in str(refused.value)
    assert "key.CONLLUA" in str(refused.value)
