"""Pages of ratings from which the offsets of annotators were taken off: they know it, and say of whom means are."""

import re

import numpy as np
import pytest

import consilience as cs
from consilience.pages.ratings import offsets_of, without_offsets_code
from tests.consilience.test_statements import section, words

SIZE, EACH = (40, 5), 4


def rated(random, offset=5.0):
    """Return ratings of items by four of five annotators each, the means of the items, and the offsets."""
    (items, annotators), mean = SIZE, 50 + 8 * random.normal(size=SIZE[0])
    own = offset * random.normal(size=annotators)
    who = np.concatenate([random.choice(annotators, EACH, replace=False) for _ in range(items)])
    item = np.repeat(np.arange(items), EACH)
    rating = mean[item] + own[who] + 7 * random.normal(size=len(item))
    return cs.Ratings.from_codes(item, who, rating, num_items=items, num_annotators=annotators), mean, own


def fitted(data):
    return cs.fit("normal-inverse-gamma", data, threshold=50.0, draws=50)


@pytest.fixture(scope="module")
def apart():
    """Return ratings by annotators who differ surely."""
    data = rated(np.random.default_rng(3))[0]
    assert offsets_of(data).furthest is not None
    return data


def test_the_page_of_a_fit_that_was_saved_says_of_whom_its_means_are(apart, tmp_path):
    data = apart.without_offsets()
    fitted(data).save(tmp_path / "run")
    fit = cs.load_fit(tmp_path / "run")
    np.testing.assert_array_equal(fit.data.offset, data.offset)
    page = cs.report(fit, path=tmp_path / "page.html").read_text(encoding="utf-8")
    html, (first, *tiles) = words(page), words(page, "dt")
    # Of other annotators, by the spread of the offsets, and not by the errors that are left.
    half = 2.7764 * np.std(data.offset, ddof=1) / np.sqrt(5)
    middle = fit.means()["mean"].mean()
    low, high = map(float, re.search(r"\(([\d.]+) to ([\d.]+), 95 %, with other", first).groups())
    np.testing.assert_allclose([low, high], [middle - half, middle + half], atol=0.06)
    assert all(one.endswith("of the mean by these 5 annotators, offsets taken off") for one in tiles)
    assert "by 5 annotators, whose offsets were taken off: the mean of each item" in html
    assert f"all means would move up or down together, by up to {half:.1f} (95 %)." in html
    assert "ratings of this item by these 5 annotators, whose offsets are taken for known. Thin lines are" in html
    assert "alike" not in words(section(page, "Items")).replace("are alike in", "")
    assert "nothing here checks the means, or that the offset of an annotator is the same on every item" in html
    assert "Fit again with the offset" not in html
    assert "before they were taken off, the highest first." in html
    assert "cs.read_ratings(…).without_offsets()" in html


def test_how_probably_the_extreme_items_are_the_extreme_ones_is_said(apart, tmp_path):
    """Beside independent draws of Student t variables, as the posterior is."""
    fit = fitted(apart)
    html = words(cs.report(fit, path=tmp_path / "page.html").read_text(encoding="utf-8"))
    own, frame = fit.posterior.mean, fit.means()
    width = np.sqrt(own.scale / (own.shape * own.strength))
    drawn = own.location + width * np.random.default_rng(0).standard_t(2 * own.shape, (20_000, len(width)))
    low, high = frame["mean"].idxmin(), frame["mean"].idxmax()
    said = rf"“{low}” is the lowest with probability (\S+), and “{high}” the highest with probability (\d\.\d+)"
    found = [float(one) for one in re.search(said, html).groups()]
    expected = [(drawn.argmin(axis=1) == low).mean(), (drawn.argmax(axis=1) == high).mean()]
    np.testing.assert_allclose(found, expected, atol=0.03)  # 3.6 standard errors of 4,000 draws, and two digits


def test_what_is_taken_off_stands_beside_the_offsets_from_others(apart):
    found = offsets_of(apart)
    taken = dict(zip(apart.annotators, apart.without_offsets().offset, strict=True))
    np.testing.assert_allclose(found.from_all, [taken[name] for name in found.names], atol=1e-6)
    assert (np.abs(found.from_all) < np.abs(found.mean)).all()
    after = offsets_of(apart.without_offsets())
    np.testing.assert_allclose(after.from_all, found.from_all, atol=1e-6)


def test_the_lines_that_take_offsets_off_make_that_page(apart, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    apart.to_pandas().to_csv("ratings.csv", index=False)
    fit = fitted(cs.read_ratings("ratings.csv"))
    own = {}
    exec(without_offsets_code(fit), own)
    np.testing.assert_allclose(own["data"].offset, fit.data.without_offsets().offset)
    page = words((tmp_path / "without_offsets.html").read_text(encoding="utf-8"))
    assert "each one rates, were taken off the ratings before the fit. So means of items" in page
    assert "cs.read_ratings('ratings.csv').without_offsets()" in page


def test_intervals_hold_as_often_as_pages_say():
    """Of items the mean by annotators like these in 91 %, but below 80 % in 7 % of the data sets.

    Without offsets that by these annotators in 94 %, and of all items that with others in 96 %.
    """
    of_items, of_all, with_offsets = [], [], []
    for seed in range(60):
        data, mean, own = rated(np.random.default_rng(seed))
        table = fitted(data).table("means")
        with_offsets.append(((table["lower"] <= mean) & (mean <= table["upper"])).mean())
        data = data.without_offsets()
        table, these = fitted(data).table("means"), mean + own.mean()
        of_items.append(((table["lower"] <= these) & (these <= table["upper"])).mean())
        of_all.append(abs(table["mean"].mean() - mean.mean()) <= offsets_of(data).half)
    assert 0.88 < np.mean(with_offsets) < 0.94
    assert 0.01 < (np.array(with_offsets) < 0.8).mean() < 0.15
    assert 0.91 < np.mean(of_items) < 0.96
    assert np.mean(of_all) >= 0.88  # of 60; by the spread of what is left it would be 0.1
