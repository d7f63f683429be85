"""The engine: folds by hand, and the tables of every room hold every kind."""

import numpy as np
import pytest

from consilience.data import Chains, Partition, Predictions
from consilience.errors import UnknownName, UnsupportedRequest
from consilience.evaluation.adjustment import METRICS
from consilience.evaluation.engine import PerUnit, Scoring, Sums, Totals, fold
from consilience.evaluation.unit_sums import UnitSums
from consilience.models.truth.partitions import DrawnPartitions
from consilience.models.truth.truth import KINDS


def scoring(values, *, joint, size):
    """Score what is given, ``(system, part, unit, draw)``, as ratios of the first part to the second, in blocks."""
    systems, parts, units, draws = values.shape

    def blocks():
        for start in range(0, draws if joint else units, size):
            own = slice(start, min(start + size, draws if joint else units))
            if joint:
                yield Sums(slice(0, units), own, values[..., own])
            else:
                yield Sums(own, slice(0, draws), values[:, :, own])

    return Scoring(
        blocks=blocks, values={"ratio": lambda parts, number: parts[0] / parts[1]}, title=lambda *words: "",
        unit="item", num_units=units, num_draws=draws, joint=joint, standard=lambda: None, place=np.arange(units),
        rows=units,
        ids=None, row="item",
    )  # fmt: skip


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("size", [1, 4, 7, 100])
def test_folds_are_sums_by_hand_whatever_the_blocks(joint, size):
    values = np.random.default_rng(0).random((2, 2, 7, 11))
    given = scoring(values, joint=joint, size=size)
    totals, per_unit, units = Totals(given), PerUnit(given, "ratio"), UnitSums(given)
    fold(given, totals, per_unit, units)
    sums, ratios = values.sum(axis=2), values[:, 0] / values[:, 1]
    np.testing.assert_allclose(totals.scores("ratio"), sums[:, 0] / sums[:, 1])
    np.testing.assert_allclose(per_unit.mean, ratios.mean(axis=2))
    np.testing.assert_allclose(per_unit.variance, ratios.var(axis=2, ddof=1))
    # Eleven draws are eleven batches: the error is that of independent draws.
    np.testing.assert_allclose(per_unit.mcse, ratios.std(axis=2, ddof=1) / np.sqrt(11))
    np.testing.assert_allclose(units.sums, sums, rtol=1e-9)
    np.testing.assert_allclose(units.mean, values.mean(axis=3), rtol=1e-9)
    covariance = sum(np.cov(values[:, :, unit].reshape(4, 11)) for unit in range(7))
    np.testing.assert_allclose(units.own_covariance, covariance, rtol=1e-9)


def test_tables_hold_every_kind_and_contracts_bear_its_name():
    assert set(METRICS) == {kind.name for kind in KINDS}
    for kind in KINDS[:3]:
        assert METRICS[kind.name].known(kind.metric)
        assert METRICS[kind.name].maker is not None
    assert {Predictions.kind, Partition.kind, Chains.kind} == {kind.name for kind in KINDS[:3]}


def test_a_metric_of_another_kind_is_told():
    with pytest.raises(UnknownName, match=r"'conll' for items, but for mentions; write one of these.*\n.*\n  top-k"):
        METRICS["classes"].form_of("conll")
    with pytest.raises(UnknownName, match="did you mean 'pairwise-f1'"):
        METRICS["partition"].form_of("pairwise-f2")
    with pytest.raises(UnsupportedRequest, match="read the truth as another kind"):
        METRICS["views"](DrawnPartitions(np.zeros((1, 2), int)), [], [])
