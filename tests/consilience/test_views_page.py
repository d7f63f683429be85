"""Figures of views, and the sections of a report that show them."""

import re
from io import BytesIO
from types import SimpleNamespace

import numpy as np
import pandas
import pytest

import consilience as cs
from consilience import views_figures
from consilience.errors import UnsupportedRequest
from consilience.inference.fitting import Fit
from consilience.inference.results import Result
from consilience.models.expert_views import MODEL, BetaPrior, Priors
from consilience.models.expert_views.posterior import finished
from consilience.models.expert_views.simulation import constraints_of
from consilience.models.posterior import Closed, Draws
from consilience.pages import Table, write_page
from consilience.pages.clusters_apart import most_telling
from consilience.pages.run import run_section
from consilience.pages.views import _the, views_page, views_sections

STRANGE = ["<b>&amp;", "a$b_c$", "_hidden", "x\x01y", "a very long name of an expert that would fill a page"]
TITLES = [
    "Which experts share a view", "View 1", "Items of view 1", "View 2", "Items of view 2", "How many views",
    "How reliable each expert is", "Answers worth asking again", "Pairs to ask next", "Items that nobody judged",
]  # fmt: skip


def made(num_experts=5, num_views=2, clusters=3, num_features=3, num_items=40, judged=30, num_restarts=6, **changed):
    """Return a fit of coordinate ascent made by hand: nothing is computed, and nothing compiled."""
    random = np.random.default_rng(num_experts + clusters + num_features)
    size = 30 * num_experts
    a = random.integers(0, judged - 1, size)
    b = random.integers(a + 1, judged)
    expert = np.repeat(np.arange(num_experts), 30)
    names = (STRANGE + [f"expert {number}" for number in range(num_experts)])[:num_experts]
    feature = random.normal(size=(num_items, num_features)) * [1.0, 20.0, 300.0, 4.0, 5.0][:num_features] + 100
    data = constraints_of(expert, a, b, random.integers(0, 2, size), feature, num_experts).replace(
        experts=np.array(names, object), items=np.array([f"item {number}" for number in range(num_items)], object),
        features=np.array([f"size_{number}" for number in range(num_features)], object),
    )
    seen = len(np.unique([a, b]))
    view = np.arange(num_experts) % num_views
    ended = dict(
        sensitivity=random.uniform(5, 40, (num_experts, 2)), specificity=random.uniform(5, 40, (num_experts, 2)),
        stick=np.ones((num_views - 1, 2)), view_probability=0.9 * np.eye(num_views)[view] + 0.1 / num_views,
        weight_mean=random.normal(size=(num_views, num_features + 1, clusters)),
        weight_variance=np.full((num_views, num_features + 1, clusters), 0.1),
        cluster_probability=random.dirichlet(np.full(clusters, 0.3), (seen, num_views)),
        restart_bound=-50.0 * np.arange(num_restarts), feature_mean=feature.mean(axis=0),
        restart_view_probability=np.eye(num_views)[np.tile(view, (num_restarts, 1))],
        feature_scale=feature.std(axis=0),
    )  # fmt: skip
    return fitted(data, ended | changed, clusters, num_views)


def fitted(data, found, clusters, num_views, method="cavi", priors=None, known=True, **settings):
    """Return a fit of a posterior, or of what an ascent ended with, that may not know its priors."""
    resolved = MODEL.resolve(data, priors, {"clusters": clusters, "views": num_views, **settings})
    return Fit(
        member=MODEL, resolved=resolved if known else resolved.replace(given=None), method=method, reason="by hand",
        seed=0, draws=50, posterior=finished(found, resolved) if isinstance(found, dict) else found,
        result=Result.converged,
    )  # fmt: skip


def sampled(fit, num_draws=20):
    """Return a fit of a sampler, by hand, whose draws are of the same posterior."""
    found = fit.posterior
    random = np.random.default_rng(0)
    num_experts, num_views = found.view_probability.shape
    seen, _, clusters = found.cluster_probability.shape
    noise = random.random((num_draws, seen, num_views, 1))
    label = (found.cluster_probability.cumsum(axis=2)[None] < noise).sum(axis=3)
    sites = {
        "view_of_expert": np.tile(found.view_probability.argmax(axis=1), (num_draws, 1)),
        "sensitivity": random.beta(9, 2, (num_draws, num_experts)), "stick": np.full((num_draws, num_views - 1), 0.5),
        "specificity": random.beta(9, 2, (num_draws, num_experts)),
        "weight": random.normal(found.weight_mean, 0.2, (num_draws, *found.weight_mean.shape)),
        "cluster": label.swapaxes(1, 2).astype(np.int8),
    }  # fmt: skip
    chains = {site: values.reshape(2, num_draws // 2, *values.shape[1:]) for site, values in sites.items()}
    return fitted(fit.data, Draws(chains), clusters, num_views, method="gibbs")


@pytest.fixture(scope="module")
def fit():
    return made()


def drawn(axes):
    """Draw, with every warning an error, and return the axes."""
    axes.figure.savefig(BytesIO(), format="png", dpi=40)
    return axes


def section(parts, title):
    return next(part for part in parts if part.title == title)


def words(part):
    return " ".join(block for block in part.blocks if isinstance(block, str))


def tables(part):
    blocks = [block.frame if isinstance(block, Table) else block for block in part.blocks]
    return [block for block in blocks if isinstance(block, pandas.DataFrame)]


# ---- figures ----


def test_numbers_of_views_that_nothing_speaks_for_are_not_drawn():
    count = SimpleNamespace(table=pandas.DataFrame({"views": range(1, 9), "probability": [0, 0, 0, 0.3, 0.7, 0, 0, 0]}))
    axes = drawn(views_figures.number_of_views(count))
    assert [bar.get_height() for bar in axes.patches] == [0, 0.3, 0.7, 0]
    assert [text.get_text() for text in axes.texts] == ["< 0.01", "0.30", "0.70", "< 0.01"]


def test_restarts_are_marked_by_their_grouping():
    frame = pandas.DataFrame({"gap": [0.0, 0.4, 30.0, 5e4], "same_grouping": [True, True, False, True]})
    axes = drawn(views_figures.restart_bounds(frame))
    dots = {line.get_marker(): list(line.get_ydata()) for line in axes.get_lines() if line.get_marker() in ("o", "v")}
    assert dots == {"o": [0.0, 0.4, 5e4], "v": [30.0]}
    top, bottom = axes.get_ylim()[::-1]
    assert top < 0 < 5e4 < bottom


def test_matrix_shows_what_is_probable_and_no_more():
    frame = pandas.DataFrame([[0.998, 0.002], [0.4, 0.6]], index=STRANGE[1:3], columns=[0, 1])
    axes = drawn(views_figures.expert_views(frame))
    assert [text.get_text() for text in axes.texts] == ["> 0.99", "0.40", "0.60"]
    ink = axes.collections[0].get_facecolor()[:, 3]
    assert ink[0] > ink[3] > ink[2] > ink[1]


def test_prior_is_drawn_behind_the_accuracies(fit):
    frame = fit.experts()
    plain = drawn(views_figures.reliability(frame))
    prior = {
        f"{site}_prior_{end}": value for site in ("sensitivity", "specificity")
        for end, value in (("lower", 0.69), ("upper", 1.0))
    }  # fmt: skip
    axes = drawn(views_figures.reliability(frame.assign(**prior)))
    assert len(axes.collections) == len(plain.collections) + 2
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["sensitivity", "specificity", "prior"]
    unknown = frame.assign(sensitivity_prior=np.nan, specificity_prior=np.nan)
    legend = drawn(views_figures.reliability(unknown)).get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["sensitivity", "specificity"]


def test_what_is_uncertain_is_pale_and_what_was_not_judged_is_a_cross():
    probability = np.array([[1.0, 0.0], [0.6, 0.4], [0.1, 0.9], [0.5, 0.5]])
    judged = np.array([True, True, True, False])
    axes = drawn(views_figures.clusters(np.arange(8.0).reshape(4, 2), probability, judged, ("a$b", "b" * 99), "View 1"))
    dots, crosses = axes.collections
    opacity = dots.get_facecolor()[:, 3]
    assert opacity[0] == 1
    assert opacity[1] < opacity[2] < 1
    assert crosses.get_edgecolor()[0, 3] == pytest.approx(0.15)
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["cluster 1", "cluster 2", "never judged"]


# ---- directions ----


def test_features_that_tell_clusters_apart_make_the_axes():
    """Clusters lie in features 1 and 3, whose scales differ by five orders; the weights are turned, and have noise."""
    random = np.random.default_rng(0)
    feature = random.normal(size=(200, 5)) * [1, 1000, 1, 0.01, 1] + [0, 5000, 0, 0, 0]
    weight = random.normal(size=(5, 4)) * 0.01
    weight[[1, 3]] = np.array([[2.0, -2, 0.3, 0.1], [0.1, 0.4, 3, -3]])
    weight = weight / feature.std(axis=0)[:, None]
    probability = np.full((200, 4), 0.25)
    found = most_telling(feature, np.array(["a", "income", "b", "7", "c"], object), weight, probability)
    assert found.names == ("feature 7", "income")
    np.testing.assert_array_equal(found.place, feature[:, [3, 1]])


def test_axes_span_the_plane_in_which_the_logits_of_three_clusters_lie():
    random = np.random.default_rng(1)
    feature = random.normal(size=(50, 6)) * random.uniform(1, 9, 6)
    weight = random.normal(size=(6, 3))
    weight -= weight.mean(axis=1, keepdims=True)
    found = most_telling(feature, [f"f{number}" for number in range(6)], weight, np.full((50, 3), 1 / 3))
    inputs = np.column_stack([found.place, np.ones(50)])
    logits = feature @ weight
    explained, *_ = np.linalg.lstsq(inputs, logits, rcond=None)
    np.testing.assert_allclose(inputs @ explained, logits, atol=1e-9)
    shown = {re.sub(r"^[−+]?\s?", "", term) for name in found.names for term in re.split(r" (?=[−+])", name)}
    assert all(re.fullmatch(r"[\d.e+-]+\s×\sf\d|\d\slesser", term) for term in shown)


def test_sum_on_an_axis_is_what_its_name_says():
    feature = np.random.default_rng(2).normal(size=(30, 2)) * [1, 10]
    weight = np.array([[1.0, -1.0], [-0.1, 0.1]])
    probability = np.random.default_rng(3).dirichlet([1, 1], 30)
    found = most_telling(feature, ["a", "b"], weight, probability)
    assert found.names[1] == "probability of cluster 1"
    np.testing.assert_array_equal(found.place[:, 1], probability[:, 0])
    terms = re.fullmatch(r"([\d.]+)\s×\s(\w) −\s([\d.]+)\s×\s(\w)", found.names[0])
    slope = {terms[2]: float(terms[1]), terms[4]: -float(terms[3])}
    along = feature @ [slope["a"], slope["b"]]
    assert np.corrcoef(along, found.place[:, 0])[0, 1] > 0.999
    assert abs(np.corrcoef(feature @ weight[:, 0], found.place[:, 0])[0, 1]) == pytest.approx(1)


# ---- sections ----


def test_page_of_coordinate_ascent(fit, tmp_path):
    parts = views_sections(fit)
    assert [part.title for part in parts] == TITLES
    assert "1 of 6 restarts" in words(section(parts, "How many views"))
    assert "6 of 6 group" in words(section(parts, "How many views"))
    assert "more restarts may find a better result" in words(section(parts, "How many views"))
    page = write_page(views_page(fit, {}, risk=None), tmp_path / "page.html").read_text()
    assert "<b>&amp;" not in page
    assert page.count("<figure") == 9


def test_nothing_is_surer_than_so_few_draws_can_tell(fit):
    """Twenty draws, at most, tell no probability from 1 beyond 1 − 3 / 20."""
    page = views_page(sampled(fit), {}, risk=None)
    asked = section(page.sections, "Pairs to ask next").blocks[-1]
    matrix = page.figure
    texts = [*asked.texts["together"], *(text.get_text() for text in matrix.texts)]
    bounds = {float(text[2:]) for text in texts if text.startswith(">")}
    assert bounds
    assert max(bounds) <= 0.85
    assert all(0.15 <= float(text) <= 0.85 for text in texts if text[0] not in "<>")


def test_commands_have_the_folder_of_the_fit_where_it_is_known(tmp_path):
    fit = cs.fit("dirichlet", cs.Annotations.from_counts([[3, 0], [1, 2]]))
    path = tmp_path / "page.html"
    page = cs.report(fit, path=path).read_text()
    assert "cs.compare(fit, " in page
    assert "consilience compare" not in page
    fit.save(tmp_path / "my votes")
    page = cs.report(cs.load_fit(tmp_path / "my votes"), path=path).read_text()
    assert "consilience compare &#39;my votes&#39; " in page
    assert " RUN " not in page


def test_page_of_a_sampler_has_no_restarts(fit):
    parts = views_sections(sampled(fit))
    assert [part.title for part in parts] == TITLES
    assert "draws of a sampler" in words(section(parts, "How many views"))
    assert "Coordinate ascent" not in words(parts[0])


def test_every_expert_has_intervals(fit):
    table = tables(section(views_sections(fit), "How reliable each expert is"))[0]
    assert set(table["expert"]) == set(STRANGE)
    assert list(table["view"]) == sorted(table["view"])
    for site in ("sensitivity", "specificity", "weight"):
        ends = table[f"95 % of {site}"].str.replace("−", "-").str.extract(r"^(-?[\d.]+) to (-?[\d.]+)$").astype(float)
        value = table[site].astype(float)
        assert (ends[0] <= value).all()
        assert (value <= ends[1]).all()


def test_intervals_that_are_too_narrow_are_said_to_be(fit):
    title = "How reliable each expert is"
    assert "contained 65 % of the values, and pairs" in words(section(views_sections(fit), title))
    assert "too narrow" not in words(section(views_sections(sampled(fit)), title))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "fit expert-views ANSWERS.csv --features ITEMS.csv --clusters 3 --views 2 --draws {} -o longer"),
        ({"priors": Priors(sensitivity=BetaPrior(2.0, 2.0))}, ""),
    ],
)
def test_few_effective_draws_have_a_command_where_one_can_tell_all(given, told):
    one = sampled(made(), 40)
    one = fitted(one.data, one.posterior, 3, 2, "gibbs", **given)
    first = views_page(one, {}, risk=None).actions[0]
    draws = -(-400 // one.worst.size) * one.draws
    assert first.command.removeprefix("consilience ") == told.format(f"{draws:.0f}")
    assert first.section == ("" if told else "What was run")


def test_answers_that_may_tell_nothing_are_a_finding():
    """Of expert 2 sensitivity and specificity are near a half, so that the interval of the weight has both signs."""
    known = {site: np.tile([30.0, 4.0], (5, 1)) for site in ("sensitivity", "specificity")}
    half = {site: np.where(np.arange(5)[:, None] == 2, 20.0, value) for site, value in known.items()}
    for one, found in ((made(**half), ["The answers of _hidden may carry no information"]), (made(**known), [])):
        page = views_page(one, {}, risk=None)
        assert [text.partition(":")[0] for text in page.findings if "may carry no information" in text] == found
        reliable = words(section(page.sections, "How reliable each expert is"))
        assert ("may carry no information" in reliable) == bool(found)


def test_prior_that_is_not_known_is_not_drawn(fit):
    own = fitted(fit.data, fit.posterior, 3, 2, priors=Priors(sensitivity=BetaPrior(2.0, 2.0)))
    loaded = fitted(fit.data, fit.posterior, 3, 2, known=False)
    drawn_of = [
        section(views_sections(one), "How reliable each expert is").blocks[-3].collections for one in (own, loaded)
    ]
    assert len(drawn_of[0]) == len(drawn_of[1]) + 2
    ends = np.array(drawn_of[0][0].get_segments())[:, :, 0]
    np.testing.assert_allclose(ends, [[0.0943, 0.9057]] * 5, atol=1e-3)


def spammers(num_draws=20):
    """Return a fit of a sampler of experts who know or guess, by hand: its prior has a mean and no interval."""
    one = sampled(made(), num_draws)
    random = np.random.default_rng(1)
    chains = one.posterior.chains
    known = {site: random.beta(9, 2, chains["sensitivity"].shape) for site in ("knowledge", "guess")}
    return fitted(one.data, Draws(chains | known), 3, 2, "gibbs", experts="spammer")


def test_words_and_legend_tell_of_no_prior_that_is_not_drawn(fit):
    title = "How reliable each expert is"
    loaded = fitted(fit.data, fit.posterior, 3, 2, known=False)
    for one, said, width in ((fit, "behind each is the prior", 5.5), (spammers(), "a tick is", 0)):
        part = section(views_sections(one), title)
        assert said in words(part)
        *_, (legend, name) = zip(*legend_of(part.blocks[-3]), strict=True)
        assert (name, legend.get_linewidth()) == ("prior", width)
    part = section(views_sections(loaded), title)
    assert "prior" not in words(part)
    assert [name for _, name in zip(*legend_of(part.blocks[-3]), strict=True)] == ["sensitivity", "specificity"]


def test_what_was_run_lists_the_priors_of_these_experts(fit):
    for one, used in ((fit, {"sensitivity", "specificity"}), (spammers(), {"knowledge", "guess"})):
        _, priors = tables(run_section(one, {}))
        assert set(priors["of"]) == {"concentration", "weight scale"} | used


def legend_of(axes):
    """Return the lines of the legend of a figure, and their names."""
    legend = axes.get_legend()
    return legend.get_lines(), [text.get_text() for text in legend.get_texts()]


def test_view_that_nobody_most_probably_has_is_no_section():
    """All five experts have the first view with 0.4 and the others with 0.3: three views are used, and one is held."""
    probability = np.tile([0.4, 0.3, 0.3], (5, 1))
    unsure = made(num_views=3, view_probability=probability)
    assert unsure.truth.used_views().tolist() == [0, 1, 2]
    parts = views_sections(unsure)
    assert [part.title for part in parts if part.title.startswith("View")] == ["View 1"]
    assert "Views 2, 3 probably exist, but no expert most probably has it" in words(parts[0])
    assert "views whose use is more probable than not: 3" in repr(unsure.num_views())


def test_long_tables_say_how_much_was_cut():
    crowd = made(num_experts=50, num_items=400, judged=60)
    parts = views_sections(crowd)
    assert "The 40 of 50 experts with the least certain view are shown" in words(parts[0])
    assert "40 of 50 experts are shown" in words(section(parts, "How reliable each expert is"))
    assert len(tables(section(parts, "How reliable each expert is"))[0]) == 40
    silent = section(parts, "Items that nobody judged")
    assert f"{len(crowd.truth.silent)} of 400 items" in words(silent)
    assert "The 15 least certain" in words(silent)
    again = section(parts, "Answers worth asking again")
    assert [len(table) for table in tables(again)] == [15, 8, 8]
    assert "of 50 experts the 15 with the largest share" in words(again)
    assert tables(again)[0]["share"].is_monotonic_decreasing
    assert tables(again)[1]["gain"].is_monotonic_decreasing
    assert tables(again)[2]["probability"].is_monotonic_increasing
    number = len(crowd.table("contradictions", limit=10_000))
    assert f"{number:,} of 1,500 answers ({number / 15:.1f} %) contradict" in words(again)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([0.1], "The one least probable"),
        ([0.1, 0.2], "The 2 least probable"),
        ([*range(8), 9, 9], "The 8 least probable"),
        ([*range(7), 8, 8, 9], "The 8 least probable; 1 more has the same probability as the last one shown"),
        ([*range(7), 8, 8, 8.0001, 9], "The 8 least probable; 2 more have the same probability as the last one shown"),
    ],
)
def test_rows_that_cut_through_ties_say_so(values, said):
    shuffled = pandas.Series(values, dtype=float).sample(frac=1, random_state=0)  # so that the index is in no order
    assert _the("least probable", shuffled.sort_values(), "probability") == said


@pytest.mark.parametrize("unsure", [False, True])
def test_what_is_sure_is_counted_and_nothing_is_asked_for_where_all_is(unsure):
    """Two of five experts, or none, have no sure view; all items, or all but those of a view, have a sure cluster."""
    view = np.where((np.arange(5) < 2 * unsure)[:, None], [0.55, 0.45], [0.95, 0.05])
    seen = len(made(num_views=2).truth.judged)
    cluster = np.tile([0.5, 0.3, 0.2] if unsure else [0.97, 0.02, 0.01], (seen, 2, 1))
    page = views_page(made(num_items=30, view_probability=view, cluster_probability=cluster), {}, risk=None)
    (_, first_tile, second_tile, _), known = page.numbers, list(page.numbers.values())
    if unsure:
        assert first_tile == "of 5 experts with a clear view (probability 0.9 or more)"
        assert "clearly assigned, given at most 3 clusters a view" in second_tile
        assert known[1] == 3
        assert known[2] < 30
    else:  # that all is sure would be three tiles of one thing
        assert first_tile == (
            "items in 1 cluster, all clearly assigned (probability 0.9 or more), given at most 3 clusters a view"
        )
        assert known[1] == "30"
        assert re.match(r"of .+'s answers contradict the clusters \(", second_tile)
    assert ("have an uncertain view" in page.findings[0]) == unsure
    first = " ".join([*page.numbers, *page.findings, *words(page.sections[0]).split("\n")])
    assert first.count("clear view (probability") == unsure
    assert "nats" not in first
    assert "one bit" not in first
    asked = [action.section for action in page.actions]
    assert ("Pairs to ask next" in asked) == unsure
    assert ("More answers would make the clusters more certain." in " ".join(page.findings)) == unsure
    assert " ".join([*page.findings, *map(words, page.sections)]).count("would hardly change the clusters") <= 1
    assert sum(action.words.startswith("Compare the clusters with") for action in page.actions) == (not unsure)


def test_pairs_of_items_are_drawn_by_cluster_beside_what_was_said():
    one = made(num_features=0)
    part = section(views_sections(one), "View 1")
    model, experts = next(block for block in part.blocks if isinstance(block, list))
    data, label = one.data, one.truth.consensus(0)
    own = one.truth.view_probability.argmax(axis=1)[np.asarray(data.expert)] == 0
    same = (label[np.asarray(data.item_a)] == label[np.asarray(data.item_b)])[own]
    said = np.asarray(data.together)[own]
    for which, name in ((same, "one cluster"), (~same, "different clusters")):
        text = f"in {100 * said[which].mean():.1f} % of {which.sum()} answers about items of {name}"
        assert text in words(part)
    colour, answered = (drawn(axes).images[0].get_array() for axes in (model, experts))
    order = np.lexsort([-one.truth.cluster_probability[:, 0].max(axis=1), label])
    row, column = 3, 17
    chance = one.truth.pair_probability(order[[row]], order[[column]])[0, 0]
    assert colour[row, column, 3] == pytest.approx(0.9 * chance)
    asked = {frozenset(pair) for pair in zip(np.asarray(data.item_a)[own], np.asarray(data.item_b)[own], strict=True)}
    below = [(i, j) for i in range(len(order)) for j in range(i)]
    assert all((answered[i, j, 3] > 0) == (frozenset((order[i], order[j])) in asked) for i, j in below)
    for one_of in (colour, answered):
        np.testing.assert_allclose(one_of, np.swapaxes(one_of, 0, 1))


def test_clusters_without_items_are_counted_and_not_listed():
    judged = len(made(num_views=1, num_items=30, num_features=0).truth.judged)
    cluster = np.tile([0.97, 0.02, 0.01], (judged, 1, 1))
    one = made(num_views=1, num_items=30, num_features=0, cluster_probability=cluster)
    part = section(views_sections(one), "View 1")
    assert tables(part)[0]["cluster"].tolist() == [1]
    assert "Of the 3 clusters that a view may have 2 are empty (" in words(part)


@pytest.mark.parametrize(("gain", "told"), [(0.2, True), (0.03, False)])
def test_answers_are_called_worth_asking_again_only_where_that_tells_something(monkeypatch, gain, told):
    """What is settled to a twentieth is not worth asking, whatever the table has to show."""
    one, kept = made(), Fit.table

    def table(self, name, **given):
        frame = kept(self, name, **given)
        return frame.assign(gain=gain) if name == "contradictions" else frame

    monkeypatch.setattr(Fit, "table", table)
    page = views_page(one, {}, risk=None)
    assert any("may be worth asking again" in name for name in page.numbers) is told
    title = "Answers worth asking again" if told else "Answers that contradict the clusters"
    hardly = "the clusters would hardly change if any one were asked again"
    assert (hardly in section(page.sections, title).gist) is not told


def test_answers_against_the_others_are_counted_by_expert(fit):
    counted_by = tables(section(views_sections(fit), "Answers worth asking again"))[0].set_index("expert")
    known = fit.table("contradictions", limit=10_000)["expert"].value_counts()
    assert counted_by["against the clusters"].sum() == len(fit.table("contradictions", limit=10_000))
    assert counted_by["against the clusters"].to_dict() == {name: known.get(name, 0) for name in STRANGE}


def test_questions_ask_of_every_view_and_of_no_item_twice():
    table = tables(section(views_sections(made()), "Pairs to ask next"))[0]
    assert set(table["view"]) == {1, 2}
    for _, own in table.groupby("view"):
        items = [*own["item a"], *own["item b"]]
        assert len(set(items)) == len(items)


def test_many_views_are_not_all_drawn():
    parts = views_sections(made(num_experts=16, num_views=8))
    assert sum(part.title.startswith("View") for part in parts) == 6
    assert "The 6 of 8 views with most experts are shown" in words(section(parts, "View 1"))


def test_one_expert_two_clusters_one_feature(tmp_path):
    """The least that there can be; nobody is silent, and nothing is left to compare restarts with."""
    fit = made(num_experts=1, num_views=1, clusters=2, num_features=1, num_items=30, num_restarts=1)
    titles = [part.title for part in views_sections(fit)]
    assert "View 2" not in titles
    assert cs.report(fit, path=tmp_path / "page.html").read_text().count("<figure") == 4


def test_every_item_stands_under_its_cluster_with_what_is_not_sure():
    one = made(num_features=0)
    part = section(views_sections(one), "View 1")
    clusters, (items,) = tables(part)[0], tables(section(views_sections(one), "Items of view 1"))
    label, sure = one.truth.consensus(0), one.truth.cluster_probability[:, 0].max(axis=1)
    known = dict(zip(items["item"], zip(items["cluster"], items["probability"], strict=True), strict=True))
    assert known == {f"item {item}": (label[item] + 1, sure[item]) for item in range(one.data.num_items)}
    assert items["cluster"].is_monotonic_increasing
    for row in clusters.itertuples():
        own = items[items["cluster"] == row.cluster]
        assert own["probability"].is_monotonic_decreasing
        assert (row.items, row._3) == (len(own), (own["probability"].round(2) < 0.9).sum())
        assert row._5.removesuffix(", …").split(", ") == own["item"].tolist()[:3]
    assert len(clusters) == 3
    assert "are empty" not in words(part)
    assert part.gist.endswith(f"; {(sure.round(2) < 0.9).sum()} items are not clearly assigned")
    assert "can still be in the wrong cluster" in words(part)
    is_drawn = [isinstance(block, list) or hasattr(block, "get_title") for block in part.blocks]
    drawn_at = np.flatnonzero(is_drawn).tolist()
    listed_at = [place for place, block in enumerate(part.blocks) if isinstance(block, Table)]
    assert drawn_at[0] < listed_at[0]
    # Without features the first picture is of the items whose cluster is least certain.
    drawn_items = [text.get_text() for text in part.blocks[drawn_at[0]].get_yticklabels()]
    assert drawn_items == [f"item {item}" for item in np.argsort(sure, kind="stable")[:20]]


def test_link_of_your_own_has_the_features_that_differ_most():
    """Weights of such a link say nothing of single features; the clusters themselves do."""
    base = made(num_features=2)
    feature = base.data.feature
    sure = np.eye(3)[(feature[:, 1] > 100).astype(int)]
    changed = {
        "cluster_probability": np.stack([sure[base.truth.judged]] * 2, axis=1),
        "weight_variance": np.full((2, 3, 3), 1e-6),
    }
    fit = sampled(fitted(base.data, Closed(base.posterior.factors, base.posterior.hidden | changed), 3, 2))
    fit = fitted(fit.data, fit.posterior, 3, 2, "gibbs", Priors(logits=lambda weight, inputs: inputs @ weight))
    part = section(views_sections(fit), "View 1")
    assert "differs most between the clusters" in words(part)
    *_, axes = (block for block in part.blocks if hasattr(block, "get_xlabel"))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("size_1", "size_0")


def test_weights_of_features_in_large_units_keep_their_digits(fit):
    """The third feature has numbers three hundred times as large as the first, and weights as much smaller."""
    table = tables(section(views_sections(fit), "View 1"))[1].set_index("feature")
    known = fit.directions()
    known = known[(known["view"] == 0) & (known["cluster"] == 0)].set_index("feature")
    for feature, rounding in (("size_0", 0.06), ("size_2", 0.0006)):
        mean, lower, upper = re.fullmatch(r"(\S+) \((\S+) to (\S+)\)", table.loc[feature, "cluster 1"]).groups()
        for text, name in ((mean, "weight"), (lower, "lower"), (upper, "upper")):
            assert float(text.replace("−", "-")) == pytest.approx(known.loc[feature, name], abs=rounding)


def test_report_of_views_takes_no_systems(fit, tmp_path):
    page = cs.report(fit, path=tmp_path / "page.html", title="Ours").read_text()
    assert "<h1>Ours</h1>" in page
    assert "cs.read_constraints(…, features=…)" in page
    assert made(num_features=0).data.read_from == "…"
    system = cs.Partition.from_codes(np.zeros(fit.data.num_items, int))
    with pytest.raises(UnsupportedRequest, match="score partitions by evaluate, view by view"):
        cs.report(fit, {"mine": system}, path=tmp_path / "other.html")


@pytest.mark.parametrize("shape", [(5, 2), (4, 3), (3,)])
def test_weights_of_a_link_of_your_own_bear_no_names_of_features(shape):
    """Three features and the offset are the rows of the linear link's weights; those of another link are what it is."""
    one = sampled(made(num_features=3))
    weight = np.random.default_rng(0).normal(size=(2, 10, 2, *shape))
    priors = Priors(logits=lambda weight, inputs: inputs[:, :3] * weight.sum())
    fit = fitted(one.data, Draws({**one.posterior.chains, "weight": weight}), 3, 2, "gibbs", priors)
    posterior = fit.to_arviz().posterior
    linear = shape == (4, 3)
    own = ("view", "feature", "of_cluster") if linear else tuple(f"weight_dim_{axis}" for axis in range(1 + len(shape)))
    assert posterior["weight"].dims == ("chain", "draw", *own)
    assert ("feature" in posterior.coords) is linear
    assert posterior["sensitivity"].dims == ("chain", "draw", "expert")
    assert len(fit.summary()) > 0
