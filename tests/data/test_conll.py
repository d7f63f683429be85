"""CoNLL files: what is read from good ones, and what is said of bad ones."""

import gzip

import numpy as np
import pytest

from consilience.data.conll import read_conll
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
    ],
)
def test_bad_files_are_refused_with_their_lines(tmp_path, text, line, words):
    with pytest.raises(InputError, match=words) as refused:
        read_conll(written(tmp_path, text))
    assert line is None or line in str(refused.value)
    assert "key.conll" in str(refused.value)
