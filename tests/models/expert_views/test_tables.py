"""Tables of a small fit, recomputed in other ways."""

import itertools

import jax
import numpy as np
import pytest
from scipy import integrate, stats

from consilience.errors import ConsilienceWarning, UnsupportedRequest
from consilience.models.expert_views import MODEL, tables
from consilience.models.expert_views.canonical import OWN_LINK
from consilience.models.expert_views.priors import BetaPrior, Priors


@pytest.fixture(scope="module")
def views(constraints, posterior, fitted):
    return fitted(posterior, constraints, num_draws=400)


@pytest.fixture(scope="module")
def drawn(constraints, sites, fitted):
    return fitted(sites[1], constraints, known=False)


@pytest.mark.parametrize("name", MODEL.table_names)
@pytest.mark.parametrize("kind", ["ascent", "draws"])
def test_columns_have_one_length_and_no_gaps(views, drawn, name, kind):
    table = (views if kind == "ascent" else drawn).table(name)
    assert list(table) == [column.name for column in MODEL.table(name).columns if column.name in table]
    assert len({len(values) for values in table.values()}) == 1
    for column, values in table.items():
        prior = kind == "draws" and column.endswith("_prior")  # which nobody told
        assert prior or values.dtype == object or np.isfinite(values).all(), column
    for column in set(table) & {"probability", "together", "sensitivity", "used", "spammer_probability"}:
        assert (table[column] >= 0).all()
        assert (table[column] <= 1).all()


def test_views(posterior, views):
    table = views.table("views")
    assert table["item"].tolist() == np.repeat(np.arange(8), 2).tolist()
    assert table["view"].tolist() == [0, 1] * 8
    np.testing.assert_array_equal(table["cluster"][:12].reshape(6, 2), posterior.cluster_probability.argmax(axis=2))
    np.testing.assert_allclose(table["probability"][:12].reshape(6, 2), posterior.cluster_probability.max(axis=2))


def test_the_table_of_experts(posterior, views):
    table = views.table("experts")
    assert table["view"].tolist() == [0, 0, 0, 1]
    np.testing.assert_allclose(table["probability"], [0.9, 0.8, 0.6, 0.95])
    own = stats.beta(30, 3)
    np.testing.assert_allclose(
        [table[name][0] for name in ("sensitivity", "sensitivity_lower", "sensitivity_upper")],
        [own.mean(), *own.interval(0.95)],
    )
    np.testing.assert_allclose(table["specificity_prior"], 3 / 4.5)
    assert table["answers"].tolist() == [6, 6, 6, 6]
    odds = [
        integrate.quad(lambda x, a=a, b=b: np.log(x / (1 - x)) * stats.beta.pdf(x, a, b), 0, 1)[0]
        for a, b in (posterior.sensitivity[3], posterior.specificity[3])
    ]
    np.testing.assert_allclose(table["weight"][3], sum(odds), atol=1e-3)  # of a thousand quantiles
    random = np.random.default_rng(0)
    one, other = (random.beta(a, b, 200_000) for a, b in (posterior.sensitivity[3], posterior.specificity[3]))
    useless = (one + other - 1 < 0.1).mean()
    assert abs(table["spammer_probability"][3] - useless) < 5 * np.sqrt(useless * (1 - useless) / 1000)
    assert table["spammer"].tolist() == [False, False, False, True]


def test_accuracies_per_view_are_those_of_the_own_view(constraints, posterior, fitted):
    wide = posterior._replace(sensitivity=np.stack([posterior.sensitivity, posterior.sensitivity + 5], axis=1))
    wide = wide._replace(specificity=np.stack([posterior.specificity, posterior.specificity + 5], axis=1))
    found = fitted(wide, constraints, experts="per-view").table("experts")["sensitivity"]
    np.testing.assert_allclose(found, [30 / 33, 12 / 14, 11 / 15, 7 / 14])


def test_accuracies_that_nearly_nothing_is_known_of_have_finite_weights(constraints, posterior, fitted):
    vague = posterior._replace(sensitivity=np.full((4, 2), 0.02), specificity=np.full((4, 2), 0.03))
    table = fitted(vague, constraints).table("experts")
    assert all(np.isfinite(table[column]).all() for column in ("weight", "weight_lower", "weight_upper"))


def test_priors_of_other_kinds(constraints, posterior, sites, fitted):
    own = Priors(sensitivity=BetaPrior(3.0, 1.0))
    alike = posterior._replace(specificity=posterior.sensitivity)
    symmetric = fitted(alike, constraints, priors=own, experts="symmetric")
    table = symmetric.table("experts")
    np.testing.assert_allclose(table["specificity_prior"], 0.75)
    # One accuracy stands for both, so that twice its value is to be above 1.1.
    exact = stats.beta.cdf(0.55, *posterior.sensitivity.T)
    np.testing.assert_allclose(table["spammer_probability"], exact, atol=1e-3)  # one in a thousand quantiles
    guessing = {**sites[1], "knowledge": sites[1]["sensitivity"], "guess": sites[1]["specificity"]}
    of_spammers = fitted(guessing, constraints, experts="spammer")
    table = of_spammers.table("experts")
    np.testing.assert_allclose(table["sensitivity_prior"], 2 / 3 + 1 / 3 * 0.5)
    for site, prior in (("knowledge", 2 / 3), ("guess", 0.5)):
        np.testing.assert_allclose(table[site], guessing[site].mean(axis=0))
        np.testing.assert_allclose(table[f"{site}_lower"], np.quantile(guessing[site], 0.025, axis=0))
        np.testing.assert_allclose(table[f"{site}_upper"], np.quantile(guessing[site], 0.975, axis=0))
        np.testing.assert_allclose(table[f"{site}_prior"], prior)
    assert "knowledge" not in symmetric.table("experts")


def test_accuracies_of_draws(sites, drawn):
    table = drawn.table("experts")
    draws = sites[1]["sensitivity"]
    np.testing.assert_allclose(table["sensitivity"], draws.mean(axis=0))
    np.testing.assert_allclose(table["sensitivity_lower"], np.quantile(draws, 0.025, axis=0))


def test_same_view(posterior, views, monkeypatch):
    table = views.table("same_view")
    phi = posterior.view_probability
    assert len(table["expert_a"]) == 6
    np.testing.assert_allclose(table["probability"][2], phi[0] @ phi[3])
    monkeypatch.setattr(tables, "_MOST_EXPERTS", 3)
    with pytest.raises(UnsupportedRequest, match=r"by fit\.truth\.same_view\(a, b\)"):
        views.table("same_view")


def test_view_sizes(posterior, views):
    table = views.table("view_sizes")
    np.testing.assert_allclose(table["experts"], posterior.view_probability.sum(axis=0))
    label = views.truth.cluster_probability.argmax(axis=2)
    for view in range(2):
        sizes = sorted(np.unique(label[:, view], return_counts=True)[1].tolist(), reverse=True)
        assert table["sizes"][view] == " + ".join(map(str, sizes))
        assert table["clusters"][view] == len(sizes)


def test_contradictions(constraints, posterior, views):
    table = views.table("contradictions", limit=50)
    assert (np.diff(table["probability"]) >= 0).all()
    number = np.arange(24)
    together = np.array([
        views.truth.together(a, b, expert=expert)[0]
        for expert, a, b in zip(constraints.expert, constraints.item_a, constraints.item_b, strict=True)
    ])  # fmt: skip
    against = number[np.where(constraints.together == 1, together < 0.5, together > 0.5)]
    assert 0 < len(against) < 24
    listed = zip(table["expert"], table["item_a"], table["item_b"], strict=True)
    answers = list(zip(constraints.expert, constraints.item_a, constraints.item_b, strict=True))
    assert sorted(answers.index(row) for row in listed) == against.tolist()
    row = 0
    expert, a, b = (int(table[name][row]) for name in ("expert", "item_a", "item_b"))
    says = 0.0
    for view in range(2):
        together = views.truth.together(a, b, view=int(view))[0]
        alpha, beta = (stats.beta(*getattr(posterior, site)[expert]).mean() for site in ("sensitivity", "specificity"))
        says += posterior.view_probability[expert, view] * (together * alpha + (1 - together) * (1 - beta))
    given = says if table["answer"][row] == "together" else 1 - says
    assert table["probability"][row] == pytest.approx(given)
    assert table["together"][row] == pytest.approx(views.truth.together(a, b, expert=expert)[0])
    assert (table["gain"] > 0).all()


def test_an_expert_who_seldom_says_together_does_not_contradict_himself(constraints, posterior, fitted):
    """Every "together" of his is improbable; it goes against the others only where these are apart."""
    blind = posterior._replace(sensitivity=np.array([[1.0, 30.0]] * 4), specificity=np.array([[30.0, 1.0]] * 4))
    own = fitted(blind, constraints, known=False)
    table = own.table("contradictions")
    said = table["answer"] == "together"
    assert 0 < len(said)
    assert (table["together"][said] < 0.5).all()
    assert (table["together"][~said] > 0.5).all()


def both(sensitivity, specificity):
    """Return how probable apart and together are, of pairs that are apart, and that are together."""
    return np.array([specificity, 1 - specificity]), np.array([1 - sensitivity, sensitivity])


def test_information():
    assert tables.information(0.5, *both(1.0, 1.0)) == pytest.approx(np.log(2))
    assert tables.information(0.3, *both(0.6, 0.4)) == pytest.approx(0)  # says nothing
    together, apart = np.array([0.1, 0.2, 0.7]), np.array([0.6, 0.3, 0.1])
    joint = np.stack([0.3 * together, 0.7 * apart])
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    expected = (joint * np.log(joint / independent)).sum()
    assert tables.information(0.3, apart, together) == pytest.approx(expected)


def test_questions(constraints, posterior, views):
    table = views.table("questions", limit=10)
    assert len(table["gain"]) == 10
    assert (np.diff(table["gain"]) <= 0).all()
    assert (table["item_a"] < table["item_b"]).all()
    judged = (constraints.expert, constraints.item_a, constraints.item_b)
    judged = set(zip(*(one.tolist() for one in judged), strict=True))
    rows = list(zip(*(table[name].tolist() for name in ("expert", "item_a", "item_b", "view")), strict=True))
    assert not judged & {row[:3] for row in rows}
    # Of eight items all pairs are candidates: the best question of all is among them.
    everything = []
    for view in range(2):
        together = views.truth.together(*np.array(list(itertools.combinations(range(8), 2))).T, view=view)
        for expert in np.flatnonzero(posterior.view_probability.argmax(axis=1) == view):
            accuracy = [stats.beta(*getattr(posterior, site)[expert]).mean() for site in ("sensitivity", "specificity")]
            everything += [
                tables.information(share, *both(*accuracy))
                for pair, share in zip(itertools.combinations(range(8), 2), together, strict=True)
                if (expert, *pair) not in judged
            ]
    assert table["gain"][0] == pytest.approx(max(everything))


def test_restarts(views, drawn):
    table = views.table("restarts")
    assert table["restart"].tolist() == [1, 2, 0]
    np.testing.assert_allclose(table["gap"], [0, 0.1, 1.5])
    assert table["same_grouping"].tolist() == [True, True, False]  # whatever the views are called
    assert table["views"].tolist() == [2, 2, 2]
    assert len(drawn.table("restarts")["bound"]) == 0


def test_directions(posterior, views):
    table = views.table("directions")
    centred = posterior.weight_mean - posterior.weight_mean.mean(axis=2, keepdims=True)
    place = table["view"], table["feature"], table["cluster"]
    np.testing.assert_allclose(table["weight"], centred[place] / posterior.feature_scale[table["feature"]], atol=1e-6)
    first = table["importance"].reshape(2, -1)
    assert (np.diff(first, axis=1) <= 0).all()
    random = np.random.default_rng(0)
    drawn = random.normal(posterior.weight_mean, np.sqrt(posterior.weight_variance), (50_000, 2, 3, 3))
    drawn -= drawn.mean(axis=3, keepdims=True)
    row = 4
    own = drawn[:, table["view"][row], table["feature"][row], table["cluster"][row]]
    width = (table["upper"][row] - table["lower"][row]) * posterior.feature_scale[table["feature"][row]]
    error = np.sqrt(0.025 * 0.975 / 400) / stats.norm.pdf(1.96) / 1.96  # of quantiles of 400 draws, relative
    assert width == pytest.approx(2 * 1.96 * own.std(), rel=4 * error / np.sqrt(2))


def test_directions_of_a_link_of_ones_own(constraints, sites, fitted):
    own = Priors(logits=lambda weight, x: x @ weight)
    saved = {**sites[1], OWN_LINK: np.ones(60, bool)}
    other = {**sites[1], "weight": sites[1]["weight"][..., 0, 0]}  # of a shape that is not the linear link's
    for found, priors in ((sites[1], own), (saved, None), (other, None)):
        views = fitted(found, constraints, priors=priors, known=priors is not None)
        with pytest.raises(UnsupportedRequest, match="a link of your own have no directions"):
            views.table("directions")


def test_constant_features_have_no_direction(constraints, posterior, fitted):
    data = constraints.replace(feature=constraints.feature * [1.0, 0.0])
    assert set(fitted(posterior, data).table("directions")["feature"]) == {0}
    nothing = constraints.replace(feature=np.ones((8, 2)))
    assert len(fitted(posterior, nothing).table("directions")["feature"]) == 0


def test_items_that_a_link_that_was_not_saved_would_place_are_left_out(constraints, sites, drawn, fitted):
    marked = {**sites[1], OWN_LINK: np.ones(60, bool)}
    views = fitted(marked, constraints, known=False)
    found = {}
    for name in ("views", "view_sizes", "questions"):
        with pytest.warns(ConsilienceWarning, match="2 of 8 items are in no pair and are left out"):
            found[name] = views.table(name)
    expected = drawn.table("views")
    judged = expected["item"] < 6
    for column, values in found["views"].items():
        np.testing.assert_array_equal(values, expected[column][judged])
    assert [sum(map(int, text.split(" + "))) for text in found["view_sizes"]["sizes"]] == [6, 6]
    assert 0 < len(found["questions"]["item_a"])
    assert found["questions"]["item_b"].max() < 6
    # Where all items were judged nothing is left out.
    few = constraints.replace(num_items=6, feature=constraints.feature[:6], items=constraints.items[:6])
    views = fitted(marked, few, known=False)
    assert len(views.table("views")["item"]) == 12


def test_codes_of_judged_items_are_kept_where_others_are_left_out(constraints, sites, fitted):
    """The silent items come first: places among the judged ones are not their codes."""
    moved = constraints.replace(item_a=constraints.item_a + 2, item_b=constraints.item_b + 2)
    marked = {**sites[1], OWN_LINK: np.ones(60, bool)}
    views = fitted(marked, moved, known=False)
    with pytest.warns(ConsilienceWarning, match="left out"):
        assert set(views.table("views")["item"]) == set(range(2, 8))
    with pytest.warns(ConsilienceWarning, match="left out"):
        asked = views.table("questions")
    np.testing.assert_allclose(asked["together"], [
        views.truth.together(a, b, view=int(view))[0]
        for a, b, view in zip(asked["item_a"], asked["item_b"], asked["view"], strict=True)
    ])  # fmt: skip


def test_what_is_said_of_a_fit(constraints, posterior, fitted):
    notes = fitted({}, constraints).said()
    assert any("2 of 8 items are in no pair" in note for note in notes)
    assert any("fewer than 50 answers" in note and "mean 0.67, the weight of 4.5 answers" in note for note in notes)
    assert not any("one kind only" in note for note in notes)
    assert not fitted({}, constraints, known=False).said("fewer than 50 answers")
    spammers = fitted({}, constraints, priors=Priors(knowledge=BetaPrior(1.0, 9.0)), experts="spammer")
    assert spammers.said("the prior of knowledge (mean 0.10, the weight of 10 answers)")
    same = fitted({}, constraints.replace(together=np.ones(24, np.int32), feature=np.ones((8, 2))))
    assert same.said("4 of 4 experts gave answers of one kind only")
    assert same.said("2 of 2 features are constant")
    assert fitted(posterior, constraints).said()[0].startswith("all 2 views are used; there may be more")
    assert fitted(posterior, constraints).said("who shares one and the accuracies are of one optimum")
    few = fitted({}, constraints)
    few.posterior.hidden["ladder_trips"] = np.array([3, 4])
    few.posterior.chains["view_of_expert"] = np.repeat([[[0, 0, 0, 0]], [[0, 0, 0, 1]]], 5, axis=1)
    assert few.said("exchanged 7 times between free and full answers, and ladders differ by 1.00 on who shares a view")
    few.posterior.chains["view_of_expert"] = np.zeros((2, 5, 4), int)  # of a grouping that is sure
    assert not few.said("exchanged")
    few.posterior.chains["view_of_expert"] = np.repeat([[[0, 0, 0, 0]], [[0, 0, 0, 1]]], 5, axis=1)
    few.posterior.hidden["ladder_trips"] = np.array([3, 7])
    assert not few.said("exchanged")
    lonely = posterior._replace(
        restart_bound=-5.0 * np.arange(20.0),
        restart_view_probability=np.repeat(posterior.restart_view_probability[:1], 20, axis=0),
    )
    assert "1 of 20 restarts came within 1 nat of the best bound" in fitted(lonely, constraints).said()[0]


def test_draws_of_all_sites(constraints, posterior, fitted):
    num = 4000
    found = fitted(posterior, constraints).posterior
    draws = found.draws(num, key=jax.random.key(0))
    assert draws["cluster"].shape == (num, 2, 6)
    share = (np.asarray(draws["cluster"]) == 1).mean(axis=0).T
    expected = posterior.cluster_probability[:, :, 1]
    assert (np.abs(share - expected) <= 5 * np.sqrt(expected * (1 - expected) / num) + 1e-9).all()
    for site in ("sensitivity", "specificity", "stick"):
        a, b = getattr(posterior, site).T
        error = stats.beta(a, b).std() / np.sqrt(num)
        assert (np.abs(np.asarray(draws[site]).mean(axis=0) - a / (a + b)) < 5 * error).all()
    weight, sd = np.asarray(draws["weight"]), np.sqrt(posterior.weight_variance)
    assert (np.abs(weight.mean(axis=0) - posterior.weight_mean) < 5 * sd / np.sqrt(num)).all()
    assert (np.abs(weight.std(axis=0) - sd) < 5 * sd / np.sqrt(2 * num)).all()
    # Codes are summarised as the numbers that they are.
    view = found.summary("view_of_expert")
    np.testing.assert_allclose(view.mean, posterior.view_probability[:, 1])
    np.testing.assert_allclose(view.sd**2, posterior.view_probability.prod(axis=1))
    assert (view.lower.tolist(), view.upper.tolist()) == ([0, 0, 0, 0], [1, 1, 1, 1])
    one = fitted(posterior, constraints, experts="symmetric").posterior
    draws = one.draws(5, key=jax.random.key(0))
    np.testing.assert_array_equal(draws["sensitivity"], draws["specificity"])
    for site in ("sensitivity", "specificity"):
        np.testing.assert_array_equal(getattr(one, site), posterior.sensitivity)
        np.testing.assert_allclose(one.summary(site).mean, found.summary("sensitivity").mean)
