"""Dawid-Skene by what occurs of confusion matrices: the same answer as by the matrices, and no table of all labels."""

import jax
import numpy as np
import numpyro.distributions as dist
import pandas
import pytest

import consilience as cs
from consilience.errors import NotConjugate, TooLarge, UnsupportedRequest
from consilience.models.crowd import occurring
from consilience.models.dawid_skene import MODEL, Priors

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")


def crowd(num_items=60, num_labels=5, num_annotators=6, num_gold=0):
    random = np.random.default_rng(0)
    true = random.integers(0, num_labels, num_items)
    item = np.repeat(np.arange(num_items), 4)
    annotator = np.concatenate([random.choice(num_annotators, 4, replace=False) for _ in range(num_items)])
    label = np.where(random.random(len(item)) < 0.6, true[item], random.integers(0, num_labels, len(item)))
    frame = pandas.DataFrame({"item": item, "annotator": annotator, "label": label}).astype(str)
    frame["weight"] = random.choice([0.0, 1.0, 2.0], len(item), p=[0.05, 0.9, 0.05])
    if num_gold:
        frame["gold"] = frame["item"].map({str(one): str(true[one]) for one in range(num_gold)})
    return frame, true


@pytest.fixture
def listed(monkeypatch):
    """Return a function that fits by what occurs, and one that fits by the matrices."""

    def fits(frame, **options):
        dense = cs.fit("dawid-skene", frame, candidates="observed", **options)
        with monkeypatch.context() as patch:
            patch.setattr(occurring, "_MOST_NUMBERS", 0)
            return cs.fit("dawid-skene", frame, candidates="observed", **options), dense

    return fits


# Columns that are known of matrices alone.
OF_MATRICES = ["lower", "upper", "accuracy"]


@pytest.mark.parametrize(
    "options", [{}, {"gold": "use"}, {"diagonal": 1.0}, {"annotator_groups": {"0": "a", "1": "a"}}]
)
def test_both_forms_have_the_same_answer(listed, options):
    frame, _ = crowd(num_gold=10 if "gold" in options else 0)
    with jax.enable_x64(True):
        found, dense = listed(frame, tolerance=1e-12, **options)
        np.testing.assert_allclose(found.elbo[-1].max(), dense.elbo[-1].max(), rtol=1e-10)
        assert isinstance(found.posterior.value("confusion"), occurring.OccurringRows)
        for table in ("labels", "probabilities", "annotators", "confusion", "crowd", "prevalence", "annotator_pairs"):
            one, other = found.table(table), dense.table(table)
            ids = [name for name in one if one[name].dtype.kind != "f"]
            merged = one.merge(other, on=ids, suffixes=("", "_dense"))
            assert len(merged) == len(one), table
            for name in one.columns.difference([*ids, *OF_MATRICES]):
                np.testing.assert_allclose(merged[name], merged[f"{name}_dense"], rtol=1e-5, atol=1e-7, err_msg=table)
        # What is not listed is impossible, or as before any annotation.
        both = dense.probabilities().merge(found.probabilities(), on=["item", "label"], how="left", indicator=True)
        assert (both.loc[both["_merge"] == "left_only", "probability_x"] < 1e-12).all()
        np.testing.assert_array_equal(cs.next_labels(found)["item"].head(5), cs.next_labels(dense)["item"].head(5))


def test_rows_have_the_moments_of_their_draws(listed):
    rows = listed(crowd()[0])[0].posterior.value("confusion")
    draws = np.asarray(rows.sample(jax.random.key(0), (4000,)))
    summary = rows.summary(0.9)
    np.testing.assert_allclose(draws.mean(axis=0), summary.mean, atol=0.015)
    np.testing.assert_allclose(draws.std(axis=0), summary.sd, atol=0.015)


def test_a_fit_is_saved_loaded_and_updated(listed, tmp_path, monkeypatch):
    frame, _ = crowd()
    found, _ = listed(frame.iloc[:200])
    found.save(tmp_path / "run")
    loaded = cs.load_fit(tmp_path / "run")
    for table in ("labels", "confusion", "annotators"):
        pandas.testing.assert_frame_equal(loaded.table(table), found.table(table))
    monkeypatch.setattr(occurring, "_MOST_NUMBERS", 0)
    later = loaded.update(frame.iloc[200:])
    fresh = cs.fit("dawid-skene", frame, candidates="observed")
    np.testing.assert_allclose(later.labels()["probability"], fresh.labels()["probability"], atol=2e-3)


def test_thousands_of_labels():
    frame, true = crowd(num_items=1500, num_labels=3000, num_annotators=10)
    found = cs.fit("dawid-skene", frame)
    labels = found.labels()
    right = labels["label"].astype(int).to_numpy() == true[labels["item"].astype(int)]
    # Four labels, each right with probability .6 and else any of thousands: two of a kind are right.
    assert right.mean() > 0.8
    assert 0.75 < labels["certainty"].mean() < right.mean() + 0.1
    assert any("only those that somebody gave it" in finding.text for finding in found.findings())
    assert len(found.table("confusion")) < 10 * len(frame)
    assert found.table("annotators")["accuracy"].between(0.45, 0.8).all()


@pytest.mark.parametrize("options", [{"method": "gibbs"}, {"method": "em"}, {"candidates": "closed"}])
def test_what_needs_whole_matrices_is_refused(options):
    frame, _ = crowd(num_items=3000, num_labels=6000, num_annotators=20)
    with pytest.raises(TooLarge, match="what occurs by method='cavi' and candidates='observed'"):
        cs.fit("dawid-skene", frame, **options)


def test_priors_that_tell_labels_apart_and_devices_are_refused(monkeypatch):
    monkeypatch.setattr(occurring, "_MOST_NUMBERS", 0)
    frame, _ = crowd()
    priors = Priors(confusion=dist.Dirichlet(np.arange(1.0, 6.0)))
    with pytest.raises(NotConjugate, match="one concentration for right labels"):
        cs.fit("dawid-skene", frame, method="cavi", priors=priors)
    cavi, resolved = MODEL.engine("cavi"), cs.fit("dawid-skene", frame).resolved
    problem = cavi.prepare(resolved)
    with pytest.raises(UnsupportedRequest, match="leave out devices="):
        cavi.shard(problem, 2)
