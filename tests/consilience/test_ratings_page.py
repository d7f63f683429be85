"""Pages of ratings from which the offsets of annotators were taken off: they know it, and say of whom means are."""

import re
import shlex

import numpy as np
import pytest

import consilience as cs
from consilience.cli import main
from consilience.evaluation.variance_components import ratings_needed, variance_components
from consilience.pages.more_ratings import more_ratings
from consilience.pages.next_steps import fit_again
from consilience.pages.offsets import offsets_of
from consilience.pages.ratings import without_offsets_code
from consilience.pages.run import reproduction
from consilience.pages.sides import sides_of, without_offsets
from consilience.pages.spread_of_ratings import Spread
from tests.consilience.test_statements import section, words

pytestmark = pytest.mark.filterwarnings("ignore:annotators rate higher or lower than others")

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
    low, high = map(float, re.search(r"\(([\d.]+) to ([\d.]+), 95 %, for other", first).groups())
    np.testing.assert_allclose([low, high], [middle - half, middle + half], atol=0.06)
    *tiles, icc = tiles
    assert all(one.endswith(", by these 5 annotators alone") for one in tiles)
    _, low, high = variance_components(data).single(offsets=False)
    assert icc.endswith(f" without offsets: intraclass correlation ICC(3,1) ({low:.2f} to "
                        f"{high:.2f}, 95 %)")
    assert "by 5 annotators, whose offsets were taken off: the mean of each item" in html
    assert f"By other annotators all means would be up to {half:.1f} (95 %) higher or lower together." in html
    assert "by these 5 annotators, whose offsets are taken for known (in simulation 94 % held it). " in html
    assert "alike" not in words(section(page, "Items")).replace("are alike in", "")
    assert "nothing here checks the means, or that an annotator has the same offset on every item" in html
    assert "without their offsets" not in html
    assert "before offsets were removed, highest first." in html
    assert "cs.read_ratings(…).without_offsets()" in html


def test_how_probably_the_extreme_items_are_the_extreme_ones_is_said(apart, tmp_path):
    """Beside independent draws of Student t variables, as the posterior is."""
    fit = fitted(apart)
    html = words(cs.report(fit, path=tmp_path / "page.html").read_text(encoding="utf-8"))
    taken, frame = fitted(apart.without_offsets()), fit.sides()
    own = taken.posterior.mean
    width = np.sqrt(own.scale / (own.shape * own.strength))
    drawn = own.location + width * np.random.default_rng(0).standard_t(2 * own.shape, (20_000, len(width)))
    low, high = frame["mean"].idxmin(), frame["mean"].idxmax()
    said = rf"“{low}” has the lowest mean of all items with probability (\S+), and “{high}” the highest with "
    said += r"probability (\d\.\d+)"
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
    assert "was taken off the ratings before the fit, so means are by these 5 annotators alone." in page
    assert "cs.read_ratings('ratings.csv').without_offsets()" in page


@pytest.fixture(scope="module")
def folder(apart, tmp_path_factory):
    """Return a folder with the ratings, and fits of them that the command saved, with offsets and without."""
    folder = tmp_path_factory.mktemp("ratings")
    apart.to_pandas().to_csv(folder / "ratings.csv", index=False)
    for run, flags in (("run", []), ("taken", ["--without-offsets"])):
        words = ["fit", "normal-inverse-gamma", str(folder / "ratings.csv"), "--threshold", "50", "--quiet"]
        assert main([*words, *flags, "-o", str(folder / run)]) == 0
    return folder


def test_the_command_takes_offsets_off_and_the_saved_fit_knows_it(apart, folder, monkeypatch):
    monkeypatch.chdir(folder)
    fit, taken = (cs.load_fit(folder / run) for run in ("run", "taken"))
    assert fit.data.offset is None
    by_name = dict(zip(apart.annotators, apart.without_offsets().offset, strict=True))
    np.testing.assert_allclose(taken.data.offset, [by_name[name] for name in taken.data.annotators], atol=1e-6)
    own = {}
    exec(reproduction(taken, {}).rpartition("\n")[0], own)
    assert own["data"].fingerprint() == taken.data.fingerprint()
    np.testing.assert_allclose(own["fit"].means()["mean"], taken.means()["mean"])
    assert not np.allclose(taken.means()["mean"], fit.means()["mean"], atol=0.1)


def test_the_advice_of_a_saved_fit_is_a_command_that_runs(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    page = cs.report(cs.load_fit(folder / "run"), path=folder / "page.html").read_text(encoding="utf-8")
    html = words(page)
    advice = r"If only these 5 annotators matter, [^:]*: (consilience fit .*? -o without-offsets)"
    command = re.search(advice, html)[1]
    assert "in Python with the offset" not in html
    lines = words(section(page, "Annotator offsets"))
    assert f"{command} consilience report without-offsets -o without-offsets.html" in lines
    assert main(shlex.split(command)[1:]) == 0
    assert "ratings.csv: 160 ratings, 40 items, 5 annotators, whose offsets were taken off" in capsys.readouterr().out
    again, taken = (cs.load_fit(folder / run) for run in ("without-offsets", "taken"))
    assert again.data.fingerprint() == taken.data.fingerprint()
    assert fit_again(taken, output="longer", draws=50).endswith(" --draws 50 --without-offsets -o longer")


def test_offsets_are_of_ratings_alone(tmp_path, capsys):
    labels = tmp_path / "labels.csv"
    labels.write_text("item,annotator,label\na,x,1\n")
    assert main(["fit", "dawid-skene", str(labels), "--without-offsets", "-o", str(tmp_path / "run")]) == 1
    assert "--without-offsets has no meaning for Annotations" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("without", "sure", "drawn", "below"),
    [
        (False, " below, for other annotators like these", "” has the lowest mean of all items with probability ",
         "Certainties are for other annotators like these: "),
        (True, " below, by these 5 annotators alone", "” has the lowest mean of all items with probability ",
         "they are right if the fit is. They are of the mean by these 5 annotators."),
    ],
)  # fmt: skip
def test_certainties_stand_beside_what_they_take_for_granted(apart, tmp_path, without, sure, drawn, below):
    fit = fitted(apart.without_offsets() if without else apart)
    html = words(cs.report(fit, path=tmp_path / "page.html").read_text(encoding="utf-8"))
    assert all(one in html for one in (sure, drawn, below))
    assert ("Certainties under other assumptions" in html) is not without
    assert "Thin lines are single ratings, with the offsets of annotators removed." in html
    half = offsets_of(apart.without_offsets()).half
    told = f" With only 5 annotators, all means may be off together by up to {half:.1f} (95 %); certainties include "
    told += "this."
    assert (told in html) is not without


def test_intervals_hold_as_often_as_pages_say():
    """Of items the mean by annotators like these in 91 %, but below 80 % in 7 % of the data sets.

    Without offsets that by these annotators in 94 %, and of all items that with others in 96 %. The intervals of the
    page, for other annotators, hold 96 % of items, and those of 80 % hold 82 %.
    """
    of_items, of_all, with_offsets, of_page = [], [], [], []
    for seed in range(60):
        data, mean, own = rated(np.random.default_rng(seed))
        table = fitted(data).table("means")
        with_offsets.append(((table["lower"] <= mean) & (mean <= table["upper"])).mean())
        if found := without_offsets(fitted(data), offsets_of(data)):
            both = (found.sides.ends, found.sides.inner)
            of_page.append([((low <= mean) & (mean <= high)).mean() for low, high in both])
        data = data.without_offsets()
        table, these = fitted(data).table("means"), mean + own.mean()
        of_items.append(((table["lower"] <= these) & (these <= table["upper"])).mean())
        of_all.append(abs(table["mean"].mean() - mean.mean()) <= offsets_of(data).half)
    assert 0.88 < np.mean(with_offsets) < 0.94
    np.testing.assert_allclose(np.mean(of_page, axis=0), [0.96, 0.82], atol=0.05)  # of 57 sets of annotators
    assert 0.01 < (np.array(with_offsets) < 0.8).mean() < 0.15
    assert 0.91 < np.mean(of_items) < 0.96
    assert np.mean(of_all) >= 0.88  # of 60; by the spread of what is left it would be 0.1


def test_more_ratings_settle_as_many_sides_as_pages_say():
    """Of open items that take up to 30, where the true mean is where it was estimated, 63 %."""
    settled = []
    for seed in range(20):
        random = np.random.default_rng(3000 + seed)
        data = rated(random)[0]
        if not (found := without_offsets(fitted(data), offsets_of(data))):
            continue
        parts, mean = variance_components(data), found.sides.mean
        number = more_ratings(fitted(data), found.sides, parts).number
        few = np.flatnonzero((number > 0) & (number <= 30))
        item = np.repeat(few, number[few].astype(int))
        new = np.concatenate([np.arange(int(one)) for one in number[few]])
        own, error = random.normal(size=(2, 30)) * parts.variance[1] ** 0.5, parts.variance[2] ** 0.5
        rating = mean[item] + own[0, new] + error * random.normal(size=len(item))
        parts = (data.item, item), (data.annotator, SIZE[1] + new), (data.rating, rating)
        more = cs.Ratings.from_codes(*map(np.concatenate, parts), num_items=SIZE[0], num_annotators=SIZE[1] + 30)
        fit = fitted(more)
        sides = sides_of(fit, cs.certainty(fit.truth), without_offsets(fit, offsets_of(more)))
        settled += (sides.certainty[few].round(3) >= 0.9).tolist()
    assert len(settled) > 150
    assert np.mean(settled) == pytest.approx(0.63, abs=0.1)


def test_the_parts_of_the_spread_stand_on_the_page_and_tell_how_many_ratings_to_ask_for(apart, tmp_path):
    found = variance_components(apart)
    page = cs.report(fitted(apart), path=tmp_path / "page.html").read_text(encoding="utf-8")
    html, spread = words(page), words(section(page, "Spread of the ratings"))
    value, low, high = found.single(offsets=True)
    said = f"({low:.2f} to {high:.2f}, 95 %)"
    assert f"intraclass correlation ICC(2,1) {said} {value:.2f} " in html  # the key figure
    assert f"correlation ICC(2,1), {value:.2f} {said}: how well one rating" in spread
    cells = words(section(page, "Spread of the ratings"), "td")
    assert [f"{one:.2f}" for one in found.shares[:, 0]] == cells[3:15:5]
    single = [found.single(offsets=one) for one in (True, False)]
    counts = [[f"{ratings_needed(one, wanted):.0f}" for one in (mid, up, down)]
              for wanted in (0.8, 0.9) for mid, down, up in single]
    assert [f"{mid} ({least} to {most})" for mid, least, most in counts] == [*cells[16:18], *cells[19:21]]
    now = 4 * value / (1 + 3 * value)
    assert "Items have 4.0 ratings on average. Of plain means of so many, by different annotators, " in spread
    assert f"{now:.2f} of the variance is between items" in spread
    one = found.single(offsets=False)[0]  # the page's means are corrected, and by how much more reliable they are
    assert f"With offsets taken off, as if known, it is {4 * one / (1 + 3 * one):.2f}." in spread
    # The page's means are corrected for offsets: what would make plain means as reliable is no advice for these.
    assert "Ask for about" not in html
    html = Spread(apart).actions()[0].words
    assert "as on this page" not in html
    said = r"Ask for about (\d+) ratings of each item by different annotators \(.*? rise from (\S+) to ([\d.]+\d)"
    asked = re.search(said, html).groups()
    wanted = 0.8 if now < 0.8 else 0.9
    assert asked == (f"{ratings_needed(value, wanted):.0f}", f"{now:.2f}", f"{wanted:g}")


def test_ratings_whose_parts_cannot_be_told_apart_have_no_table_of_them(tmp_path):
    data = cs.Ratings.from_codes([0, 0, 1, 1, 2, 2], range(6), [1.0, 2, 5, 6, 9, 9.5])
    page = cs.report(fitted(data), path=tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Spread of the ratings" not in page
    assert "ICC" not in page
