"""Inverse rank normalisation: worked values to the last digit."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import consilience as cs
from consilience.data import Rankings
from consilience.errors import UnsupportedRequest
from consilience.models.irn import inverse_rank_normalisation

FOUR = [[[[0], [1, 2]], [[1]]]], list("0123")
SIX = [[[[4], [0], [3]], [[0], [3]], [[0, 3]], [[1, 2, 0], [3]]]], list("012345")


def plausibility(nested, classes, weights):
    data = Rankings.from_nested(nested, classes=classes)
    dense = np.zeros((data.num_items, data.num_classes))
    dense[data.entry_item, data.entry_class] = inverse_rank_normalisation(data, weights)
    return dense


@pytest.mark.parametrize(
    ("case", "weights", "numerators", "denominator"),
    [
        (FOUR, "equation-14", (4, 5, 1, 0), 10),
        (FOUR, "published-code", (2, 3, 1, 0), 6),
        (SIX, "equation-14", (14, 2, 2, 11, 6, 0), 35),
        (SIX, "published-code", (21, 6, 6, 14, 6, 0), 53),
    ],
)
def test_worked_plausibilities(case, weights, numerators, denominator):
    expected = [float(Fraction(part, denominator)) for part in numerators]
    np.testing.assert_allclose(plausibility(*case, weights)[0], expected, rtol=4e-16, atol=0)


blocks = st.permutations(range(5)).flatmap(
    lambda order: st.integers(1, 5).flatmap(
        lambda number: st.lists(st.integers(1, number), max_size=3).map(
            lambda cuts: [part.tolist() for part in np.split(np.array(order[:number]), sorted(set(cuts))) if len(part)]
        )
    )
)


@given(st.lists(st.lists(blocks, min_size=1, max_size=4), min_size=1, max_size=3))
def test_sums_of_fractions(nested):
    for weights in ("equation-14", "published-code"):
        computed = plausibility(nested, list("01234"), weights)
        for row, case in zip(computed, nested, strict=True):
            total = [Fraction(0)] * 5
            for report in case:
                for rank, block in enumerate(report, start=1):
                    for class_ in block:
                        total[class_] += Fraction(1, rank * (len(block) if weights == "equation-14" else 1))
            expected = [float(part / sum(total)) for part in total]
            np.testing.assert_allclose(row, expected, rtol=1e-14)


def test_a_point_estimate_is_certain():
    fit = cs.fit("irn", Rankings.from_nested(SIX[0], classes=SIX[1]))
    assert fit.truth.num_draws == 1
    for top in (1, 2, 6):
        score = cs.certainty(fit, top=top)
        assert (score.value, score.sd, score.items.tolist()) == (1, 0, [1])
    assert fit.labels().to_dict("list") == {
        "item": ["0"], "label": ["0"], "probability": [pytest.approx(14 / 35)], "certainty": [1.0]
    }  # fmt: skip


def test_items_that_nobody_ranked_are_named():
    data = Rankings.from_codes([0, 1], [0, 0], [0], [0], [1], items=["seen", "unseen"], num_classes=2)
    with pytest.raises(UnsupportedRequest, match="1 items have no ranked class.*unseen"):
        cs.fit("irn", data)
