import json
from collections import Counter

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks import agreement_speed, spa
from consilience.evaluation.agreement.counts import LabelCounts
from consilience.evaluation.agreement.sparse_probability import sparse_agreement
from consilience.evaluation.agreement.weighting import SCHEMES, weight_function


def tiny_set(seed=0, name="tiny", num_items=12, num_annotations=60, num_labels=3):
    random = np.random.default_rng(seed)
    # Every item at least once.
    item = np.concatenate([np.arange(num_items), random.integers(0, num_items, num_annotations - num_items)])
    label = np.where(random.random(num_annotations) < 0.6, item % num_labels, random.integers(0, num_labels, len(item)))
    order = random.permutation(num_annotations)
    item, label = item[order], label[order]
    counts = LabelCounts.of_codes(item, label, num_items=num_items, num_labels=num_labels)
    return spa.CrowdSet(name, item, label, counts, 1, 0)


def labels_by_item(data, kept):
    found = {}
    for item, label in zip(data.item[kept], data.label[kept], strict=True):
        found.setdefault(int(item), []).append(int(label))
    return found


def agreement(labels):
    number = len(labels)
    return sum(count * (count - 1) for count in Counter(labels).values()) / (number * (number - 1))


@pytest.mark.parametrize("seed", range(3))
def test_curve_of_every_scheme_equals_recomputation(seed):
    data = tiny_set(seed)
    points = np.array([1, 7, 20, 33, 60])
    place = np.random.default_rng(seed).permutation(len(data.item))
    by_size = spa.Orders(data.item, data.label, points).by_size(place)
    weights = spa.weights_by_size(data.counts, by_size.items.shape[1])
    found = spa.under_schemes(by_size, weights)
    assert found.shape == (len(points), len(SCHEMES))
    for point, row in zip(points, found, strict=True):
        usable = [labels for labels in labels_by_item(data, place < point).values() if len(labels) >= 2]
        for scheme, value in zip(SCHEMES, row, strict=True):
            k = [float(weight_function(scheme, data.counts)(np.array([len(labels)]))[0]) for labels in usable]
            expected = np.dot(k, [agreement(labels) for labels in usable]) / sum(k) if usable else np.nan
            np.testing.assert_allclose(value, expected, rtol=1e-12, err_msg=f"{scheme} at {point}")
    assert np.isnan(found[0]).all()
    assert np.isfinite(found[2:]).all()


def test_sizes_are_counted():
    data = tiny_set()
    points = np.array([10, 40])
    place = np.random.default_rng(3).permutation(len(data.item))
    items = spa.Orders(data.item, data.label, points).by_size(place).items
    for point, row in zip(points, items, strict=True):
        sizes = Counter(len(labels) for labels in labels_by_item(data, place < point).values())
        assert {size: number for size, number in enumerate(row) if number} == sizes


def test_first_annotations_of_items():
    data = tiny_set()
    place = np.random.default_rng(4).permutation(len(data.item))
    found = spa.Orders(data.item, data.label, np.array([60])).after_first(place, 3)
    arrival = np.argsort(place)
    expected = [agreement(labels[:3]) for _, labels in sorted(labels_by_item(data, arrival).items()) if len(labels) > 2]
    np.testing.assert_allclose(found, expected)


def test_growth_ends_in_all_annotations():
    data = tiny_set(num_items=6)
    growth = spa.grow(data, 30, 0)
    assert growth.on_grid.sum() == 20
    assert growth.points[growth.on_grid][[0, -1]].tolist() == [6, 60]
    assert growth.points[growth.third] == 20
    assert growth.usable[-1] == data.counts.size[data.counts.size >= 2].sum()
    for number, scheme in enumerate(SCHEMES):
        whole = sparse_agreement(data.counts.patterns, weight_function(scheme, data.counts)).value
        np.testing.assert_allclose(growth.values[:, -1, number], whole, rtol=1e-12)
    assert growth.flat == pytest.approx(growth.values[0, -1, SCHEMES.index("flat")], rel=1e-12)
    np.testing.assert_allclose(growth.variance[-1], 0, atol=1e-28)
    # Six annotations of six items may leave none with two.
    assert (growth.variance[1:-1] > 0).all()
    budget, values = growth.constant[2]
    assert budget[-1] == 2 * (data.counts.size >= 2).sum()
    assert values.shape == (30, len(budget))


def test_estimated_moments_are_those_of_a_third():
    data = tiny_set()
    growth = spa.grow(data, 1, 5)
    kept = np.random.default_rng(5).permutation(len(data.item)) < 20
    counts = LabelCounts.of_codes(data.item[kept], data.label[kept])
    expected = sparse_agreement(counts.patterns, weight_function("exch", counts)).value
    assert growth.estimated[0] == pytest.approx(expected, rel=1e-12)


def test_summed_variance_is_less_that_of_flat():
    # Variances 4 and 2 of flat, 1 and 1 of annotations_m1, 2 and 2 of edge.
    columns = {"flat": (4, 2), "annotations_m1": (1, 1), "edge": (2, 2)}
    values = np.zeros((2, 2, len(SCHEMES)))
    for scheme, variances in columns.items():
        values[1, :, SCHEMES.index(scheme)] = np.sqrt(2 * np.array(variances))
    found = dict(zip(SCHEMES, spa.summed_variance(values), strict=True))
    assert {scheme: found[scheme] for scheme in columns} == pytest.approx({"flat": 0, "annotations_m1": -4, "edge": -2})
    assert dict(zip(SCHEMES, spa.over_m1(values), strict=True))["edge"] == pytest.approx(0.5)


def test_relative_error_counts_bias():
    np.testing.assert_allclose(spa.relative_error(np.array([[0.4, 0.5], [0.6, 0.7]]), 0.5), [1, 2])


def test_monte_carlo_error_of_a_mean():
    rounds = np.random.default_rng(0).normal(size=(15, 2))
    value, error = spa.with_error(lambda kept: kept.mean(axis=0), rounds)
    np.testing.assert_allclose(value, rounds.mean(axis=0))
    np.testing.assert_allclose(error, rounds.std(axis=0, ddof=1) / np.sqrt(15))


def test_ranking_knows_what_is_noise():
    random = np.random.default_rng(0)
    rounds = random.normal(size=(200, 3)) + [1.0, 0.0, 0.0]
    rounds = np.column_stack([rounds, rounds[:, 0]])
    named = spa.ranking(lambda kept: kept.mean(axis=0), rounds, ("a", "b", "c", "d"))
    assert named in ("b ≈ c < a = d", "c ≈ b < a = d")


@pytest.mark.public_data
def test_repeated_rows_are_dropped():
    data = spa.read_set("crowd-cf-amt")
    assert (data.dropped, len(data.item), data.counts.num_items, data.counts.num_labels) == (5, 6025, 300, 5)


def test_everything_is_recorded(tmp_path, monkeypatch):
    names = ("crowd-cf", "crowd-sp")
    monkeypatch.setattr(spa, "NAMES", names)
    for printed in ("PROTOTYPE_Z", "PROTOTYPE_ERRORS"):
        monkeypatch.setattr(spa, printed, {name: getattr(spa, printed)[name] for name in names})
    monkeypatch.setattr(spa, "read_set", lambda name: tiny_set(names.index(name), name, num_items=6))
    assert command.main(["spa", "--rounds", "25", "--output", str(tmp_path)]) == 0
    tables = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["tables"]
    assert {row["data"] for row in tables["curves"]} == set(names)
    assert len(tables["curves"]) == 20 * len(names)
    own = [row for row in tables["table-1"] if row["data"] in names]
    assert len(own) == len(names)
    assert all(row["edge"] == pytest.approx(row["inv_var"]) for row in own)
    assert sorted(path.stem for path in tmp_path.glob("*.svg")) == sorted(f"figure-{number}" for number in range(4, 12))


# ---- speed ----


@pytest.mark.parametrize("design", ["equal", "ragged"])
def test_simulated_columns(design):
    item, label = agreement_speed.simulate(design, 100_000)
    assert (item.dtype, label.dtype, len(item), len(label)) == (np.int32, np.int8, 100_000, 100_000)
    assert (np.diff(item) < 0).any()
    counts = LabelCounts.of_codes(item, label, num_labels=5)
    assert (counts.size == 5).all() == (design == "equal")
    # Uniform over all class distributions: two labels of an item agree with probability 2 / (5 + 1).
    found = sparse_agreement(counts.patterns, weight_function("annotations_m1", counts))
    assert abs(found.value - 1 / 3) < 5 * found.sd
    share_sd = np.sqrt(0.2 * 0.8 / 20_000)
    assert (abs(counts.label_totals / 100_000 - 0.2) < 5 * share_sd).all()


def test_speed_is_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(agreement_speed, "_DESIGNS", ("ragged",))
    options = ["--annotations", "2000", "--repeats", "1", "--output", str(tmp_path)]
    assert command.main(["agreement_speed", *options]) == 0
    tables = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["tables"]
    (row,) = tables["ours-all"]
    counts = LabelCounts.of_codes(*agreement_speed.simulate("ragged", 2000))
    whole = sparse_agreement(counts.patterns, weight_function("annotations_m1", counts))
    assert row["annotations_m1"] == pytest.approx(whole.value)
    assert row["sd"] == pytest.approx(whole.sd)
    parts = [row[f"{part}, CPU s"] for part in ("count", "schemes", "diagnostic")]
    assert 0 < sum(parts) == pytest.approx(row["all, CPU s"])
    assert row["peak, MB"] >= row["before, MB"] > 0
    assert "peers" not in tables


def test_peers_without_krippendorff_are_refused(tmp_path, capsys):
    options = ["--peers", str(tmp_path / "python"), "--output", str(tmp_path / "out")]
    assert command.main(["agreement_speed", *options]) == 1
    assert "cannot import krippendorff" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
