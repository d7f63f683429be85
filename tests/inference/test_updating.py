"""`Fit.update`: a fit of more data is the fit of all of them, wherever it starts."""

import warnings

import numpy as np
import numpyro.distributions as dist
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import consilience as cs
from consilience.errors import ConsilienceWarning, InputError, UnsupportedRequest
from consilience.inference.gibbs import real_sites
from consilience.models import member

CROWDS = ("dawid-skene", "mace", "one-coin")
ASCENTS = [*((name, method) for name in CROWDS for method in ("cavi", "em")), ("glad", "cavi")]


def crowd_rows(num_items=300, seed=0, num_annotators=12, per_item=5, num_labels=3):
    """Return a table of annotations by annotators who are right with probabilities around .75."""
    random = np.random.default_rng(seed)
    true = random.integers(0, num_labels, num_items)
    item = np.repeat(np.arange(num_items), per_item)
    who = np.concatenate([random.permutation(num_annotators)[:per_item] for _ in range(num_items)])
    right = random.random(len(item)) < np.clip(random.normal(0.75, 0.1, num_annotators), 0.5, 0.95)[who]
    wrong = (true[item] + random.integers(1, num_labels, len(item))) % num_labels
    return pandas.DataFrame({"item": item, "annotator": who, "label": np.where(right, true[item], wrong)})


def quiet_fit(*given, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cs.fit(*given, **more)


def quietly_updated(fit, new, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit.update(new, **more)


def probabilities_of(fit):
    return fit.probabilities().set_index(["item", "label"])["probability"]


def farthest(one, other):
    both = pandas.concat([probabilities_of(one), probabilities_of(other)], axis=1)
    assert not both.isna().any(axis=None)
    return float(np.abs(both.iloc[:, 0] - both.iloc[:, 1]).max())


def halves(rows, part=0.02, seed=1):
    """Return earlier and later rows: some items are new, and some items and annotators have further rows."""
    random = np.random.default_rng(seed)
    later = random.random(len(rows)) < part
    later |= random.random(rows["item"].max() + 1)[rows["item"]] < part
    return rows[~later], rows[later]


@pytest.mark.parametrize(("name", "method"), ASCENTS)
def test_an_update_is_the_fresh_fit(name, method):
    rows = crowd_rows()
    before, after = halves(rows)
    fit = quiet_fit(name, before, method=method, tolerance=1e-6)
    kept = probabilities_of(fit)
    later = quietly_updated(fit, after)
    fresh = quiet_fit(name, pandas.concat([before, after]), method=method, tolerance=1e-6)
    assert farthest(later, fresh) <= 2e-3
    assert later.attributes["tolerance"] == 1e-6
    assert later.attributes["start"] == "the labels of an earlier fit"
    assert (later.method, later.seed, later.options) == (fit.method, fit.seed, fit.options)
    assert later.data.fingerprint() == fresh.data.fingerprint()
    # The earlier fit stays as it is.
    assert probabilities_of(fit).equals(kept)
    assert fit.data.num_annotations == len(before)


def test_an_update_starts_where_the_fit_ended():
    rows = crowd_rows()
    fit = quiet_fit("dawid-skene", rows, method="cavi", tolerance=1e-12)
    again = quietly_updated(fit, rows[:1].assign(item="another"))
    # The first sweep from the end of an earlier fit is next to the maximum; from votes it is far below.
    assert again.elbo[0] - again.elbo[-1] > 0.02 * (fit.elbo[0] - fit.elbo[-1])
    assert again.elbo[-1] - again.elbo[0] < 0.1


def test_slow_fits_take_fewer_sweeps():
    rows = crowd_rows(num_items=120, per_item=3, num_annotators=20, num_labels=4)
    before, after = halves(rows)
    fit = quiet_fit("one-coin", before, method="cavi")
    fresh = quiet_fit("one-coin", pandas.concat([before, after]), method="cavi")
    assert quietly_updated(fit, after).run.steps <= fresh.run.steps


@settings(max_examples=5, deadline=None)
@given(
    item=st.sampled_from(["0", "1", "new", "007"]), who=st.sampled_from(["0", "11", "new"]),
    label=st.sampled_from([0, 1, 2]), name=st.sampled_from(CROWDS),
)  # fmt: skip
def test_one_row_more_is_the_fresh_fit(item, who, label, name):
    rows = crowd_rows(num_items=60).astype(str)
    row = pandas.DataFrame({"item": [item], "annotator": [who], "label": [str(label)]})
    fit = quiet_fit(name, rows, method="cavi", tolerance=1e-6)
    fresh = quiet_fit(name, pandas.concat([rows, row]), method="cavi", tolerance=1e-6)
    assert farthest(quietly_updated(fit, row), fresh) <= 2e-3


def test_no_row_more_is_the_same_fit():
    rows = crowd_rows(num_items=60)
    fit = quiet_fit("dawid-skene", rows, method="cavi", tolerance=1e-6)
    data = fit.data
    nothing = data.replace(
        item=data.item[:0], annotator=data.annotator[:0], label=data.label[:0], weight=data.weight[:0],
        num_annotations=0,
    )  # fmt: skip
    later = quietly_updated(fit, nothing)
    assert farthest(later, fit) <= 2e-3
    assert later.data.fingerprint() == data.fingerprint()


def test_ids_are_known_whatever_their_type(tmp_path):
    rows = crowd_rows(num_items=60)
    fit = quiet_fit("dawid-skene", rows, method="cavi")
    more = {"item": [3, 99], "annotator": [0.0, 1.0], "label": ["1", 2]}
    text = pandas.DataFrame({"item": ["3", "99"], "annotator": ["0", "1"], "label": ["1", "2"]})
    text.to_csv(tmp_path / "more.csv", index=False)
    found = [quietly_updated(fit, new) for new in (more, text, tmp_path / "more.csv", cs.read_annotations(text))]
    assert {one.data.fingerprint() for one in found} == {found[0].data.fingerprint()}
    assert found[0].data.num_items == 61
    assert all(farthest(one, found[0]) == 0 for one in found)


def test_a_new_label_starts_afresh():
    rows = crowd_rows(num_items=80)
    fit = quiet_fit("dawid-skene", rows, method="cavi", tolerance=1e-6)
    new = pandas.DataFrame({"item": [1, 1], "annotator": [0, 1], "label": ["another", 0]})
    with pytest.warns(ConsilienceWarning, match=r"1 new labels: 'another': the fit starts afresh"):
        later = fit.update(new)
    fresh = quiet_fit("dawid-skene", pandas.concat([rows, new]), method="cavi", tolerance=1e-6)
    assert farthest(later, fresh) == 0
    assert "start" not in later.attributes


@pytest.mark.parametrize("name", CROWDS)
def test_chains_go_on_from_their_last_draws(name):
    rows = crowd_rows(num_items=150)
    before, after = halves(rows)
    # A new annotator starts at the prior mean.
    after = pandas.concat([after, after.assign(annotator="new").drop_duplicates("item")])
    fit = quiet_fit(name, before, method="gibbs", draws=150, chains=3, warmup=100)
    later = quietly_updated(fit, after)
    fresh = quiet_fit(name, pandas.concat([before, after]), method="gibbs", draws=150, chains=3, warmup=100)
    assert (later.attributes["warmup"], later.attributes["chains"], later.attributes["draws"]) == (50, 3, 150)
    assert later.attributes["start"] == "the last draws of an earlier fit"
    assert later.has_draws
    assert {site: own.shape for site, own in later.posterior.chains.items()} == {
        site: own.shape for site, own in fresh.posterior.chains.items()
    }
    difference = np.abs(later.truth.untempered - fresh.truth.untempered)
    assert difference.mean() < 0.01
    assert difference.max() < 0.2


@pytest.mark.parametrize("name", CROWDS)
def test_the_start_of_chains_is_what_the_last_draw_was(name):
    rows = crowd_rows(num_items=60)
    fit = quiet_fit(name, rows, method="gibbs", draws=5, chains=2, warmup=5)
    engine = member(name).engine("gibbs")
    last = {site: np.asarray(own[:, -1], float) for site, own in fit.posterior.chains.items()}
    # Of the first annotator nothing is known.
    plates = {site.name: site.plates for site in member(name).sites}
    unknown = {site: np.where(_first(own, plates[site]), np.nan, own) for site, own in last.items()}
    problem = engine.begin_from(engine.prepare(fit.resolved), unknown)
    for chain in range(2):
        state = real_sites(engine, engine.start(None, problem, chain), problem)
        for site, own in state.items():
            mask = _first(last[site], plates[site])[chain]
            np.testing.assert_allclose(np.asarray(own)[~mask], last[site][chain][~mask], rtol=1e-4, atol=1e-6)
            assert np.isfinite(own).all()


def _first(values, plates):
    mask = np.zeros(values.shape, bool)
    if plates[:1] == ("annotator",):
        mask[:, 0] = True
    return mask


def test_short_chains_go_on_where_annotators_agree_by_chance():
    random = np.random.default_rng(3)
    rows = pandas.DataFrame({
        "item": np.repeat(np.arange(30), 3), "annotator": np.tile(list("abc"), 30), "label": random.integers(0, 2, 90),
    })  # fmt: skip
    fit = quiet_fit("dawid-skene", rows)
    later = quietly_updated(fit, {"item": [0], "annotator": ["d"], "label": [1]})
    assert (fit.method, later.method) == ("gibbs", "gibbs")
    assert (later.attributes["chains"], later.attributes["draws"], later.attributes["warmup"]) == (5, 100, 50)
    assert set(later.attributes["starts"].split("; ")) == {"the last draws of an earlier fit"}


def test_what_auto_chose_by_the_data_is_chosen_anew():
    rows = crowd_rows(num_items=100)
    random = np.random.default_rng(0)
    noise = rows[:40].assign(label=random.integers(0, 3, 40))
    fit = quiet_fit("dawid-skene", noise)
    later = quietly_updated(fit, rows[40:])
    assert (fit.method, later.method) == ("gibbs", "cavi")
    fresh = quiet_fit("dawid-skene", pandas.concat([noise, rows[40:]]))
    assert farthest(later, fresh) == 0
    asked = quiet_fit("dawid-skene", noise, method="gibbs", draws=20, chains=2, warmup=10)
    assert quietly_updated(asked, rows[40:]).method == "gibbs"


def test_methods_without_a_hook_start_afresh():
    rows = crowd_rows(num_items=20)
    later = quietly_updated(quiet_fit("majority-vote", rows[:60]), rows[60:])
    assert later.labels().equals(quiet_fit("majority-vote", rows).labels())


def test_repeated_annotations_follow_the_policy():
    rows = {"item": ["a", "a", "b"], "annotator": ["x", "y", "x"], "label": ["p", "p", "q"]}
    again = {"item": ["a", "b"], "annotator": ["x", "y"], "label": ["q", "q"]}
    fit = quiet_fit("majority-vote", rows)
    assert quietly_updated(fit, again).data.num_annotations == 5
    first = quietly_updated(fit, again, duplicates="first").data
    assert first.labels[first.label].tolist() == ["p", "p", "q", "q"]
    with pytest.raises(InputError, match="row 0 .*an earlier row has the same item and annotator"):
        fit.update(again, duplicates="error")


def test_priors_in_words_only_are_refused(tmp_path):
    rows = crowd_rows(num_items=40)
    own = member("dawid-skene").priors(confusion=dist.Dirichlet(np.full(3, 2.0)))
    fit = quiet_fit("dawid-skene", rows, own, method="cavi")
    assert quietly_updated(fit, rows[:1]).priors is own
    fit.save(tmp_path / "own")
    with pytest.raises(UnsupportedRequest, match=r"holds its priors in words only \(confusion\)"):
        quietly_updated(cs.load_fit(tmp_path / "own"), rows[:1])


@pytest.mark.parametrize("method", ["cavi", "gibbs"])
def test_a_loaded_fit_is_updated_as_the_fit_itself(method, tmp_path):
    rows = crowd_rows(num_items=60)
    limits = {"draws": 30, "chains": 2, "warmup": 20} if method == "gibbs" else {"tolerance": 1e-6}
    fit = quiet_fit("dawid-skene", rows[:250], diagonal=4.0, dependence=0.2, method=method, seed=3, **limits)
    fit.save(tmp_path / "run")
    loaded = quietly_updated(cs.load_fit(tmp_path / "run"), rows[250:])
    own = quietly_updated(fit, rows[250:])
    assert farthest(loaded, own) == 0
    assert loaded.options == own.options == fit.options
    assert loaded.priors == own.priors == fit.priors
    assert loaded.seed == 3


def test_other_data_are_refused():
    ratings = {"item": ["a", "a"], "annotator": ["x", "y"], "rating": [1.0, 2.0]}
    fit = quiet_fit("normal-inverse-gamma", ratings, threshold=1.5)
    with pytest.raises(UnsupportedRequest, match="only annotations can be added"):
        fit.update({"item": ["a"], "annotator": ["x"], "label": ["p"]})


def test_an_ascent_from_an_earlier_end_makes_no_random_starts():
    fit = quiet_fit("mace", crowd_rows(num_items=60), method="cavi", restarts=3)
    engine = member("mace").engine("cavi")
    problem = engine.prepare(fit.resolved)
    begun = engine.begin_from(problem, dict(fit.posterior.hidden))
    assert (len(problem.restart), len(begun.restart)) == (3, 0)
    shown = np.asarray(begun.votes.start)[: fit.data.num_items]
    np.testing.assert_allclose(shown, fit.posterior.probability, atol=1e-6)
