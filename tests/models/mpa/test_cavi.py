"""Coordinate ascent of the mention-pair model: worked numbers, laws of the bound, and the author's program."""

import csv

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpyro.infer.util import log_density
from scipy.special import betaln, digamma, expit

import consilience as cs
from consilience.data import Annotations, read_mentions
from consilience.errors import UnsupportedRequest
from consilience.models.mpa import MODEL, Priors, cavi, gibbs, learned_priors, model
from consilience.models.mpa.candidates import candidates_of
from consilience.models.mpa.priors import BetaParameters, BetaPrior
from consilience.models.truth import leading
from tests.models.mpa.mentions import TOY, mentions_of, of_decisions

pytestmark = pytest.mark.usefixtures("exact_sizes", "double_precision")

sweep, learn = jax.jit(cavi.step), jax.jit(cavi.learn)


def prepared(data, priors=None, **options):
    return cavi.prepare(MODEL.resolve(data, priors, options))


def sweeps(problem, number, state=None):
    """Return the state after a number of sweeps, and the bound after each."""
    state, bounds = cavi.start(None, problem) if state is None else state, []
    for _ in range(number):
        state, terms = sweep(state, problem)
        bounds.append(float(terms.sum()))
    return state, np.array(bounds)


def phi(state):
    return expit(np.asarray(state.q.log_odds))


# ---- worked numbers ----


def test_the_worked_case():
    """Pairs in order: m1 DN, m2 DN, m2 DO(m1), m3 DO(m1), m3 DO(m2)."""
    problem = prepared(mentions_of())
    state, bounds = sweeps(problem, 1)
    assert bounds[-1] == pytest.approx(-13.409642101923, abs=1e-11)
    np.testing.assert_allclose(phi(state), [0.576134, 0.461710, 0.538290, 0.461710, 0.538290], atol=5e-7)
    state, bounds = sweeps(problem, 1, state)
    assert bounds[-1] == pytest.approx(-13.398603106237, abs=1e-11)
    np.testing.assert_allclose(phi(state), [0.568107, 0.453076, 0.564197, 0.437040, 0.564197], atol=5e-7)
    state, bounds = sweeps(problem, 69, state)
    assert bounds[-1] == pytest.approx(-12.729022943804, abs=1e-9)
    np.testing.assert_allclose(phi(state), [0.634056, 0.205581, 0.976548, 0.037871, 0.976548], atol=5e-7)


@pytest.mark.oracles
def test_the_authors_program(oracles_folder):
    """The author's Java on 12 documents of LitBank, annotated by a simulated crowd."""
    folder = oracles_folder / "mpa_java"
    data = read_mentions(folder / "annotations.csv")
    fitted = cs.fit("mpa", data, author=True)
    assert fitted.run.steps == 84
    np.testing.assert_allclose(fitted.elbo[[0, 1, 2]], [-80644.275494, -77761.001849, -74873.440655], atol=1e-6)
    assert fitted.elbo[-1] == pytest.approx(-74046.10040277, abs=1e-8)
    candidates = fitted.candidates()
    ours = dict(zip(zip(candidates["item"], candidates["label"], strict=True), candidates["phi"], strict=True))
    theirs = {(mention, label.replace("()", "")): float(value) for mention, label, value in rows_of(folder / "phi.csv")}
    assert ours.keys() == theirs.keys()
    assert max(abs(ours[pair] - theirs[pair]) for pair in theirs) < 1e-6
    predictions = [[mention, label.replace("()", "")] for mention, label in rows_of(folder / "pred.csv")]
    assert fitted.labels()[["item", "label"]].to_numpy().tolist() == predictions
    for class_, *values in rows_of(folder / "pi.csv"):
        ours = fitted.posterior.prevalence[["DN", "DO"].index(class_)]
        np.testing.assert_allclose(ours, np.array(values, float), atol=1e-5)
    annotators = data.annotators.tolist()
    for annotator, class_, *values in rows_of(folder / "prof.csv"):
        place = annotators.index(annotator), ["DN", "DO"].index(class_)
        profile = [*fitted.posterior.sensitivity[place], *fitted.posterior.specificity[place]]
        np.testing.assert_allclose(profile, np.array(values, float), atol=1e-6)
    assert fitted.ambiguous()["item"].nunique() == 26
    assert (candidates.groupby("item")["phi"].max() <= 0.5).sum() == 399


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.reader(file))


def test_the_authors_rule_needs_double_precision():
    with pytest.raises(UnsupportedRequest, match='dtype="float64"'):
        cs.fit("mpa", mentions_of(), author=True, dtype="float32")
    with jax.enable_x64(False):
        fitted = cs.fit("mpa", mentions_of(), author=True)
    assert fitted.attributes["dtype"] == "float64"


def test_the_authors_rule_stops_where_a_sweep_gains_less():
    fitted = cs.fit("mpa", mentions_of(), author=True)
    gains = np.diff(fitted.elbo)
    assert gains[-1] < 1e-6
    assert (gains[:-1] >= 1e-6).all()
    state, _ = sweeps(prepared(mentions_of()), fitted.run.steps)
    np.testing.assert_array_equal(fitted.posterior.log_odds, state.q.log_odds)


# ---- the bound ----


def random_decisions(seed, num_pairs=12, num_decisions=80, num_annotators=4):
    """Return tables and asymmetric prior parameters; the shapes are always the same."""
    random = np.random.default_rng(seed)
    pair_class = np.arange(num_pairs) % 2
    pair, annotator = random.integers(0, [[num_pairs], [num_annotators]], (2, num_decisions))
    agrees, weight = random.integers(2, size=num_decisions), random.choice([1.0, 1.0, 2.5], num_decisions)
    tables = of_decisions(pair_class, pair, annotator, agrees, weight, num_annotators=num_annotators, num_classes=2)
    decisions = list(zip(pair.tolist(), annotator.tolist(), agrees.tolist(), weight.tolist(), strict=True))
    return tables, BetaParameters(*random.uniform(0.3, 3, (3, 2, 2))), decisions


def uniform():
    return BetaParameters(*np.ones((3, 2, 2)))


@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_bound_never_falls(seed):
    tables, parameters, _ = random_decisions(seed)
    _, bounds = sweeps(cavi.problem_of(tables, parameters), 30)
    assert (np.diff(bounds) >= -50 * np.finfo(float).eps * np.abs(bounds[1:])).all()


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_bound_never_falls_while_hyperparameters_are_learned(seed):
    tables, parameters, _ = random_decisions(seed)
    state, bounds = sweeps(cavi.problem_of(tables, parameters, learned=True), 40)
    assert (np.diff(bounds) >= -50 * np.finfo(float).eps * np.abs(bounds[1:])).all()
    _, fixed = sweeps(cavi.problem_of(tables, parameters), 4)
    np.testing.assert_array_equal(bounds[:4], fixed)
    assert (np.asarray(state.q.sensitivity_prior) != parameters.sensitivity).any()


def test_learned_hyperparameters_are_where_the_bound_is_stationary():
    random = np.random.default_rng(0)
    decided = np.ones((30, 2), bool)
    decided[::7, 1] = False
    q = jnp.asarray(random.gamma([[3.0, 6.0], [20.0, 9.0]], size=(30, 2, 2)) + 1)
    learned = jnp.ones((2, 2))
    for _ in range(4):
        learned = learn(q, learned, decided)
    for class_ in range(2):
        expected = _logs(np.asarray(q))[decided[:, class_], class_].mean(0)
        # Steps that raise the bound by less than its rounding are not taken.
        np.testing.assert_allclose(_logs(np.asarray(learned))[class_], expected, rtol=1e-6)


def test_hyperparameters_stay_within_their_limits():
    """Of annotators who do not differ at all, from far below; and of those who could not differ more."""
    q = jnp.asarray([[[1e6, 2e6], [1e-3, 1e-3]]] * 3)
    learned = jnp.asarray([[0.05, 0.05], [3.0, 1.0]])
    for _ in range(20):
        learned = learn(q, learned, np.ones((3, 2), bool))
    np.testing.assert_allclose(learned[1], 0.05)
    assert 9e3 < learned[0].max() <= 1e4


def full_bound(q, pair_class, decisions, prior):
    """Return the bound from its definition, decision by decision; for any q."""
    true = expit(np.asarray(q.log_odds))
    log_beta = {name: _logs(np.asarray(getattr(q, name))) for name in BetaParameters._fields}
    total = 0.0
    for pair, class_ in enumerate(pair_class):
        prevalence = log_beta["prevalence"][class_]
        total += true[pair] * prevalence[0] + (1 - true[pair]) * prevalence[1]
        total -= true[pair] * np.log(true[pair]) + (1 - true[pair]) * np.log1p(-true[pair])
    for pair, annotator, agrees, weight in decisions:
        cell = annotator, pair_class[pair]
        right = log_beta["sensitivity"][cell][0 if agrees else 1]
        wrong = log_beta["specificity"][cell][1 if agrees else 0]
        total += weight * (true[pair] * right + (1 - true[pair]) * wrong)
    for name, own in zip(BetaParameters._fields, prior, strict=True):
        total -= _divergence(np.asarray(getattr(q, name)), np.broadcast_to(own, np.shape(getattr(q, name)))).sum()
    return total


def _logs(parameters):
    return digamma(parameters) - digamma(parameters.sum(-1, keepdims=True))


def _divergence(q, p):
    """KL between Beta distributions."""
    return betaln(*np.moveaxis(p, -1, 0)) - betaln(*np.moveaxis(q, -1, 0)) + ((q - p) * _logs(q)).sum(-1)


@pytest.mark.parametrize("seed", range(3))
def test_the_collapsed_bound_is_the_full_bound(seed):
    tables, parameters, decisions = random_decisions(seed)
    state, bounds = sweeps(cavi.problem_of(tables, parameters), 4)
    full = full_bound(state.q, tables.pair_class, decisions, parameters)
    assert bounds[-1] == pytest.approx(full, rel=1e-12)


def with_gold():
    """m1 and m3 are known; nobody gave m3 its label."""
    gold = {"m1": "DN", "m2": "", "m3": "NR"}
    return mentions_of([(*row, gold[row[0]]) for row in TOY])


def annotations_with_gold():
    """An item without annotations, one of weight zero, weights, and a gold label that an item did not get."""
    return Annotations.from_codes(
        [0, 0, 1, 1, 2, 3], [0, 1, 0, 1, 1, 0], [0, 1, 0, 0, 1, 2], weight=[1.0, 2.5, 1.0, 1.0, 1.0, 0.0],
        gold=[1, 2, -1, 0, 1], num_items=5, num_labels=3,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (mentions_of, {}), (with_gold, {"gold": "use"}), (annotations_with_gold, {}),
        (annotations_with_gold, {"gold": "use"}),
        (annotations_with_gold, {"gold": "use", "candidates": "closed"}),
    ],
)  # fmt: skip
def test_the_bound_is_that_of_the_numpyro_model(make, options):
    """log p(y, θ) - log q(θ), less what is lost where q(c) does not know θ: right after a sweep the same at every θ."""
    data, priors = make(), Priors(prevalence=BetaPrior(2.0, 1.5), sensitivity=BetaPrior(3.0, 1.0))
    problem = prepared(data, priors, **options)
    state, bounds = sweeps(problem, 5)
    q = cavi.Factors(**cavi.sites(state, problem))
    parameters = (q.prevalence, q.sensitivity, q.specificity)

    @jax.jit
    @jax.vmap
    def term(key):
        drawn = gibbs.draw_betas(key, parameters)
        values = dict(zip(BetaParameters._fields, (jnp.exp(one.one) for one in drawn), strict=True))
        joint = log_density(model, (data, priors), options, values)[0]
        guide = sum(dist.Beta(p[..., 0], p[..., 1]).log_prob(values[name]).sum()
                    for name, p in zip(BetaParameters._fields, parameters, strict=True))  # fmt: skip
        odds = gibbs.log_odds_given(*drawn, problem.tables)
        true = jax.nn.sigmoid(q.log_odds)
        lost = true * (jax.nn.log_sigmoid(q.log_odds) - jax.nn.log_sigmoid(odds))
        lost += (1 - true) * (jax.nn.log_sigmoid(-q.log_odds) - jax.nn.log_sigmoid(-odds))
        return joint - guide - (problem.tables.pair_counts * lost).sum()

    np.testing.assert_allclose(term(jax.random.split(jax.random.key(0), 20)), bounds[-1], rtol=1e-10)


# ---- mirror images ----


def flipped(q, class_, tables):
    """Exchange true and false of one class."""
    sensitivity, specificity = np.array(q.sensitivity), np.array(q.specificity)
    sensitivity[:, class_], specificity[:, class_] = (
        np.asarray(q.specificity)[:, class_, ::-1], np.asarray(q.sensitivity)[:, class_, ::-1],
    )  # fmt: skip
    prevalence = np.array(q.prevalence)
    prevalence[class_] = prevalence[class_, ::-1]
    odds = np.where(tables.pair_class == class_, -np.asarray(q.log_odds), np.asarray(q.log_odds))
    return q._replace(prevalence=prevalence, sensitivity=sensitivity, specificity=specificity, log_odds=odds)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), class_=st.integers(0, 1))
def test_a_mirror_image_has_the_same_bound_and_stays_one(seed, class_):
    tables, _, decisions = random_decisions(seed)
    problem = cavi.problem_of(tables, uniform())
    state, bounds = sweeps(problem, 3)
    image = flipped(state.q, class_, tables)
    assert full_bound(image, tables.pair_class, decisions, uniform()) == pytest.approx(bounds[-1], abs=1e-9)
    after, (bound,) = sweeps(problem, 1, state)
    image_after, (image_bound,) = sweeps(problem, 1, state._replace(q=image))
    assert image_bound == pytest.approx(bound, abs=1e-9)
    for ours, expected in zip(image_after.q, flipped(after.q, class_, tables), strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-9)


# ---- other forms of the same model ----


@pytest.mark.parametrize("kind", ["mentions", "annotations"])
def test_annotations_are_decisions_on_every_candidate(kind):
    random = np.random.default_rng(3)
    if kind == "mentions":
        rows = [(f"m{i}", f"a{j}", f"DO(m{k})" if k < i else "DN")
                for i, j, k in zip(*random.integers(0, [[6], [5], [6]], (3, 60)), strict=True)]  # fmt: skip
        with pytest.warns(match="rows have the same mention and annotator"):
            data = mentions_of(rows)
        item, label_key = data.mention, data.type * 100 + data.antecedent
    else:
        item, annotator, label = random.integers(0, [6, 5, 4], (60, 3)).T
        data = Annotations.from_codes(item, annotator, label)
        item, label_key = data.item, data.label
    found = candidates_of(data)
    tables = found.tables
    chosen = {}
    np.testing.assert_array_equal(np.bincount(found.item[tables.chosen_pair]), np.bincount(item))
    for row, pair in enumerate(tables.chosen_pair):
        chosen.setdefault(pair, label_key[row])
        assert chosen[pair] == label_key[row]  # one pair, one label
    decisions = [
        (pair, data.annotator[row], int(pair == tables.chosen_pair[row]))
        for row in range(len(item)) for pair in np.flatnonzero(found.item == item[row])
    ]  # fmt: skip
    apart = of_decisions(
        tables.pair_class, *np.array(decisions).T, num_annotators=data.num_annotators, num_classes=len(tables.classes)
    )
    size = 4 if kind == "mentions" else data.num_labels
    prior = BetaParameters(*random.uniform(0.5, 2, (3, size, 2)))
    own = BetaParameters(*(part[tables.classes] for part in prior))
    together, one = sweeps(cavi.problem_of(tables, prior), 10)
    separate, other = sweeps(cavi.problem_of(apart, own), 10)
    np.testing.assert_allclose(one, other, rtol=1e-12)
    for ours, theirs in zip(together.q, separate.q, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def binary_dawid_skene(item, annotator, answer, prevalence, confusion, start, num_sweeps):
    """Run variational Bayes for Dawid-Skene with two classes; ``confusion[t, l]`` is the prior of all annotators.

    Returns the probabilities of class 1 and the bound, in its full form.
    """
    (counts, table), num_items = start, item.max() + 1
    for _ in range(num_sweeps):
        log_share = np.tile(_logs(counts), (num_items, 1))
        for i, j, named in zip(item, annotator, answer, strict=True):
            log_share[i] += _logs(table[j])[:, named]
        share = np.exp(log_share - np.logaddexp(*log_share.T)[:, None])
        counts, table = prevalence + share.sum(0), np.tile(confusion, (annotator.max() + 1, 1, 1))
        for i, j, named in zip(item, annotator, answer, strict=True):
            table[j, :, named] += share[i]
    bound = -np.sum(share * np.log(share)) + (share @ _logs(counts)).sum()
    for i, j, named in zip(item, annotator, answer, strict=True):
        bound += share[i] @ _logs(table[j])[:, named]
    bound -= _divergence(counts, prevalence) + _divergence(table, np.broadcast_to(confusion, table.shape)).sum()
    return share[:, 1], bound


@pytest.mark.parametrize("num_sweeps", [1, 2, 7])
def test_a_closed_list_of_labels_is_one_binary_dawid_skene_for_each(num_sweeps):
    random = np.random.default_rng(0)
    item, annotator, label = np.repeat(np.arange(8), 4), random.integers(4, size=32), random.integers(3, size=32)
    data = Annotations.from_codes(item, annotator, label, num_annotators=4)
    (a, b), (d, e), (t, u) = (1.5, 2.0), (2.5, 1.0), (3.0, 0.7)
    priors = Priors(prevalence=BetaPrior(a, b), sensitivity=BetaPrior(d, e), specificity=BetaPrior(t, u))
    state, bounds = sweeps(prepared(data, priors, candidates="closed"), num_sweeps)
    first = np.ones(2), np.tile([[1.1, 1.0], [1.0, 1.1]], (4, 1, 1))
    parts = [
        binary_dawid_skene(item, annotator, (label == h).astype(int), np.array([b, a]), np.array([[t, u], [e, d]]),
                           first, num_sweeps)
        for h in range(3)
    ]  # fmt: skip
    np.testing.assert_allclose(phi(state).reshape(8, 3).T, [share for share, _ in parts], atol=1e-13)
    assert bounds[-1] == pytest.approx(sum(bound for _, bound in parts), rel=1e-12)


# ---- through fit ----


def test_a_prior_per_class():
    strong = BetaPrior(2.0, 1.0)
    per_class = dist.Beta(jnp.array([2.0, 2.0, 2.0, 2.0]), jnp.ones(4))
    one, other = (cs.fit("mpa", mentions_of(), Priors(sensitivity=prior)) for prior in (strong, per_class))
    np.testing.assert_array_equal(one.posterior.log_odds, other.posterior.log_odds)


# ---- gold labels and learned hyperparameters through fit ----


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
@pytest.mark.parametrize("method", ["cavi", "gibbs"])
def test_known_labels_are_true_and_the_others_are_not(method):
    own = {} if method == "cavi" else {"chains": 2, "draws": 50, "warmup": 10}
    fitted = cs.fit("mpa", with_gold(), coreference="links", method=method, gold="use", **own)
    labels, candidates = fitted.labels().set_index("item"), fitted.candidates()
    assert labels.loc[["m1", "m3"], "label"].tolist() == ["DN", "NR"]
    assert labels.loc[["m1", "m3"], "probability"].tolist() == [1, 1]
    known = candidates[candidates["item"] == "m3"].set_index("label")
    assert known["phi"].to_dict() == {"NR": 1, "DO(m1)": 0, "DO(m2)": 0}
    assert known["votes"]["NR"] == 0
    assert 0 < labels.loc["m2", "probability"] < 1


def test_what_was_learned_is_shown_and_becomes_the_prior_of_a_sampler():
    data = mentions_of()
    # So few mentions say next to nothing of the hyperparameters, which go on growing slowly for ever.
    fitted = cs.fit("mpa", data, hyperparameters="learned", tolerance=1e-3)
    table = fitted.hyperparameters()
    assert table[["site", "class"]].to_numpy().tolist() == [
        ["sensitivity", "DN"], ["sensitivity", "DO"], ["specificity", "DN"], ["specificity", "DO"],
    ]  # fmt: skip
    np.testing.assert_allclose(table["a"][:2], fitted.posterior.sensitivity_prior[:2, 0])
    assert fitted.elbo[-1] > cs.fit("mpa", data, coreference="links").elbo[-1]
    learned = learned_priors(fitted.posterior)
    problem = gibbs.prepare(MODEL.resolve(data, learned))
    np.testing.assert_allclose(problem.prior.specificity, fitted.posterior.specificity_prior)
    for method in ("gibbs", "nuts"):
        with pytest.raises(UnsupportedRequest, match="learned_priors"):
            cs.fit("mpa", data, method=method, hyperparameters="learned")
    with pytest.raises(UnsupportedRequest, match="fixed priors"):
        cs.fit("mpa", data, author=True, hyperparameters="learned")


@pytest.mark.oracles
@pytest.mark.slow
def test_learned_hyperparameters_find_more_of_the_truth(oracles_folder):
    data = read_mentions(oracles_folder / "mpa_java" / "annotations.csv")
    fitted = cs.fit("mpa", data, hyperparameters="learned")
    assert (leading(fitted.truth)["label"] == data.label_codes().gold).mean() == pytest.approx(0.9131, abs=0.001)
