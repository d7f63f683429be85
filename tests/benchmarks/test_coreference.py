import numpy as np
import pytest

from benchmarks import coreference
from benchmarks.official_scorer import random_document, write_random
from consilience.data.conll import Chains, read_conll
from consilience.data.conll_writer import write_conll
from consilience.evaluation.coreference_scores import score_coreference


def make_key():
    random = np.random.default_rng(0)
    document = np.repeat([0, 1, 2], 60)
    start = np.tile(np.arange(60) * 2, 3)
    end = start + random.integers(0, 3, size=180)
    return coreference.apart(
        Chains.from_spans(document, start, end, random.integers(9, size=180) + 9 * document, documents=["a", "b", "c"])
    )


def spans(chains):
    columns = (np.asarray(values).tolist() for values in (chains.document, chains.start, chains.end))
    return set(zip(*columns, strict=True))


def test_apart_leaves_no_overlap_in_an_entity_and_the_others_where_they_were():
    document, start, end = np.array([0, 0, 0, 0, 1]), np.array([0, 2, 5, 6, 2]), np.array([4, 3, 5, 9, 3])
    found = coreference.apart(Chains.from_spans(document, start, end, np.array([0, 0, 0, 0, 1]), documents=["a", "b"]))
    of = dict(zip(found.start[:4].tolist(), found.entity[:4].tolist(), strict=True))
    assert of[0] == of[5] == of[6] != of[2]
    assert len(set(found.entity.tolist())) == 3


def test_a_perturbed_key_is_like_the_key_and_can_be_written(tmp_path):
    key = make_key()
    same = coreference.perturbed(key, 0, moved=0, dropped=0, invented=0)
    assert score_coreference(key, same).conll == 1
    response = coreference.perturbed(key, 0)
    assert spans(response) - spans(key)
    assert spans(key) - spans(response)
    assert len(spans(response)) == response.num_mentions
    assert 0.5 < score_coreference(key, response).conll < 1
    write_conll(response, tmp_path / "response.conll")
    assert score_coreference(response, read_conll(tmp_path / "response.conll")).conll == 1
    assert spans(coreference.perturbed(key, 1)) != spans(response)


def test_documents_hold_the_entities_of_both_sides():
    key = make_key()
    response = coreference.perturbed(key, 0)
    documents = coreference._documents(key, response)
    assert [len(one) for one in documents] == [2, 2, 2]
    for side, chains in enumerate((key, response)):
        sizes = sorted(len(entity) for one in documents for entity in one[side])
        assert sizes == sorted(np.bincount(chains.entity).tolist())
    # A score by its definition, from sets.
    for number, (of_key, of_response) in enumerate(documents):
        total = sum(
            len(set(one) & set(other)) ** 2 / len(one) for one in of_key for other in of_response
        ) / sum(map(len, of_key))
        parts = score_coreference(key, response).sums["b3"][:, number]
        assert parts[0] / parts[1] == pytest.approx(total)


def test_random_documents_are_read_as_they_were_drawn(tmp_path):
    random = np.random.default_rng(0)
    for _ in range(50):
        length, mentions = random_document(random, repeated=False)
        write_random(tmp_path / "one.conll", [(length, mentions)])
        read = read_conll(tmp_path / "one.conll")
        assert spans(read) == {(0, start, end) for start, end, _ in mentions}
        assert read.num_mentions == len(mentions)
        assert read.num_entities == len({entity for *_, entity in mentions})
