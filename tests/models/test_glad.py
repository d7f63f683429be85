"""GLAD on a grid: the equations by loops, the bound, the 1979 table, and what a user asks of it."""

import jax
import numpy as np
import numpyro.distributions as dist
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import digamma, expit, log_expit, logsumexp

import consilience as cs
from consilience.data import Annotations
from consilience.errors import NotConjugate, UnsupportedRequest
from consilience.models import glad
from consilience.models.crowd import grid_ascent
from consilience.models.dirichlet import Symmetric
from consilience.models.glad import GRIDS
from consilience.models.grids import LearnedNormal, OnGrid

pytestmark = [
    pytest.mark.usefixtures("exact_sizes"),
    pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning"),
    pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning"),
]

SIZES = {"num_items": 5, "num_annotators": 3, "num_labels": 3}
ROWS = 12
FIXED = glad.Priors(ability=dist.Normal(1.5, 1.0), log_ease=dist.Normal(0.2, 1.3))
PRODUCT = GRIDS["ability"][:, None] * np.exp(GRIDS["log_ease"])
RIGHT = expit(PRODUCT)


@st.composite
def crowds(draw):
    """Twelve annotations, of one shape; some items and annotators may have none, and some rows weigh nothing."""
    columns = [draw(st.lists(st.integers(0, size - 1), min_size=ROWS, max_size=ROWS)) for size in SIZES.values()]
    weight = draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=ROWS, max_size=ROWS))
    gold = draw(st.lists(st.integers(-1, 2), min_size=5, max_size=5))
    return Annotations.from_codes(*columns, weight=weight, gold=gold, **SIZES)


def random_crowd(seed, rows=slice(None), **more):
    random = np.random.default_rng(seed)
    return Annotations.from_codes(*(random.integers(0, size, ROWS)[rows] for size in SIZES.values()), **SIZES, **more)


def problem_of(data, priors=None, **options):
    return glad.MODEL.engine("cavi").prepare(glad.MODEL.resolve(data, priors, options))


START, STEP = jax.jit(grid_ascent.start), jax.jit(grid_ascent.step)


def ascend(data, steps, priors=None, **options):
    """Return the state and the objective after each step."""
    problem = problem_of(data, priors, **options)
    state, objective = START(None, problem), []
    for _ in range(steps):
        state, terms = STEP(state, problem)
        objective.append(float(terms.items.sum() + terms.shared.sum()))
    return state, np.array(objective)


def by_loops(data, sweeps, prevalence=1.0):
    """Return abilities and label probabilities after so many sweeps of the equations, written out in NumPy."""
    num_labels, points, ease = data.num_labels, GRIDS["ability"], GRIDS["log_ease"]
    right, wrong = log_expit(PRODUCT), log_expit(-PRODUCT) - np.log(num_labels - 1)
    log_pi = stats.norm(2.0, 1.5).logpdf(points)
    share = stats.norm.pdf(ease) / stats.norm.pdf(ease).sum()
    rows = list(zip(*(np.asarray(own) for own in (data.item, data.annotator, data.label, data.weight)), strict=True))
    votes = np.zeros((data.num_items, num_labels))
    for item, _, label, weight in rows:
        votes[item, label] += weight
    found = (votes / votes.sum(axis=1, keepdims=True))[:, :, None] * share

    def abilities():
        named, other = np.zeros((2, data.num_annotators, len(ease)))
        for item, annotator, label, weight in rows:
            named[annotator] += weight * found[item, label]
            other[annotator] += weight * np.delete(found[item], label, axis=0).sum(axis=0)
        log_able = log_pi + named @ right.T + other @ wrong.T
        return np.exp(log_able - logsumexp(log_able, axis=1, keepdims=True))

    able = abilities()
    for sweep in range(1, sweeps + 1):
        shares = prevalence + found.sum(axis=(0, 2))
        log_found = np.zeros(found.shape)
        log_found += (digamma(shares) - digamma(shares.sum()))[:, None] + np.log(share)
        for item, annotator, label, weight in rows:
            for class_ in range(num_labels):
                log_found[item, class_] += weight * able[annotator] @ (right if label == class_ else wrong)
        found = np.exp(log_found - logsumexp(log_found, axis=(1, 2), keepdims=True))
        able = abilities()
        if sweep > 3:
            loc = able.mean(axis=0) @ points
            spread = np.sqrt(max(able.mean(axis=0) @ (points - loc) ** 2, 0.05))
            log_pi = stats.norm(loc, spread).logpdf(points)
            share = share / 2 + (found.sum(axis=(0, 1)) + 1) / (2 * (data.num_items + len(ease)))
    return able, found.sum(axis=2)


# ---- the equations


@pytest.mark.parametrize("sweeps", [1, 2, 7])
def test_sweeps_are_those_of_loops(sweeps):
    item, annotator = np.repeat(np.arange(5), 3), np.tile([0, 1, 2], 5)
    random = np.random.default_rng(4)
    data = Annotations.from_codes(
        item, annotator, random.integers(0, 3, 15), weight=random.choice([0.5, 1.0, 2.0], 15), **SIZES
    )
    with jax.enable_x64(True):
        state, _ = ascend(data, sweeps, glad.Priors(prevalence=Symmetric(2.5)))
        able, probability = by_loops(data, sweeps, prevalence=2.5)
        np.testing.assert_allclose(np.exp(state.ability), able, atol=1e-10)
        np.testing.assert_allclose(state.probability[:5], probability, atol=1e-10)


@settings(deadline=None, max_examples=25)
@given(data=crowds(), gold=st.sampled_from(["ignore", "use"]))
def test_the_bound_never_falls_where_weights_are_fixed(data, gold):
    with jax.enable_x64(True):
        state, objective = ascend(data, 40, FIXED, gold=gold)
    assert np.isfinite(objective).all()
    assert all(np.isfinite(own).all() for own in (state.ability, state.probability, state.log_ease))
    assert np.diff(objective).min() >= -1e-9


@settings(deadline=None, max_examples=20)
@given(data=crowds())
def test_learned_weights_of_the_ease_raise_the_objective_too(data):
    """From the fifth value on it has the log prior of the weights, with which they were learned, and before it too."""
    with jax.enable_x64(True):
        _, objective = ascend(data, 40, glad.Priors(ability=dist.Normal(1.5, 1.0)))
    assert np.diff(objective).min() >= -1e-9


@pytest.mark.parametrize("label", [(0, 0), (0, 1)])
def test_the_bound_is_below_the_evidence_of_an_enumeration(label):
    """One item, two annotators: sums over the label, the ease and both abilities; the class shares integrate to 1/3."""
    data = Annotations.from_codes([0, 0], [0, 1], list(label), num_items=1, num_annotators=2, num_labels=3)
    own = [stats.norm(*at).pdf(points) for at, points in zip([(1.5, 1.0), (0.2, 1.3)], GRIDS.values(), strict=True)]
    able, ease = (one / one.sum() for one in own)
    said = np.stack([able @ ((1 - RIGHT) / 2), able @ RIGHT])  # wrong and right, by ease
    joint = np.array([(said[int(label[0] == t)] * said[int(label[1] == t)]) @ ease / 3 for t in range(3)])
    with jax.enable_x64(True):
        state, objective = ascend(data, 200, FIXED)
    assert objective[-1] <= np.log(joint.sum()) + 1e-12
    assert objective[-1] > np.log(joint.sum()) - 0.7
    probability = np.asarray(state.probability[0])
    np.testing.assert_allclose(probability, joint / joint.sum(), atol=0.1)
    assert probability[2] == probability.min()


def test_weights_count_rows_and_several_rows_of_an_annotator_count():
    times = np.array([1, 2, 0, 1, 3, 1, 1, 2, 1, 0, 1, 1])
    one, other = random_crowd(3, weight=times), random_crowd(3, np.repeat(np.arange(ROWS), times))
    with jax.enable_x64(True):
        (first, before), (second, after) = (ascend(data, 30) for data in (one, other))
    np.testing.assert_allclose(before, after, atol=1e-10)
    np.testing.assert_allclose(first.probability, second.probability, atol=1e-10)


def test_shards_are_the_whole():
    data = random_crowd(8)
    with jax.enable_x64(True):
        problem = problem_of(data)
        shards = grid_ascent.shard(problem, 2)
        total = lambda tree: jax.lax.psum(tree, "shard")  # noqa: E731
        states = jax.vmap(lambda own: grid_ascent.start(None, own, total), axis_name="shard")(shards.problem)
        states, _ = jax.vmap(lambda one, own: grid_ascent.step(one, own, total), axis_name="shard")(
            states, shards.problem
        )
        whole = STEP(START(None, problem), problem)[0]
    np.testing.assert_allclose(states.ability[0], whole.ability, atol=1e-12)
    parts = [states.probability[place, :length] for place, length in enumerate(shards.lengths["probability"])]
    np.testing.assert_allclose(np.concatenate(parts), whole.probability[:5], atol=1e-12)


def test_coordinates_lead_back_to_the_state():
    with jax.enable_x64(True):
        state, _ = ascend(random_crowd(2), 8)
        again = grid_ascent.at(grid_ascent.coordinates(state), state)
    np.testing.assert_allclose(np.exp(again.ability), np.exp(state.ability), atol=1e-10)
    for one, other in zip(again.prior, state.prior, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
    np.testing.assert_allclose(again.prevalence, state.prevalence, rtol=1e-12)


# ---- numbers on a grid


def test_a_number_on_a_grid_by_hand():
    """Level between the points -.5, .5, 1.5 and 2.5: a quarter of the mass lies below .5."""
    number = OnGrid(np.array([0.0, 1.0, 2.0]), np.array([[0.25, 0.5, 0.25], [0.0, 1.0, 0.0]]))
    found = number.summary(0.5)
    np.testing.assert_allclose(found.mean, [1.0, 1.0])
    np.testing.assert_allclose(found.sd, np.sqrt([0.5 + 1 / 12, 1 / 12]))
    np.testing.assert_allclose(found.lower, [0.5, 0.75])
    np.testing.assert_allclose(found.upper, [1.5, 1.25])
    draws = np.asarray(number.sample(jax.random.key(0), (40_000,)))
    assert (np.abs(draws.mean(axis=0) - found.mean) < 5 * found.sd / 200).all()
    assert draws.std(axis=0) == pytest.approx(found.sd, rel=0.02)
    assert np.quantile(draws[:, 0], [0.25, 0.75]) == pytest.approx([0.5, 1.5], abs=0.02)


# ---- fits


@pytest.fixture(scope="module")
def table():
    return cs.fit("glad", cs.load("dawid-skene-1979"), dependence=0.0)


def test_the_1979_table(table):
    labels, annotators = table.labels(), table.annotators()
    assert labels["label"].value_counts().sort_index().tolist() == [18, 20, 6, 1]
    assert labels["certainty"].mean() == pytest.approx(0.9763, abs=5e-4)
    # Recorded by a prototype that stopped earlier; the fixed point is .008 to .011 above.
    np.testing.assert_allclose(annotators["ability"], [1.877, 1.307, 1.570, 1.708, 1.531], atol=0.013)
    _, probability = by_loops(table.data, 600)
    np.testing.assert_allclose(table.posterior.probability, probability, atol=1e-3)


def test_tables_of_annotators_items_and_the_crowd(table):
    annotators, items, crowd = table.annotators(), table.items(), table.crowd()
    assert annotators.columns[:5].tolist() == ["annotator", "annotations", "accuracy", "lower", "upper"]
    # Coordinate ascent is too sure of them, so that none are shown.
    assert annotators[["lower", "upper"]].isna().all(axis=None)
    assert not annotators[["accuracy", "ability"]].isna().any(axis=None)
    assert annotators["accuracy"].rank().tolist() == annotators["ability"].rank().tolist()
    assert len(items) == 45
    np.testing.assert_allclose(crowd.groupby("true_label")["probability"].sum(), 1.0)
    right = crowd[crowd["true_label"] == crowd["label"]]["probability"]
    expected = (annotators["annotations"] * annotators["accuracy"]).sum() / annotators["annotations"].sum()
    np.testing.assert_allclose(right, expected)
    # Items on which all agree are the easy ones.
    votes = cs.fit("majority-vote", table.data).labels()
    unanimous = votes["share"].to_numpy() == 1
    assert items["difficulty"][unanimous].max() < items["difficulty"][~unanimous].mean()


def test_what_else_is_asked_of_a_crowd(table, tmp_path):
    assert len(cs.next_labels(table, limit=3)) == 3
    assert "agree" in str(cs.agreement(table))
    cs.report(table, path=tmp_path / "glad.html")
    assert "Annotators" in (tmp_path / "glad.html").read_text()


def test_dependence_is_less_than_that_of_other_crowds(table):
    assert cs.fit("glad", table.data).dependence.rho == 0.15
    assert cs.fit("glad", table.data, dependence=0.3).dependence.rho == 0.3


def test_at_ability_zero_half_is_right_of_however_many_labels():
    problem = problem_of(random_crowd(0))
    log_right, log_wrong = grid_ascent.log_tables(problem)
    zero = int(np.flatnonzero(GRIDS["ability"] == 0)[0])
    np.testing.assert_allclose(np.exp(log_right[zero]), 0.5, rtol=1e-6)
    np.testing.assert_allclose(np.exp(log_right) + 2 * np.exp(log_wrong), 1.0, rtol=1e-5)


def test_gold_labels_stay_and_teach():
    gold = np.array([2, -1, 0, -1, 1])
    data, known = random_crowd(1, gold=gold), gold >= 0
    used, ignored = (cs.fit("glad", data, gold=how).posterior.probability for how in ("use", "ignore"))
    np.testing.assert_array_equal(used[known], np.eye(3)[gold[known]])
    assert np.abs(used - ignored)[~known].max() > 1e-3


def test_an_item_of_nobody_has_the_class_shares_and_the_prior_ease():
    data = Annotations.from_codes([0, 0, 0, 1, 1, 1], [0, 1, 2] * 2, [0, 0, 0, 1, 1, 1], **SIZES)
    fit = cs.fit("glad", data, priors=FIXED, dependence=0.0)
    np.testing.assert_allclose(fit.posterior.log_ease.probability[4], fit.posterior.hidden["prior.log_ease"], rtol=1e-5)
    assert fit.posterior.probability[4].argmin() == 2


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (Annotations.from_codes([0, 1], [0, 0], [0, 0], num_labels=1), "needs 2 labels or more"),
        (Annotations.from_counts([[2, 1], [0, 3]]), "who gave which label"),
    ],
)
def test_glad_refuses(data, match):
    with pytest.raises(UnsupportedRequest, match=match):
        cs.fit("glad", data)


@pytest.mark.parametrize("site", ["ability", "log_ease"])
def test_priors_of_grids_are_normal(site):
    with pytest.raises(NotConjugate, match=f"'{site}'"):
        cs.fit("glad", random_crowd(7), priors=glad.Priors(**{site: dist.Gamma(2.0, 1.0)}), method="cavi")


def test_given_priors_are_not_learned():
    fit = cs.fit("glad", random_crowd(7), priors=FIXED)
    expected = stats.norm(1.5, 1.0).pdf(GRIDS["ability"])
    np.testing.assert_allclose(fit.posterior.hidden["prior.ability"], expected / expected.sum(), rtol=1e-4)
    learned = cs.fit("glad", random_crowd(7), priors=glad.Priors(ability=LearnedNormal(1.5, 1.0)))
    assert np.abs(learned.posterior.hidden["prior.ability"] - fit.posterior.hidden["prior.ability"]).max() > 1e-3


def test_abilities_difficulties_and_labels_are_recovered():
    data, values = glad.simulate(jax.random.key(1), num_items=200, num_annotators=20, num_labels=4)
    assert set(values) == {"prevalence", "ability", "log_ease", "label"}
    fit = cs.fit("glad", data, dependence=0.0)
    estimates = {"ability": fit.annotators()["ability"], "log_ease": -fit.items()["difficulty"]}
    for site, estimate in estimates.items():
        rank = stats.spearmanr(estimate, values[site]).statistic
        assert np.arctanh(rank) * np.sqrt(len(estimate) - 3) > 4
    labels = fit.labels()
    sure, wrong = labels["probability"], labels["label"].astype(int) != values["label"]
    assert abs((wrong - (1 - sure)).sum()) < 5 * np.sqrt(np.maximum((sure * (1 - sure)).sum(), 1))


@pytest.mark.public_data
def test_entailment_pairs():
    """The prototype, with steps of .25, had .927 right and .196 for the mean of -log q(gold), without tempering."""
    data = cs.load("snow2008-rte")
    fit = cs.fit("glad", data, dependence=0.0)
    gold, probability = np.asarray(data.gold), np.asarray(fit.posterior.probability)
    assert (probability.argmax(axis=1) == gold).mean() == pytest.approx(0.924, abs=0.002)
    loss = -np.log(np.clip(probability[np.arange(len(gold)), gold], 1e-6, 1)).mean()
    assert loss == pytest.approx(0.190, abs=0.003)


@pytest.mark.parametrize("case", [(3, 200), (3, 1000), (5, 1000)])
def test_annotators_that_are_alike_do_not_look_like_guessers(case):
    """With steps of .25 the abilities of many annotations stayed at 0, and pairs seemed to agree too often."""
    num_labels, num_items = case
    random = np.random.default_rng(0)
    truth = random.integers(0, num_labels, num_items)
    right = random.random((5, num_items)) < 1 / num_labels + 0.3
    wrong = (truth + random.integers(1, num_labels, (5, num_items))) % num_labels
    data = cs.Annotations.from_codes(
        np.tile(np.arange(num_items), 5), np.repeat(np.arange(5), num_items), np.where(right, truth, wrong).ravel()
    )  # fmt: skip
    fit = cs.fit("glad", data)
    assert fit.annotator_pairs()["z"].abs().max() < 4
    assert not [note for note in fit.findings() if "independently" in note.text]
