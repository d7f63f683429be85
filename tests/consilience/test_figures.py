"""Figures return axes, draw without warnings, and show what they were given."""

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
import warnings
from io import BytesIO
from pathlib import Path

import jax
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import consilience as cs
from consilience import figures, views_figures
from consilience.drawing import BLUE, INK, MOST_POINTS
from consilience.errors import UnknownName, UnsupportedRequest
from consilience.models.truth import Entries, LabelDraws, PlausibilityDraws, PointTruth
from consilience.models.truth.plausibilities import OtherMass
from consilience.notes import Level, Note

STRANGE = ["<b>&amp;", "a$b_c$d", "_hidden", "a very long name of an item that would fill a page, one", "x\x01y"]


def annotations():
    rows = [(item, f"r{r}", STRANGE[(r + k) % 3] if r < k else STRANGE[k % 3])
            for k, item in enumerate(STRANGE) for r in range(4)]  # fmt: skip
    item, annotator, label = zip(*rows, strict=True)
    return cs.read_annotations({"item": item, "annotator": annotator, "label": label})


@pytest.fixture(scope="module")
def fit():
    return cs.fit("dirichlet", annotations(), draws=64)


@pytest.fixture(scope="module")
def systems(fit):
    items, classes = fit.truth.ids["item"], fit.truth.ids["class"]
    lists = {"A": [[classes[0], classes[1]]] * 5, "_B$1$": [[classes[k % 3], classes[(k + 1) % 3]] for k in range(5)]}
    return {name: cs.Predictions.from_lists(rows, items=items, classes=classes, name=name) for name, rows in
            lists.items()}  # fmt: skip


def drawn(axes):
    """Draw, with every warning an error, and return the axes."""
    from matplotlib.axes import Axes

    assert isinstance(axes, Axes)
    axes.figure.savefig(BytesIO(), format="png", dpi=40)
    return axes


def texts(axes):
    return [label.get_text() for label in (*axes.get_yticklabels(), *axes.get_xticklabels())]


def test_sorted_certainty_draws_every_item_in_order(fit):
    score = cs.certainty(fit)
    axes = drawn(figures.sorted_certainty({"_top": score, "top 2": cs.certainty(fit, top=2)}))
    first, second = axes.get_lines()
    np.testing.assert_array_equal(first.get_ydata(), np.sort(score.items))
    np.testing.assert_array_equal(first.get_xdata(), np.arange(1, 6))
    assert len(second.get_ydata()) == 5
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["\u200b_top", "top 2"]


def test_many_items_are_thinned_with_both_ends():
    score = cs.Score(title="t", items=np.linspace(0.2, 1, 100_000), draws=np.array([0.6]))
    line = drawn(figures.item_scores(score)).get_lines()[0]
    assert len(line.get_xdata()) <= 800
    assert (line.get_xdata()[0], line.get_xdata()[-1]) == (1, 100_000)
    assert (line.get_ydata()[0], line.get_ydata()[-1]) == (0.2, 1)


def test_items_left_out_of_a_score_are_left_out_of_its_figures():
    score = cs.Score(title="t", items=np.array([0.1, np.nan, 0.5]), draws=np.array([0.3]))
    assert len(drawn(figures.item_scores(score)).get_lines()[0].get_xdata()) == 2
    assert sum(patch.get_height() for patch in drawn(figures.certainty_histogram(score)).patches) == 2


def test_score_histogram_holds_every_draw_and_both_marks(fit, systems):
    scores = {name: cs.evaluate(fit, system) for name, system in systems.items()}
    axes = drawn(figures.score_histogram(scores))
    lines = axes.get_lines()
    assert [line.get_xdata()[0] for line in lines[::2]] == pytest.approx([score.value for score in scores.values()])
    assert [line.get_xdata()[0] for line in lines[1::2]] == pytest.approx([score.point for score in scores.values()])
    assert texts(axes)[:2] == ["A", "\u200b_B$1$"]


def test_a_score_without_spread_or_draws_is_drawn():
    point = cs.Score(title="t", items=np.array([1.0]), draws=np.array([1.0]), point=1.0)
    exact = cs.Score(title="t", items=np.array([0.4, 0.6]), draws=np.empty(0), exact_sd=0.3)
    drawn(figures.score_histogram(point))
    drawn(figures.score_histogram({"a": exact, "b": point}))


def test_leaderboard_is_best_first_with_the_point_estimate_beside_the_value(fit, systems):
    comparison = cs.compare(fit, systems)
    axes = drawn(figures.leaderboard(comparison))
    lowest, highest, points = axes.get_lines()
    order = comparison.order
    np.testing.assert_array_equal([lowest.get_xdata(), highest.get_xdata()], comparison.readings.range[:, order])
    assert (lowest.get_xdata() < comparison.table["value"]).all()
    legend = {text.get_text() for text in axes.get_legend().get_texts()} if axes.get_legend() else set()
    legend |= {text.get_text() for one in axes.figure.legends for text in one.get_texts()}
    assert {"predictions made from the annotations", "system looked at the items itself"} < legend
    np.testing.assert_array_equal(points.get_xdata(), comparison.points[order])
    assert [text.lstrip("\u200b") for text in texts(axes)[:2]] == [comparison.systems[place] for place in order]
    assert axes.get_ylim()[0] > axes.get_ylim()[1]
    assert len(axes.collections) == 3
    names = list(comparison.table["system"])[::-1]
    turned = drawn(figures.leaderboard(comparison, order=names))
    assert [text.lstrip("\u200b") for text in texts(turned)[:2]] == names
    for line, own in zip(turned.get_lines(), (lowest, highest, points), strict=True):
        np.testing.assert_array_equal(line.get_xdata(), own.get_xdata()[::-1])
    cells = [text.get_text() for text in drawn(figures.beats_matrix(comparison)).texts]
    assert {text.get_text() for text in drawn(figures.beats_matrix(comparison, order=names)).texts} == set(cells)


def test_scores_by_gold_labels_are_drawn_first_and_the_annotations_under_them(fit, systems):
    """Thick and in colour what leads the table, thin and grey the readings; the axis holds all."""
    comparison = cs.compare(fit, systems)
    scores = {name: (0.5 + 0.1 * place, 0.02, 0.99) for place, name in enumerate(comparison.systems)}
    order = list(comparison.systems)
    axes = drawn(figures.leaderboard(comparison, order=order, gold=figures.WithGold("by gold labels", scores)))
    (dots,) = axes.get_lines()
    np.testing.assert_array_equal(dots.get_xdata(), [scores[name][0] for name in order])
    main, *thin = axes.collections
    assert [one.get_segments()[0][:, 0].tolist() for one in (main,)] == [[0.02, 0.99]]
    assert len(thin) == 2
    assert {to_hex(one.get_color()[0]) for one in thin} == {INK.lower()}
    assert to_hex(main.get_color()[0]) == BLUE.lower()
    assert all(one.get_linewidth()[0] < main.get_linewidth()[0] for one in thin)
    ends_ = np.concatenate([line[:, 0] for one in axes.collections for line in one.get_segments()])
    assert axes.get_xlim()[0] <= ends_.min()
    assert axes.get_xlim()[1] >= ends_.max()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "by gold labels", "annotations alone, if made from them", "annotations alone, if it saw the items",
    ]  # fmt: skip
    narrow = drawn(figures.leaderboard(comparison, interval="an interval at least this wide"))
    assert "lowest and highest reading, with an interval at least this wide" in {
        text.get_text() for text in narrow.get_legend().get_texts()
    }


def test_beats_matrix_writes_every_pair(fit, systems):
    comparison = cs.compare(fit, systems)
    axes = drawn(figures.beats_matrix(comparison))
    pair = comparison.pairs.iloc[0]
    low, high = pair["p_a_beats_b_lower"], pair["p_a_beats_b_upper"]
    assert [text.get_text() for text in axes.texts] == [f"{low:.2f}–{high:.2f}", f"{1 - high:.2f}–{1 - low:.2f}"]
    alone = cs.compare(fit, systems, provenance="annotations")
    wins = alone.beats.to_numpy()
    written = [text.get_text() for text in drawn(figures.beats_matrix(alone)).texts]
    assert written == [f"{wins[0, 1]:.2f}", f"{wins[1, 0]:.2f}"]


def test_certainty_by_agreement_fits_the_least_squares_line():
    agreement = cs.Score(title="agreement", items=np.array([0.0, 0.5, 1.0, np.nan]), draws=np.empty(0))
    certainty = cs.Score(title="certainty", items=np.array([0.2, 0.6, 0.8, 0.9]), draws=np.empty(0))
    axes = drawn(figures.certainty_by_agreement(certainty, agreement))
    np.testing.assert_allclose(axes.get_lines()[0].get_ydata(), [0.7 / 3, 2.5 / 3])
    assert "correlation 0.98" in axes.get_title(loc="left")
    constant = cs.Score(title="certainty", items=np.ones(4), draws=np.empty(0))
    assert not drawn(figures.certainty_by_agreement(constant, agreement)).get_lines()


def test_expected_risk_histogram_counts_every_item():
    score = cs.Score(title="expected risk", items=np.array([0.0, 0.3, 1.9, 2.0]), draws=np.array([1.0]))
    assert sum(patch.get_height() for patch in drawn(figures.expected_risk_histogram(score)).patches) == 4


def test_certainty_by_reliability_draws_a_sweep():
    frame = cs.sweep("dirichlet", annotations(), [0.5, 1, 10], top=(1, 2), draws=64)
    axes = drawn(figures.certainty_by_reliability(frame))
    assert [list(line.get_xdata()) for line in axes.get_lines()] == [[0.5, 1, 10]] * 2
    assert axes.get_xscale() == "log"


def test_simplex_puts_corners_in_the_corners():
    axes = drawn(figures.simplex(np.eye(3), point=np.array([2.0, 0, 0]), labels=STRANGE[:3]))
    dots = axes.collections[0].get_offsets()
    np.testing.assert_allclose(dots, [[0, 0], [1, 0], [0.5, np.sqrt(0.75)]])
    np.testing.assert_allclose(np.ravel(axes.get_lines()[-1].get_xydata()), [0, 0])
    with pytest.raises(ValueError, match="three columns"):
        figures.simplex(np.ones((4, 2)))


@pytest.mark.parametrize("item", STRANGE)
def test_plausibility_bars_take_ids_as_they_are(fit, item):
    axes = drawn(figures.plausibility_bars(fit, str(fit.truth.ids["item"][STRANGE.index(item)])))
    assert sum(bar.get_width() for bar in axes.patches) == pytest.approx(1)
    dots = axes.collections[0]  # a picture would keep its colours on a dark page
    assert len(dots.get_offsets()) <= MOST_POINTS
    assert not dots.get_rasterized()


def test_plausibility_bars_of_an_unknown_item_say_which_exist(fit):
    with pytest.raises(UnknownName, match="no item is called 'nobody'"):
        figures.plausibility_bars(fit, "nobody")


def test_plausibility_draws_have_the_posterior_mean():
    fit = cs.fit("dirichlet", annotations(), draws=5000)
    truth, mean = fit.truth, fit.truth.mean()
    for position, (codes, draws) in enumerate(figures.plausibility_draws(fit, range(5))):
        slots = slice(truth.entries.first[position], truth.entries.first[position + 1])
        np.testing.assert_array_equal(codes, truth.entries.class_[slots])
        error = draws.std(axis=0) / np.sqrt(len(draws)) + 1e-12
        assert np.all(np.abs(draws.mean(axis=0) - mean[slots]) < 5 * error)


def truth_with_other_classes():
    """Two items and five classes; nobody named a class of the second item."""
    entries = Entries.of(np.array([0, 0]), np.array([1, 3]), 2, 5)
    other = OtherMass(np.log([[2.0, 1.0], [1.0, 1.0]]), 1.0, jax.random.key(0))
    truth = PlausibilityDraws(entries, np.log([[1.0, 5.0], [1.0, 2.0]]), other)
    truth.point = PointTruth(entries, np.array([3.0, 7.0]))
    return truth


def test_plausibility_draws_leave_the_mass_of_unnamed_classes():
    (codes, draws), (none, empty) = figures.plausibility_draws(truth_with_other_classes(), [0, 1])
    assert codes.tolist() == [1, 3]
    np.testing.assert_allclose(draws, [[1 / 8, 5 / 8], [1 / 4, 1 / 2]])
    assert (none.shape, empty.shape) == ((0,), (2, 0))


def test_without_any_mass_all_classes_are_alike():
    entries = Entries.of(np.array([0, 0]), np.array([0, 2]), 1, 4)
    truth = PlausibilityDraws(entries, np.array([[-np.inf, -np.inf], [0.0, -np.inf]]))
    (_, draws), *_ = figures.plausibility_draws(truth, [0])
    np.testing.assert_array_equal(draws, [[0.25, 0.25], [1, 0]])


def test_classes_without_a_row_share_one_where_they_matter():
    truth = truth_with_other_classes()
    axes = drawn(figures.plausibility_bars(truth, 0))
    assert texts(axes)[:3] == ["3", "1", "all others (3)"]
    np.testing.assert_allclose([bar.get_width() for bar in axes.patches], [0.7, 0.3, 0])
    np.testing.assert_allclose(axes.collections[0].get_offsets()[:, 0], [5 / 8, 1 / 8, 1 / 4, 1 / 2, 1 / 4, 1 / 4])
    cut = drawn(figures.plausibility_bars(truth, 0, most=1))
    assert texts(cut)[:2] == ["3", "all others (4)"]
    np.testing.assert_allclose([bar.get_width() for bar in cut.patches], [0.7, 0.3])
    assert texts(drawn(figures.plausibility_bars(truth, 1)))[:1] == ["all others (5)"]
    assert not any("others" in text for text in texts(figures.plausibility_bars(truth.point, 0)))


def test_plausibility_draws_of_labels_are_indicators():
    truth = LabelDraws(np.array([[2, 0], [2, 1], [0, 1]]), 3)
    (first, one), (second, two) = figures.plausibility_draws(truth, [1, 0])
    np.testing.assert_array_equal(first, [0, 1])
    np.testing.assert_array_equal(one.mean(axis=0), [1 / 3, 2 / 3])
    np.testing.assert_array_equal(second, [0, 2])
    np.testing.assert_array_equal(two.mean(axis=0), [1 / 3, 2 / 3])
    drawn(figures.plausibility_bars(truth, 1))


def test_axes_of_the_user_are_used_and_settings_left_alone(fit):
    import matplotlib
    from matplotlib.figure import Figure

    before = dict(matplotlib.rcParams)
    axes = Figure().subplots()
    assert figures.sorted_certainty(cs.certainty(fit), axes) is axes
    assert dict(matplotlib.rcParams) == before


def test_figures_never_import_pyplot():
    code = (
        "import sys, numpy as np; from consilience import figures\n"
        "assert 'matplotlib' not in sys.modules\n"
        "figures.simplex(np.ones((2, 3)) / 3); assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- fit.plot, and the tables that show themselves

DRAWN = ("certainty", "items", "annotators", "confusion", "calibration", "trace", "rank", "posterior", "forest")


@pytest.fixture(scope="module")
def crowd():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cs.fit("dawid-skene", cs.example("labels.csv"), draws=50)


@pytest.mark.parametrize("name", DRAWN)
def test_plots_return_the_axes_that_they_are_given(crowd, name):
    ax = Figure().subplots()
    assert getattr(crowd.plot, name)(ax=ax) is ax
    assert ax.has_data() or name == "confusion"
    drawn(ax)


def test_plots_of_records_and_what_a_fit_cannot_draw(crowd):
    sample = Path(cs.__file__).parent / "data" / "examples" / "sample"
    fit = cs.link([sample / "clinic.csv", sample / "register.csv"], restriction="across")
    pair = fit.pairs().iloc[0]
    for axes in (fit.plot.entities(), fit.plot.match_weights(), fit.plot.waterfall(pair["record_a"], pair["record_b"])):
        drawn(axes)
    with pytest.raises(UnknownName, match="'dawid-skene' has no 'num_views' to draw"):
        crowd.plot.views()
    with pytest.raises(UnknownName, match="there is no site 'confusoin'; did you mean 'confusion'"):
        crowd.plot.trace("confusoin")
    with pytest.raises(UnsupportedRequest, match=r"name a figure, such as fit.plot.certainty\(\)"):
        crowd.plot()
    with pytest.raises(UnsupportedRequest, match="a fit by em is one estimate"):
        fit.plot.trace()
    assert set(DRAWN) < set(dir(crowd.plot))


def test_every_public_figure_has_a_home():
    for name in figures.__all__:
        assert getattr(figures, name).__doc__


def test_tables_of_a_fit_show_what_they_are(crowd):
    for name in (*crowd.member.table_names, *crowd.member.measure_names):
        assert name in dir(crowd)
        assert getattr(crowd, name).__doc__
        assert repr(getattr(crowd, name)).endswith("Call it.")
        inspect.signature(getattr(crowd, name))
    assert str(inspect.signature(crowd.confusion)).startswith("(*, annotators")
    for copied in (pickle.loads(pickle.dumps(crowd.labels)), copy.deepcopy(crowd.labels)):
        assert copied().equals(crowd.labels())


def test_a_fit_in_five_lines_errors_first(crowd):
    said = (Note(Level.error, "one"), Note(Level.error, "two"), Note(Level.note, "three"))
    poor = dataclasses.replace(crowd, said=said)
    lines = repr(poor).splitlines()
    assert lines[:2] == ["error: one", "… and 1 more"]
    assert len(lines) == 5
    assert lines[4] == "1 note: fit.findings()"


@pytest.mark.parametrize(("said", "names"), [(0.5, ["as many say either"]), (1.0, [])])
def test_grey_is_in_the_legend_of_pairs_where_it_is_drawn(said, names):
    axes = drawn(views_figures.pairs_by_experts(np.array([[1, said], [said, 1]]), [0, 1]))
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert legend == ["together", "apart", *names]
