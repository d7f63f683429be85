"""The bridge to ArviZ, the summaries and the warnings; run on either line of ArviZ."""

import importlib.metadata

import numpy as np
import pytest

from consilience.inference.generic import GenericRun
from consilience.inference.posterior import (
    Quantity,
    Worst,
    k_hat,
    poor_diagnostics,
    summarise,
    to_arviz,
    worst_diagnostics,
)
from consilience.inference.results import Result
from consilience.notes import Level

ITEMS = np.array(["x-ray 1", "x-ray 2", "ünïcode"])
DIMS = {"mean": ("item",), "plausibility": ("item", "class")}
COORDS = {"item": ITEMS, "class": np.array(["flu", "cold"], object), "annotator": np.array(["nobody"])}
COLUMNS = ["quantity", "mean", "sd", "lower", "upper", "r_hat", "ess_bulk", "ess_tail", "mcse"]


@pytest.fixture
def samples():
    rng = np.random.default_rng(0)
    return {
        "mean": rng.normal(5, 2, size=(4, 500, 3)).astype(np.float32),
        "plausibility": rng.dirichlet([1, 2], size=(4, 500, 3)),
        "scale": rng.exponential(size=(4, 500)),
        "other": rng.normal(size=(4, 500, 2)),
    }


def test_groups_dims_coords_and_attributes_arrive(samples, tmp_path):
    import arviz

    groups = {"posterior": samples, "sample_stats": {"lp": np.zeros((4, 500))}}
    tree = to_arviz(groups, dims=DIMS, coords=COORDS, attrs={"model": "demo", "seed": 3, "priors": None, "sure": True})
    kind = "InferenceData" if importlib.metadata.version("arviz").startswith("0.") else "DataTree"
    assert type(tree).__name__ == kind
    plausibility = tree["posterior"]["plausibility"]
    assert plausibility.dims == ("chain", "draw", "item", "class")
    np.testing.assert_array_equal(
        plausibility.sel(item="ünïcode", **{"class": "cold"}), samples["plausibility"][..., 2, 1]
    )
    assert tree["posterior"]["other"].dims == ("chain", "draw", "other_dim_0")
    assert tree["sample_stats"]["lp"].shape == (4, 500)
    assert list(plausibility["item"].values) == list(ITEMS)
    assert "annotator" not in tree["posterior"].coords
    assert dict(tree.attrs) == {"model": "demo", "seed": 3, "priors": "None", "sure": "True"}
    # ArviZ understands what it is given, and the object survives its file format.
    assert float(np.asarray(arviz.rhat(tree, var_names=["scale"])["scale"])) < 1.01
    tree.to_netcdf(str(tmp_path / "run.nc"), engine="h5netcdf")
    back = arviz.from_netcdf(str(tmp_path / "run.nc"), engine="h5netcdf")
    np.testing.assert_array_equal(back["posterior"]["mean"], samples["mean"])
    assert back.attrs["model"] == "demo"


def test_summary_has_one_named_row_for_each_scalar(samples):
    table = summarise(samples, dims=DIMS, coords=COORDS).set_index("quantity")
    assert [table.index.name, *table.columns] == COLUMNS
    assert list(table.index) == [
        *(f"mean[item={item}]" for item in ITEMS),
        *(f"plausibility[item={item}, class={name}]" for item in ITEMS for name in ("flu", "cold")),
        "scale",
        "other[0]",
        "other[1]",
    ]
    row, draws = table.loc["plausibility[item=x-ray 2, class=cold]"], samples["plausibility"][..., 1, 1]
    expected = [draws.mean(), draws.std(ddof=1), *np.quantile(draws, [0.025, 0.975])]
    np.testing.assert_allclose(row[["mean", "sd", "lower", "upper"]].astype(float), expected, rtol=1e-12)
    assert (table["r_hat"] < 1.02).all()
    assert (table["ess_bulk"] > 1500).all()
    np.testing.assert_allclose(table["mcse"], table["sd"] / np.sqrt(2000), rtol=0.2)
    narrow = summarise(samples, dims=DIMS, coords=COORDS, interval=0.5).set_index("quantity")
    assert (narrow["upper"] - narrow["lower"] < table["upper"] - table["lower"]).all()


def test_one_chain_has_no_r_hat_and_few_draws_have_no_numbers(samples):
    one = summarise({"scale": samples["scale"][:1]})
    assert one["r_hat"].isna().all()
    assert one.drop(columns="r_hat").notna().all(axis=None)
    none = summarise({"scale": samples["scale"][:, :0], "mean": samples["mean"][:1, :1]})
    assert len(none) == 4
    assert none.drop(columns=["quantity", "mean"]).isna().all(axis=None)
    np.testing.assert_array_equal(none["mean"], [np.nan, *samples["mean"][0, 0]])  # one draw is an estimate
    assert list(summarise({}).columns) == COLUMNS


@pytest.mark.parametrize("seed", range(5))
def test_k_hat_of_a_wide_normal_by_a_narrow_one(seed):
    draws = np.random.default_rng(seed).normal(size=100_000)
    log_weights = -0.5 * (draws / 2) ** 2 + 0.5 * draws**2
    assert 0.6 < k_hat(log_weights) < 0.85  # 0.75 in theory; the wrong sign gives a large negative number
    assert k_hat(log_weights.reshape(1, -1) - 1e4) == pytest.approx(k_hat(log_weights), abs=1e-3)
    narrow = -0.5 * (draws * 2) ** 2 + 0.5 * draws**2
    assert k_hat(narrow) < 0.2


def test_k_hat_at_the_edges():
    draws = np.random.default_rng(0).normal(size=1000)
    assert k_hat(np.zeros(1000)) == 0.0
    assert np.isnan(k_hat(draws[:24]))
    assert k_hat(np.append(draws, np.nan)) == k_hat(np.append(draws, np.inf)) == np.inf
    with_zero = k_hat(np.append(draws, -np.inf))
    assert np.isfinite(with_zero)
    assert with_zero == pytest.approx(k_hat(draws), abs=0.1)


def finished(**changes):
    return GenericRun({}, {}, Result.converged, 100, 1.0, "")._replace(**changes)


def words_of(*given):
    return [note.words() for note in poor_diagnostics(*given)]


def test_good_draws_are_not_warned_about(samples):
    worst = worst_diagnostics(samples)
    assert poor_diagnostics(worst) == []
    assert poor_diagnostics(worst, finished(k_hat=0.3, elbo=np.zeros(3))) == []
    assert (
        poor_diagnostics(worst, finished(result=Result.max_steps, stats={"diverging": np.zeros((4, 500), bool)})) == []
    )
    # Independent draws of one chain have no R-hat, which is no fault.
    assert poor_diagnostics(worst_diagnostics({"scale": samples["scale"].reshape(1, -1)})) == []


def test_each_poor_diagnostic_is_said_in_words(samples):
    chains = samples["mean"] + np.array([0, 0, 3.0])[None, None] * (np.arange(4) == 0)[:, None, None]
    (disagree, few) = words_of(worst_diagnostics({"mean": chains}, dims=DIMS, coords=COORDS))
    assert "R-hat, 1 where they agree, is above 1.01 for 1 of 3 quantities (worst: mean of item ünïcode" in disagree
    assert "fewer than 400" in few
    (few,) = words_of(worst_diagnostics({"scale": samples["scale"][:1, :200]}))
    assert "for 1 of 1 quantities (fewest: scale" in few

    worst = worst_diagnostics({"scale": samples["scale"]})
    diverging = np.zeros((4, 500), bool)
    diverging[1, 3:10] = True
    cases = [
        (finished(stats={"diverging": diverging}), "7 transitions diverged"),
        (finished(k_hat=0.81), "k-hat is 0.81"),
        (finished(k_hat=np.inf), "far from the posterior"),
        (finished(k_hat=np.nan), "not known"),
        (finished(result=Result.max_steps, elbo=np.zeros(3)), "not settled after 100 steps"),
        (finished(result=Result.interrupted, message="the time limit ended the run"), "the time limit ended"),
        (finished(result=Result.nonfinite, message="step 7 gave a number that is not finite"), "step 7"),
    ]
    for run, words in cases:
        (problem,) = words_of(worst, run)
        assert words in problem


@pytest.mark.parametrize(
    ("changes", "level", "words"),
    [
        ({"r_hat": 1.0104}, Level.note, "number of views, 1.0104)"),
        ({"r_hat": 1.0138, "disagreeing": 12}, Level.note, "1.014); run longer"),
        ({"r_hat": 1.0138, "disagreeing": 13}, Level.warning, "for 13 of 100 quantities"),
        ({"r_hat": 1.0138, "disagreeing": 37, "draws": 100}, Level.note, "for 37 of 100"),
        ({"r_hat": 1.051}, Level.error, "1.05); run longer, or look for several modes"),
        ({"disagreeing": 0, "short": 1, "size": 399.6}, Level.note, "fewest: accuracy of annotator a, 399)"),
        ({"disagreeing": 0, "short": 1, "size": 100.0}, Level.note, "fewer than 400 for 1 of 100"),
        ({"disagreeing": 0, "short": 1, "size": 99.9}, Level.error, "accuracy of annotator a, 99)"),
    ],
)
def test_only_what_makes_a_fit_poor_is_an_error(changes, level, words):
    where, fewest = Quantity("num_views", ()), Quantity("accuracy", (("annotator", "a"),))
    worst = Worst(100, 100, 2000, 1.02, 1, where, 500.0, 0, fewest)
    (note,) = poor_diagnostics(worst._replace(**changes))
    assert note.level is level
    assert words in note.text


def test_of_very_many_quantities_the_worst_are_looked_at():
    rng = np.random.default_rng(3)
    samples = {"mean": rng.normal(size=(4, 400, 700)).astype(np.float32), "scale": rng.normal(size=(4, 400, 9, 100))}
    samples["mean"][0, :, 17] += 1
    samples["scale"][2, :, 3, 4] += 2
    samples["scale"][:, :, 5, 6] = np.cumsum(rng.normal(size=(4, 400)), axis=1) / 9
    samples["scale"][0, 0, 8, 8] = np.nan
    worst, table = worst_diagnostics(samples), summarise(samples)
    size = table[["ess_bulk", "ess_tail"]].min(axis=1)
    assert (worst.number, worst.looked_at) == (1600, 1000)
    assert worst.r_hat == table["r_hat"].max()
    assert str(worst.where) == table["quantity"][table["r_hat"].idxmax()]
    assert worst.disagreeing == (table["r_hat"] > 1.01).sum()
    assert (worst.size, str(worst.fewest)) == (size.min(), table["quantity"][size.idxmin()])
    assert worst.short == (size < 400).sum()
    texts = words_of(worst)
    assert "of 1,000 quantities, of 1,600 the worst by a first look (worst: " in texts[0]


def test_of_few_quantities_all_are_looked_at(samples):
    samples["none"] = np.zeros((4, 500, 0))
    worst, table = worst_diagnostics(samples, dims=DIMS, coords=COORDS), summarise(samples, dims=DIMS, coords=COORDS)
    size = table[["ess_bulk", "ess_tail"]].min(axis=1)
    assert (worst.number, worst.looked_at, worst.quantities) == (12, 12, "12 quantities")
    assert (worst.r_hat, worst.size) == (table["r_hat"].max(), size.min())
    assert {str(worst.where), str(worst.fewest)} <= set(table["quantity"])
    assert worst_diagnostics({"none": samples["none"]}) is None
    alone = worst_diagnostics({"scale": samples["scale"][:1]})
    assert np.isnan(alone.r_hat)
    assert alone.size > 400


def test_one_chain_is_said_to_tell_too_little():
    draws = np.random.default_rng(0).normal(size=(1, 2000))
    worst = worst_diagnostics({"mean": draws})
    (problem,) = words_of(worst, finished(samples={"mean": draws}))
    assert "one chain" in problem
    assert poor_diagnostics(worst, finished(samples={"mean": draws}, elbo=np.zeros(3))) == []
