"""Tables of annotators, confusion matrices and class shares: closed forms against draws."""

import tracemalloc

import jax
import numpy as np
import pytest

import consilience as cs
from consilience.data import Annotations
from consilience.models.dawid_skene import MODEL, Priors, simulate
from consilience.models.dawid_skene.tables import accuracy, confusion, crowd
from consilience.models.posterior import Draws


@pytest.fixture(scope="module")
def fits():
    data = simulate(jax.random.key(4), Priors(), num_items=30, num_annotators=4, annotations_per_item=3)[0]
    return {method: cs.fit(MODEL, data, method=method) for method in ("cavi", "gibbs", "em")}


def test_intervals_of_cavi_are_those_of_its_draws(fits):
    fit, num_draws = fits["cavi"], 20_000
    draws = {site: values[0] for site, values in fit.samples(num_draws).items()}
    for table, site, mean in (("confusion", "confusion", "probability"), ("prevalence", "prevalence", "share")):
        columns = fit.table(table)
        values = draws[site].reshape(num_draws, -1)
        z = (values.mean(0) - columns[mean]) / (values.std(0) / np.sqrt(num_draws))
        assert np.abs(z).max() < 5
        for end, probability in (("lower", 0.025), ("upper", 0.975)):
            below = (values < columns[end].to_numpy()).mean(0)
            assert np.abs(below - probability).max() < 5 * np.sqrt(0.025 * 0.975 / num_draws)


def test_accuracy_of_cavi_has_the_moments_of_its_draws(fits):
    num_draws = 20_000
    draws = {site: values[0] for site, values in fits["cavi"].samples(num_draws).items()}
    right = np.einsum("dt,djtt->dj", draws["prevalence"], draws["confusion"])
    found = accuracy(fits["cavi"].posterior)
    assert np.abs((right.mean(0) - found.mean) / (right.std(0) / np.sqrt(num_draws))).max() < 5
    # The shape is that of a Beta distribution with the right variance: the ends are good to a percent of probability.
    inside = ((right > found.lower) & (right < found.upper)).mean(0)
    np.testing.assert_allclose(inside, 0.95, atol=0.01)


@pytest.mark.parametrize("number", [3, 7, 49])
def test_nobody_is_right_more_often_than_always(number):
    """A third in float32, three times, is more than one."""
    share = np.full(number, 1 / number, "float32")
    always, at_random = (
        accuracy(Draws({"prevalence": share[None, None], "confusion": rows[None, None, None]})).mean[0]
        for rows in (np.eye(number, dtype="float32"), np.tile(share, (number, 1)))
    )
    assert always == 1
    np.testing.assert_allclose(at_random, 1 / number, rtol=1e-15)


def test_columns(fits):
    for method, fit in fits.items():
        annotators, confusion = fit.annotators(), fit.confusion()
        assert annotators["annotator"].tolist() == ["0", "1", "2", "3"]
        amount = np.bincount(fit.data.annotator, minlength=4)
        np.testing.assert_array_equal(annotators["annotations"], amount)
        assert len(confusion) == 4 * 3 * 3
        sums = confusion.groupby(["annotator", "class"])["probability"].sum()
        np.testing.assert_allclose(sums, 1, rtol=1e-5)
        expected = confusion.groupby(["annotator", "class"])["annotations"].first().groupby("annotator").sum()
        np.testing.assert_allclose(expected, amount, rtol=1e-5)
        assert annotators["lower"].isna().all() == (method == "em")
        if method != "em":
            assert (annotators["lower"] < annotators["accuracy"]).all()
            assert (annotators["accuracy"] < annotators["upper"]).all()


def test_a_row_of_a_matrix_is_who_true_given(fits):
    fit = fits["cavi"]
    table = fit.confusion().set_index(["annotator", "class", "label"])["probability"]
    posterior = fit.posterior.confusion
    own = posterior[2, 0, 1] / posterior[2, 0].sum()
    assert table[("2", "0", "1")] == pytest.approx(float(own), rel=1e-6)


def test_the_crowd_averages_its_annotators_by_how_much_they_annotate(fits):
    share = np.bincount(fits["cavi"].data.annotator, minlength=4) / fits["cavi"].data.num_annotations
    for method, fit in fits.items():
        samples = {site: values.reshape(-1, *values.shape[2:]) for site, values in fit.samples(20_000).items()}
        together = np.einsum("j,djtl->dtl", share, samples["confusion"]).reshape(-1, 9)
        crowd = fit.crowd()
        error = together.std(axis=0) / np.sqrt(len(together))
        assert (np.abs(together.mean(axis=0) - crowd["probability"]) < 5 * error + 1e-6).all()
        np.testing.assert_allclose(crowd["annotations"][::3].sum(), fit.data.num_annotations, rtol=1e-5)
        if method != "em":
            # The mean of several Beta variables is nearly one: the ends are good to a percent of probability.
            inside = ((together > crowd["lower"].to_numpy()) & (together < crowd["upper"].to_numpy())).mean(axis=0)
            np.testing.assert_allclose(inside, 0.95, atol=0.01)


def test_annotations_of_a_class_are_weighted_by_how_probable_it_is(fits):
    data = fits["em"].data.replace(weight=np.arange(fits["em"].data.num_annotations) % 4 / 2)
    fit = cs.fit(MODEL, data, method="em")
    probability = np.zeros((data.num_items, data.num_labels))
    table = fit.probabilities()
    probability[table["item"].astype(int), table["label"].astype(int)] = table["probability"]
    expected = np.zeros((data.num_annotators, data.num_labels))
    for item, annotator, weight in zip(data.item, data.annotator, data.weight, strict=True):
        expected[annotator] += weight * probability[item]
    np.testing.assert_allclose(fit.confusion()["annotations"], np.repeat(expected.ravel(), data.num_labels), rtol=1e-9)
    np.testing.assert_allclose(fit.crowd()["annotations"], np.repeat(expected.sum(axis=0), data.num_labels), rtol=1e-9)


def test_tables_take_less_memory_than_one_number_for_each_annotation_and_class():
    number, num_items, num_labels = 100_000, 1000, 20
    item, label = np.arange(number) % num_items, np.arange(number) % num_labels
    data = Annotations.from_codes(item, np.arange(number) // num_items, label)
    fit = cs.fit(MODEL, data, method="em")
    for table in (confusion, crowd):
        tracemalloc.start()
        table(fit.posterior, fit.resolved, fit.truth)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < number * num_labels * 8 / 2
