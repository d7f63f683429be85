"""What a fit of the mention-pair model says: labels, candidates, profiles; mirror images; simulated crowds."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer.util import log_density
from scipy.special import expit

import consilience as cs
from consilience.data import Annotations
from consilience.errors import DiagnosticWarning
from consilience.models.mpa import MODEL, Priors, cavi, simulate
from consilience.models.mpa.candidates import candidates_of
from consilience.models.mpa.priors import BetaParameters, BetaPrior
from tests.models.mpa.mentions import TOY, mentions_of

pytestmark = pytest.mark.usefixtures("exact_sizes")


@pytest.fixture(scope="module")
def fitted():
    return cs.fit("mpa", mentions_of(), coreference="links", draws=400)


@pytest.fixture(scope="module")
def sampled():
    priors = Priors(sensitivity=BetaPrior(3.0, 1.0), specificity=BetaPrior(3.0, 1.0))
    return cs.fit("mpa", mentions_of(), priors, method="gibbs", draws=1000, chains=4)


# ---- tables ----


def test_labels_of_mentions_bear_their_names(fitted):
    labels = fitted.labels()
    assert labels["item"].tolist() == ["m1", "m2", "m3"]
    assert labels["label"].tolist() == ["DN", "DO(m1)", "DO(m2)"]
    assert labels["probability"][0] == 1  # its only candidate


def test_probabilities_are_those_of_draws_of_the_parameters(fitted):
    """The softmax of the log-odds, by a loop over decisions, averaged over draws from q."""
    data, found = fitted.data, fitted.truth.candidates
    sites = fitted.posterior.draws(2000, key=jax.random.key(3))
    prevalence, sensitivity, specificity = (np.asarray(sites[site], float) for site in BetaParameters._fields)
    class_ = found.tables.classes[found.tables.pair_class]
    odds = np.log(prevalence / (1 - prevalence))[:, class_]
    for item, annotator, label in TOY:
        for pair in np.flatnonzero(found.item == data.mentions.tolist().index(item)):
            right = sensitivity[:, data.annotators.tolist().index(annotator), class_[pair]]
            wrong = 1 - specificity[:, data.annotators.tolist().index(annotator), class_[pair]]
            chosen = found.labels[found.label[pair]] == label
            odds[:, pair] += np.log(right / wrong) if chosen else np.log((1 - right) / (1 - wrong))
    share = np.exp(odds - odds.max(1, keepdims=True))
    total = np.stack([share[:, found.item == item].sum(1) for item in found.item], axis=1)
    share /= total
    error = share.std(0) * np.sqrt(1 / 2000 + 1 / 200)
    table = fitted.candidates()
    assert (np.abs(table["probability"] - share.mean(0)) <= 5 * error + 1e-6).all()
    np.testing.assert_allclose(table["phi"], expit(fitted.posterior.log_odds), rtol=1e-6)
    assert table["votes"].tolist() == [2, 1, 2, 1, 2]


def test_profiles_of_annotators(fitted):
    table = fitted.annotators()
    assert table["annotator"].tolist() == ["a1", "a1", "a2", "a2", "a3", "a3"]
    assert table["class"].tolist() == ["DN", "DO"] * 3
    # a1 was asked about DN twice, about DO(m1) of m2, and about both antecedents of m3.
    assert table["decisions"].tolist()[:2] == [2, 3]
    gamma, mu = fitted.posterior.sensitivity[0, 1]
    assert table["sensitivity"][1] == pytest.approx(gamma / (gamma + mu))
    for site in ("sensitivity", "specificity"):
        assert (table[f"{site}_lower"] < table[site]).all()
        assert (table[site] < table[f"{site}_upper"]).all()


def test_a_mention_with_two_likely_labels_is_ambiguous():
    data = mentions_of([*TOY, ("m4", "a1", "DO(m1)"), ("m4", "a2", "DO(m2)")])
    fitted = cs.fit("mpa", data, Priors(prevalence=BetaPrior(40.0, 2.0)))
    table, candidates = fitted.ambiguous(), fitted.candidates()
    likely = candidates[candidates["phi"] > 0.5].groupby("item").size()
    assert set(table["item"]) == set(likely[likely > 1].index) >= {"m4"}
    assert set(table.loc[table["item"] == "m4", "chosen_by"]) == {"a1", "a2"}
    lead = table.groupby("item", sort=False)["phi"].apply(lambda phi: phi.iloc[0] - phi.iloc[1])
    assert lead.is_monotonic_increasing
    assert (lead >= 0).all()


def test_no_ambiguous_mention_is_an_empty_table(fitted):
    table = fitted.ambiguous()
    assert table.empty
    assert list(table)[:3] == ["item", "label", "phi"]


def test_draws_of_labels_are_candidates_in_proportion(sampled):
    truth, table = sampled.truth, sampled.candidates()
    drawn = np.concatenate([block.real for block in truth.labels()])
    found = truth.candidates
    frequency = (drawn[found.item] == found.label[:, None]).mean(1)
    assert frequency.sum() == pytest.approx(3)
    # Draws of one chain are not independent: of 4,000 at least 400 count.
    assert np.abs(frequency - table["probability"]).max() < 5 * np.sqrt(0.25 / 400)
    assert sampled.labels()["label"].tolist() == ["DN", "DO(m1)", "DO(m2)"]


def test_the_last_of_equal_candidates_is_the_authors():
    """Nobody agrees on anything, so that both labels of each item have the same log-odds."""
    data = Annotations.from_codes([0, 0, 1, 1], [0, 1, 0, 1], [1, 0, 0, 1], labels=["x", "y"])
    with jax.enable_x64(True):
        ours, author = (cs.fit(MODEL, data, author=author).labels()["label"].tolist() for author in (0, 1))
    assert ours == ["x", "x"]
    assert author == ["x", "y"]


# ---- mirror images ----


sweep = jax.jit(cavi.step)


def canonical(samples, data, priors=None):
    return MODEL.sites.canonical(samples, MODEL.resolve(data, priors))


def mirrored_run(priors, data):
    """Return the posterior from a start that is against all annotators, and the one from the usual start."""
    problem = cavi.prepare(MODEL.resolve(data, priors))
    results = []
    for head_start in (0.9, 1.1):
        state = cavi.start(None, problem)
        profile = jnp.stack([jnp.full_like(problem.tables.yes, head_start), jnp.ones_like(problem.tables.yes)], -1)
        state = state._replace(q=state.q._replace(sensitivity=profile, specificity=profile))
        for _ in range(30):
            state, _ = sweep(state, problem)
        results.append({site: np.asarray(value)[None, None] for site, value in cavi.sites(state, problem).items()})
    return results


def test_a_mirror_image_is_turned_and_said():
    data, _ = simulate(jax.random.key(1), Priors(sensitivity=BetaPrior(8.0, 2.0)), num_items=30, num_annotators=5)
    with jax.enable_x64(True):
        wrong, right = mirrored_run(Priors(), data)
        with pytest.warns(DiagnosticWarning, match="exchanged"):
            turned = canonical(wrong, data)
        assert turned.keys() == right.keys()
        again = canonical(turned, data)
    for site in (*BetaParameters._fields, "log_odds"):
        np.testing.assert_array_equal(again[site], turned[site])
        assert np.corrcoef(turned[site].ravel(), right[site].ravel())[0, 1] > 0.9
        assert np.corrcoef(wrong[site].ravel(), right[site].ravel())[0, 1] < 0.9


def test_where_the_prior_tells_true_from_false_nothing_is_turned():
    data, _ = simulate(jax.random.key(1), Priors(sensitivity=BetaPrior(8.0, 2.0)), num_items=30, num_annotators=5)
    wrong, _ = mirrored_run(Priors(), data)
    for priors in (Priors(sensitivity=BetaPrior(1.1, 1.0)), Priors(prevalence=BetaPrior(1.0, 2.0))):
        with pytest.warns(DiagnosticWarning, match="not exchanged"):
            kept = canonical(wrong, data, priors)
        assert all(kept[site] is wrong[site] for site in wrong)
    # Beta(d, e) for the sensitivity and Beta(e, d) for the specificity are mirror images.
    priors = Priors(sensitivity=BetaPrior(2.0, 3.0), specificity=BetaPrior(3.0, 2.0))
    with pytest.warns(DiagnosticWarning, match="which the prior allows"):
        canonical(wrong, data, priors)


@pytest.mark.filterwarnings("ignore:annotators came out worse than chance")
def test_draws_are_turned_one_by_one():
    data = Annotations.from_codes([0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 1, 0])
    random = np.random.default_rng(0)
    samples = {"prevalence": random.uniform(size=(2, 50, 2))}
    samples |= {site: random.uniform(size=(2, 50, 2, 2)) for site in ("sensitivity", "specificity")}
    decisions = candidates_of(data).tables
    weight = decisions.yes + decisions.no

    def youden(values):
        return ((values["sensitivity"] + values["specificity"] - 1) * weight).sum(2)

    samples["sensitivity"][0], samples["specificity"][0] = 0.9, 0.8
    turned = canonical(samples, data)
    assert (youden(turned) >= 0).all()
    better = youden(samples) >= 0
    assert better[0].all()
    assert 0 < better[1].mean() < 1
    np.testing.assert_array_equal(turned["prevalence"][better], samples["prevalence"][better])
    np.testing.assert_allclose(turned["prevalence"][~better], 1 - samples["prevalence"][~better])
    sensitivity, other = (np.moveaxis(values["sensitivity"], 2, -1) for values in (turned, samples))
    specificity = np.moveaxis(samples["specificity"], 2, -1)
    np.testing.assert_array_equal(sensitivity[better], other[better])
    np.testing.assert_allclose(sensitivity[~better], 1 - specificity[~better])


# ---- a simulated crowd ----


def test_a_crowd_as_simulated():
    priors = Priors(sensitivity=BetaPrior(80.0, 20.0))
    data, values = simulate(
        jax.random.key(0), priors, num_items=3000, num_annotators=20, num_labels=3, annotations_per_item=5
    )
    pairs = np.stack([data.item, data.annotator])
    assert len(np.unique(pairs, axis=1).T) == data.num_annotations == 15_000
    right = data.label == values["label"][data.item]
    expected = values["sensitivity"][data.annotator, values["label"][data.item]]
    error = np.sqrt(np.sum(expected * (1 - expected)))
    assert abs(right.sum() - expected.sum()) < 5 * error
    away = (data.label - values["label"][data.item]) % 3
    ones, twos = (away == 1).sum(), (away == 2).sum()
    assert abs(ones - twos) < 5 * np.sqrt(ones + twos)
    np.testing.assert_array_equal(data.gold, values["label"])
    fitted = cs.fit(MODEL, data)
    votes = np.zeros((3000, 3))
    np.add.at(votes, (data.item, data.label), 1)
    codes = fitted.labels()["label"].astype(int).to_numpy()
    plurality = (votes.argmax(1) == values["label"]).mean()
    assert (codes == values["label"]).mean() > plurality - 5 * np.sqrt(plurality * (1 - plurality) / 3000)


# ---- laws of the battery, which makes annotations, for mentions ----


def test_mentions_through_jax_and_pickle_and_disk(fitted, tmp_path):
    data = fitted.data
    moved = jax.tree.map(jnp.asarray, data)
    assert moved.mentions is None
    again = cs.fit("mpa", moved, coreference="links")
    np.testing.assert_allclose(again.candidates()["phi"], fitted.candidates()["phi"], atol=1e-5)
    fitted.save(tmp_path / "run")
    for other in (pickle.loads(pickle.dumps(fitted)), cs.load_fit(tmp_path / "run")):
        assert other.labels().equals(fitted.labels())
        assert other.candidates().equals(fitted.candidates())
        assert cs.next_labels(other).equals(cs.next_labels(fitted))


def test_the_density_of_mentions_is_traced():
    data = mentions_with_gold()

    def density(data):
        profile = jnp.full((3, 4), 0.7)
        values = {"prevalence": jnp.full(4, 0.4), "sensitivity": profile, "specificity": profile}
        return log_density(MODEL.model, (data,), {"gold": "use"}, values)[0]

    plain = density(data)
    assert np.isfinite(plain)
    np.testing.assert_allclose(jax.jit(density)(data), plain, rtol=1e-5)
    stacked = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), data)
    np.testing.assert_allclose(jax.vmap(density)(stacked), [plain, plain], rtol=1e-5)


def mentions_with_gold():
    return mentions_of([(*row, "NR" if row[0] == "m1" else "") for row in TOY])
