"""Laws of the models of crowds and of their hand-written ascents: one table, a row for each."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import consilience as cs
from consilience.data import Annotations
from consilience.errors import NotConjugate, UnsupportedRequest
from consilience.models import dawid_skene, mace, mpa
from consilience.models.crowd.ascent import State
from tests.models.crowd.channels import CHANNELS, SIZES, random_table

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")

ROWS = 12
ASCENTS = [f"{name} {method}" for name in CHANNELS for method in ("cavi", "em")]
DIMENSIONS = {
    "responsibility": ("item", "label"), "probability": ("item", "label"), "prevalence": ("label",),
    "confusion": ("annotator", "label", "label"), "competence": ("annotator", None), "guess": ("annotator", "label"),
    "accuracy": ("annotator", None), "prior.accuracy": ("annotator", None),
}  # fmt: skip

every_ascent = pytest.mark.parametrize("name", ASCENTS)


def member_of(name):
    return CHANNELS[name.split()[0]].module.MODEL


def priors_of(name):
    return CHANNELS[name.split()[0]].priors() if name.endswith("cavi") else None


@st.composite
def tables(draw):
    """Twelve annotations, so that one compiled program serves all; some items or annotators may have none."""
    columns = [draw(st.lists(st.integers(0, size - 1), min_size=ROWS, max_size=ROWS)) for size in SIZES.values()]
    weight = draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=ROWS, max_size=ROWS))
    gold = draw(st.lists(st.integers(-1, 2), min_size=6, max_size=6))
    return Annotations.from_codes(*columns, weight=weight, gold=gold, **SIZES)


@functools.cache
def programs(name):
    engine = member_of(name).engine(name.split()[1])
    return engine, *(jax.jit(function) for function in (engine.start, engine.step, engine.sites))


def ascend(name, data, priors, steps, seed=None, **options):
    """Return the outcome, the objective at every step, and the largest sum of its absolute terms.

    A seed lets it begin anywhere.
    """
    engine, begin, step, sites = programs(name)
    problem = jax.tree.map(jnp.asarray, engine.prepare(member_of(name).resolve(data, priors, options)))
    state, objective, size = begin(jax.random.key(0), problem), [], 0.0
    if seed is not None:
        random = np.random.default_rng(seed)
        tree = {site: random.gamma(2.0, size=values.shape) for site, values in state.tree.items()}
        if name.endswith("em"):
            tree = {site: values / values.sum(-1, keepdims=True) for site, values in tree.items()}
        state = State(jax.tree.map(jnp.asarray, tree), *state[1:])
    for _ in range(steps):
        state, terms = step(state, problem)
        terms = np.concatenate([np.ravel(terms.items), np.ravel(terms.shared)])
        objective.append(terms.sum())
        size = max(size, np.abs(terms).sum())  # terms of either sign may nearly cancel
    found = {site: np.asarray(own)[: engine.lengths(problem).get(site)] for site, own in sites(state, problem).items()}
    found[CHANNELS[name.split()[0]].hidden] = np.asarray(state.responsibility)[: data.num_items]
    return found, np.array(objective), size


@every_ascent
@settings(deadline=None, max_examples=25)
@given(
    data=tables(), gold=st.sampled_from(["ignore", "use"]), seed=st.one_of(st.none(), st.integers(0, 2**32 - 1)),
    symmetric=st.booleans(), candidates=st.sampled_from(["closed", "observed"]),
    smoothing=st.sampled_from([0.0, 0.01, 1.0]),
)  # fmt: skip
def test_the_objective_never_falls(name, data, gold, seed, symmetric, candidates, smoothing):
    """Without smoothing a competence may reach 0 or 1, and an annotator without annotations has none."""
    own = {"candidates": candidates, "smoothing": smoothing} if name.startswith("mace") else {}
    # Concentrations that are learned have a prior of their own, which is no part of the bound.
    priors = None if symmetric and not name.startswith("one-coin") else priors_of(name)
    seed = None if name.endswith("em") and gold == "use" else seed
    with jax.enable_x64(True):
        outcome, objective, size = ascend(name, data, priors, 40, seed, gold=gold, **own)
    assert np.isfinite(objective).all()
    assert all(np.isfinite(values).all() for values in outcome.values())
    # The logarithm of a probability that is nearly one is off by as much as the probability.
    assert np.diff(objective).min() >= -50 * np.finfo(float).eps * max(size, 1.0)


@every_ascent
@settings(deadline=None, max_examples=20)
@given(data=tables(), seed=st.integers(0, 2**16))
def test_permutations_permute(name, data, seed):
    random = np.random.default_rng(seed)
    item, annotator, label, rows = (random.permutation(size) for size in (*SIZES.values(), ROWS))
    codes = {"item": item, "annotator": annotator, "label": label}
    permuted = Annotations.from_codes(
        *(code[getattr(data, column)[rows]] for column, code in codes.items()), weight=data.weight[rows], **SIZES
    )
    with jax.enable_x64(True):
        (plain, before, size), (other, after, _) = (ascend(name, table, None, 10) for table in (data, permuted))
    np.testing.assert_allclose(after, before, atol=1e-12 * max(size, 1.0))
    for site, values in plain.items():
        place = np.ix_(*(codes.get(dimension, np.arange(2)) for dimension in DIMENSIONS[site]))
        np.testing.assert_allclose(other[site][place], values, atol=1e-10, err_msg=site)


def repeated_table(seed, rows):
    data = random_table(seed)
    return Annotations.from_codes(data.item[rows], data.annotator[rows], data.label[rows], **SIZES)


@every_ascent
def test_a_weight_is_so_many_annotations(name):
    times = np.array([1, 2, 0, 1, 3, 1, 1, 2, 1, 0, 1, 1])
    weighted, repeated = random_table(3, weight=times), repeated_table(3, np.repeat(np.arange(ROWS), times))
    with jax.enable_x64(True):
        one, other = (ascend(name, data, priors_of(name), 30)[:2] for data in (weighted, repeated))
    np.testing.assert_allclose(one[1], other[1], atol=1e-11)
    for site, values in one[0].items():
        np.testing.assert_allclose(values, other[0][site], atol=1e-11, err_msg=site)


@every_ascent
def test_known_labels_stay_and_teach(name):
    gold, site = np.array([2, -1, 0, -1, -1, 1]), CHANNELS[name.split()[0]].hidden
    data, known = random_table(1, gold=gold), gold >= 0
    used, ignored = (
        cs.fit(member_of(name), data, priors_of(name), name.split()[1], gold=how).posterior.hidden[site]
        for how in ("use", "ignore")
    )
    np.testing.assert_array_equal(used[known], np.eye(3)[gold[known]])
    if name.endswith("cavi"):  # EM may be certain
        assert np.all((used[~known] > 0) & (used[~known] < 1))
    assert np.abs(used - ignored)[~known].max() > 1e-4


@pytest.mark.parametrize("member", [*CHANNELS, "mpa"])
def test_single_precision_finds_what_double_does(member):
    single, double = (
        cs.fit(member, cs.load("dawid-skene-1979"), tolerance=1e-9, dtype=dtype) for dtype in ("float32", "float64")
    )
    assert single.labels()["label"].equals(double.labels()["label"])
    assert single.elbo[-1] == pytest.approx(double.elbo[-1], rel=1e-5)
    for kind in ("stored", "hidden"):
        one, other = (getattr(fit.posterior, kind) for fit in (single, double))
        for name, values in other.items():
            assert (one[name].dtype, values.dtype) == (np.float32, np.float64)
            np.testing.assert_allclose(one[name], values, rtol=1e-4, atol=1e-4, err_msg=name)


STRETCHED = dist.TransformedDistribution(
    dist.Normal(0, 1).expand((2,)).to_event(1), dist.transforms.StickBreakingTransform()
)
"""A distribution over the simplex that is no Dirichlet."""


@pytest.mark.parametrize("method", ["cavi", "gibbs"])
@pytest.mark.parametrize(
    ("member", "priors", "site"),
    [
        (dawid_skene, {"prevalence": dist.Delta(np.ones(3) / 3, event_dim=1)}, "prevalence"),
        (mace, {"competence": dist.Uniform()}, "competence"), (mace, {"guess": lambda data: STRETCHED}, "guess"),
        (mpa, {"specificity": dist.Uniform()}, "specificity"),
    ],
)  # fmt: skip
def test_priors_that_are_not_conjugate_are_named(member, priors, site, method):
    with pytest.raises(NotConjugate, match=f"'{site}'"):
        cs.fit(member.MODEL, random_table(7), member.Priors(**priors), method)


@pytest.mark.parametrize(("member", "method", "match"), [
    *((name, method, "who gave which label") for name in CHANNELS for method in ("cavi", "gibbs", "em", "nuts")),
    *(("mpa", method, "who labelled") for method in ("cavi", "gibbs")),
])  # fmt: skip
def test_counts_of_nobody_are_refused(member, method, match):
    with pytest.raises(UnsupportedRequest, match=match):
        cs.fit(member, Annotations.from_counts([[2, 1], [0, 3]]), method=method)


@pytest.mark.parametrize("member", CHANNELS)
def test_one_annotator_agrees_with_nobody(member):
    fit = cs.fit(member, Annotations.from_codes([0, 1, 2], [0, 0, 0], [0, 1, 1]))
    with pytest.raises(UnsupportedRequest, match="how often annotators agree"):
        cs.agreement(fit)


@pytest.fixture(scope="module", params=["dawid-skene cavi", "dawid-skene gibbs", "dawid-skene em", "mace em"])
def fit(request):
    member, method = request.param.split()
    data = dawid_skene.simulate(
        jax.random.key(4), dawid_skene.Priors(), num_items=30, num_annotators=4, annotations_per_item=3
    )[0]
    return cs.fit(member, data, method=method)


def test_a_part_of_a_table_is_that_part(fit):
    table = "confusion" if fit.member is dawid_skene.MODEL else "guesses"
    whole, part = fit.table(table), fit.table(table, annotators=np.array([3, 1]))
    assert part["annotator"].unique().tolist() == ["3", "1"]
    for name in ("3", "1"):
        rows = [frame[frame["annotator"] == name].reset_index(drop=True) for frame in (part, whole)]
        assert rows[0].equals(rows[1])


def test_probabilities_list_every_label_that_may_be_true(fit):
    table, labels = fit.probabilities(), fit.labels()
    by_item = table.groupby("item", sort=False)["probability"]
    np.testing.assert_allclose(by_item.sum(), 1, rtol=1e-6)
    assert fit.method == "gibbs" or len(table) == fit.data.num_items * fit.data.num_labels
    best = table.loc[by_item.idxmax()]
    np.testing.assert_allclose(best["probability"], labels["probability"], rtol=1e-6)
    assert best["label"].tolist() == labels["label"].tolist()
