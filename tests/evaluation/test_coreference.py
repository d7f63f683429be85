"""Scores of coreference: the official scorer's cases, cases by hand, draws at once, alignments by brute force."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.data.conll import read_conll
from consilience.evaluation.chains import BASES as METRICS
from consilience.evaluation.chains import conll, score, share, sums
from consilience.evaluation.overlap import overlap

OFFICIAL = {"muc": "muc", "bcub": "b3", "ceafe": "ceafe", "ceafm": "ceafm", "blanc": "blanc"}


def joined(key, response):
    """Return entities on both sides and documents, one column for each span; of a repeated span the first counts."""
    spans = {}
    for side, chains in enumerate((key, response)):
        names = np.asarray(chains.documents)
        for document, start, end, entity in zip(
            names[chains.document], chains.start, chains.end, chains.entity, strict=True
        ):
            sides = spans.setdefault((document, int(start), int(end)), [-1, -1])
            sides[side] = int(entity) if sides[side] < 0 else sides[side]
    documents = {name: code for code, name in enumerate(sorted({span[0] for span in spans}))}
    table = np.array(list(spans.values())).reshape(-1, 2)
    return table[:, :1].T, table[:, 1:].T, np.array([documents[span[0]] for span in spans], int)


def number(text):
    part, whole = map(float, text.split("/"))
    return 0.0 if whole == 0 else part / whole


@pytest.mark.oracles
def test_the_official_scorers_cases(oracles_folder, tmp_path):
    folder = oracles_folder / "coreference"
    expected = json.loads((folder / "expected_scores.json").read_text())
    compared = 0
    for case, scores in expected.items():
        if case in ("TC-A-8", "TC-A-9"):  # a span of the response stands in two entities; see the case below
            continue
        key = read_conll(folder / "cases" / f"{case.rsplit('-', 1)[0]}.key")
        found = overlap(*joined(key, read_conll(folder / "cases" / f"{case}.response")))
        for name, values in scores["official"].items():
            share = score(found, OFFICIAL[name])
            assert share.recall[0] == pytest.approx(number(values[3]), abs=1e-9), (case, name)
            assert share.precision[0] == pytest.approx(number(values[4]), abs=1e-9), (case, name)
            assert abs(100 * share.f1[0] - values[2]) < 0.0101, (case, name)
            compared += 1
        for name, values in scores["coval"].items():
            if name == "lea":
                share = score(found, "lea")
                np.testing.assert_allclose(
                    [100 * share.recall[0], 100 * share.precision[0], 100 * share.f1[0]], values, atol=1e-3,
                    err_msg=case,
                )  # fmt: skip
        for name, values in scores["coval_nosing"].items():
            if name != "ceafm":  # which is broken there: recall up to 600 %
                found_without = overlap(
                    *joined(key, read_conll(folder / "cases" / f"{case}.response")), singletons=False
                )
                share = score(found_without, {**OFFICIAL, "lea": "lea"}[name])
                np.testing.assert_allclose(
                    [100 * share.recall[0], 100 * share.precision[0], 100 * share.f1[0]], values, atol=1e-3,
                    err_msg=f"{case} {name}, singletons excluded",
                )  # fmt: skip
    assert compared == 170


def test_a_case_by_hand():
    """Key {a b c} {d e}, response {a b} {c d e}: LEA by its links, and the rest by counting."""
    key, response = np.array([[0, 0, 0, 1, 1]]), np.array([[0, 0, 1, 1, 1]])
    found = overlap(key, response, np.zeros(5, int))
    assert score(found, "muc").recall[0] == pytest.approx(2 / 3)
    assert score(found, "b3").recall[0] == pytest.approx((4 / 3 + 1 / 3 + 2) / 5)
    assert score(found, "ceafm").recall[0] == pytest.approx(4 / 5)
    assert score(found, "ceafe").recall[0] == pytest.approx((0.8 + 0.8) / 2)
    assert score(found, "lea").recall[0] == pytest.approx((3 * 1 / 3 + 2 * 1) / 5)


def test_nothing_is_scored_zero():
    nothing = np.full((1, 3), -1)
    for key, response in itertools.product((nothing, np.array([[0, 0, 1]])), (nothing,)):
        found = overlap(key, response, np.zeros(3, int))
        for metric in METRICS:
            assert score(found, metric).f1[0] == 0


def test_unequal_numbers_of_draws_are_refused():
    with pytest.raises(ValueError, match="2 draws of the key and 3"):
        overlap(np.zeros((2, 4), int), np.zeros((3, 4), int), np.zeros(4, int))


mentions = st.integers(1, 7)
entities = st.integers(-1, 3)


@st.composite
def draws(draw):
    number_of_mentions, number_of_draws = draw(mentions), draw(st.integers(1, 3))
    sides = [
        np.array(draw(st.lists(st.lists(entities, min_size=number_of_mentions, max_size=number_of_mentions),
                               min_size=rows, max_size=rows)))
        for rows in (1, number_of_draws)
    ]  # fmt: skip
    document = np.sort(draw(st.lists(st.integers(0, 1), min_size=number_of_mentions, max_size=number_of_mentions)))
    # Entities do not cross documents.
    return [np.where(side >= 0, side + 4 * document, -1) for side in sides] + [document]


def best_alignment(key, response, similarity):
    """Return the largest sum over one-to-one alignments, by trying all."""
    few, many = sorted((sorted(set(key) - {-1}), sorted(set(response) - {-1})), key=len)
    swapped = few != sorted(set(key) - {-1}) or len(few) == len(many) and few != sorted(set(key) - {-1})
    best = 0.0
    for chosen in itertools.permutations(many, len(few)):
        pairs = [(other, own) if swapped else (own, other) for own, other in zip(few, chosen, strict=True)]
        best = max(best, sum(similarity(*pair) for pair in pairs))
    return best


@settings(deadline=None, max_examples=60)
@given(draws())
def test_draws_are_scored_as_each_by_itself(case):
    key, response, document = case
    together = overlap(key, response, document)
    for place in range(len(response)):
        alone = overlap(key, response[place : place + 1], document)
        for metric in METRICS:
            assert score(together, metric).f1[place] == pytest.approx(score(alone, metric).f1[0], abs=1e-12)
        assert conll(together)[place] == pytest.approx(conll(alone)[0], abs=1e-12)


@settings(deadline=None, max_examples=60)
@given(draws())
def test_sums_of_documents_add_up(case):
    key, response, document = case
    whole, parts = overlap(key, response, document), overlap(key, response, document, by_document=True)
    for metric in METRICS:
        of_documents = sums(parts, metric)
        added = of_documents.reshape(len(of_documents), len(response), -1).sum(axis=2)
        np.testing.assert_allclose(added, sums(whole, metric), atol=1e-12)
        np.testing.assert_allclose(share(metric, added).f1, score(whole, metric).f1, atol=1e-12)


@settings(deadline=None, max_examples=60)
@given(draws())
def test_the_alignment_is_the_best_of_all(case):
    key, response, document = case
    found = overlap(key, response[:1], document)
    own, other = key[0], response[0]

    def common(k, s):
        return int(np.sum((own == k) & (other == s)))

    def dice(k, s):
        return 2 * common(k, s) / (np.sum(own == k) + np.sum(other == s))

    assert sums(found, "ceafm")[0, 0] == pytest.approx(best_alignment(own, other, common))
    assert sums(found, "ceafe")[0, 0] == pytest.approx(best_alignment(own, other, dice))


@settings(deadline=None, max_examples=60)
@given(draws())
def test_a_response_that_is_the_key_is_right(case):
    _, sides, document = case
    found = overlap(sides[:1], sides[:1], document)
    for metric in METRICS:
        share = score(found, metric)
        if metric != "blanc":
            assert share.f1[0] == pytest.approx(0.0 if sums(found, metric)[1, 0] == 0 else 1.0)
        else:  # of a single mention there is no pair
            assert share.f1[0] == pytest.approx(1.0 if found.pairs[0, 0] else 0.0)
