"""`fit`: choices of method with their reasons, errors that say what to do, functions of the user's own."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import consilience as cs
from consilience.data import Annotations, Rankings, Ratings
from consilience.errors import ConsilienceWarning, DiagnosticWarning, NotConjugate, UnknownName, UnsupportedRequest
from consilience.inference import ascent, gibbs
from consilience.inference.results import Result
from consilience.models import dirichlet, member
from consilience.models.interface import Ascent, Column, Generic, Gibbs, Model, Table
from consilience.models.posterior import Closed
from consilience.models.settings import Settings, setting
from consilience.models.sites import Site, Sites
from consilience.models.truth import LabelProbabilities, leading
from tests.inference.runs import stop_at

ANNOTATIONS = Annotations.from_codes(
    [0, 0, 0, 1, 1, 2], [0, 1, 2, 0, 1, 0], [0, 0, 1, 2, 2, 1], items=["a", "b", "c"], labels=["x", "y", "z"]
)
RATINGS = Ratings.from_codes([0, 0, 1, 1], [0, 1, 0, 1], [1.0, 2.0, -1.5, -1.0])


def test_auto_takes_the_first_method_and_says_so():
    fit = cs.fit("dirichlet", ANNOTATIONS)
    assert (fit.method, fit.reason) == ("exact", "the first that the model lists")
    assert fit.result is Result.converged
    assert fit.elbo is None
    asked = cs.fit("dirichlet", ANNOTATIONS, method="exact")
    assert (asked.method, asked.reason) == ("exact", "asked for")


def test_priors_that_are_not_conjugate_are_sampled_by_nuts():
    priors = dirichlet.Priors(plausibility=dist.Dirichlet(jnp.ones((3, 3))))
    with pytest.raises(NotConjugate, match="plausibility"):
        cs.fit("dirichlet", ANNOTATIONS, priors, method="exact")
    with pytest.warns(ConsilienceWarning) as caught:
        fit = cs.fit("dirichlet", ANNOTATIONS, priors, draws=50, warmup=100, chains=2)
    texts = [str(warning.message) for warning in caught]
    assert any("fitted by nuts" in text and "site 'plausibility'" in text for text in texts)
    assert any("effective draws" in str(one.message) for one in caught if one.category is DiagnosticWarning)
    assert fit.method == "nuts"
    assert fit.reason.startswith("no exact posterior: site 'plausibility'")
    assert fit.describe()["reason"] == fit.reason
    assert fit.posterior.chains["plausibility"].shape == (2, 50, 3, 3)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("dirichlte", ANNOTATIONS), "did you mean 'dirichlet'"),
        (("dirichlet", ANNOTATIONS, None, "exakt"), "the methods are auto, exact"),
    ],
)
def test_unknown_names(arguments, match):
    with pytest.raises(UnknownName, match=match):
        cs.fit(*arguments)


def test_unknown_options():
    with pytest.raises(UnknownName, match=r"no option 'relibility'; did you mean 'reliability'\? Its options: .*alpha"):
        cs.fit("dirichlet", ANNOTATIONS, relibility=2)
    with pytest.raises(UnknownName, match="did you mean 'alpha'"):
        cs.fit("dirichlet", ANNOTATIONS, alhpa=2)
    with pytest.raises(UnknownName, match="fit has no argument 'metod'; did you mean 'method'"):
        cs.fit("dirichlet", "absent.csv", metod="em")
    with pytest.raises(UnknownName, match="'layout' says how data are read; give it by read={'layout': …}"):
        cs.fit("dirichlet", "absent.csv", layout="wide")
    with pytest.raises(UnknownName, match="own.*; its options: none"):
        cs.fit(own, RATINGS, reliability=2)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"reliability": 0}, "above 0"),
        ({"reliability": "much"}, "give a number"),
        ({"reliability": float("nan")}, "give a number"),
        ({"reliability": float("inf")}, "give a number"),
        ({"reliability": None}, "give a number"),
        ({"method": "gibbs"}, "has no method 'gibbs'; it has exact, nuts, svi"),
        ({"draws": 0}, "draws is 0"),
        ({"draws": 2.5}, "draws is 2.5"),
        ({"draws": float("inf")}, "draws is inf"),
        ({"max_steps": 0}, "max_steps is 0; give a whole number, 1 or more"),
        ({"tolerance": -1}, "tolerance is -1; give a number, 0 or more"),
        ({"tolerance": float("nan")}, "tolerance is nan"),
        ({"warmup": -1}, "warmup is -1"),
        ({"priors": dist.Dirichlet(jnp.ones(3))}, "takes consilience.models.dirichlet.Priors"),
        ({"truth": lambda key, draw, data: 0}, "brings its own"),
    ],
)
def test_requests_that_cannot_be_met(options, match):
    with pytest.raises(UnsupportedRequest, match=match):
        cs.fit("dirichlet", ANNOTATIONS, **options)


def test_choices_and_data_and_priors_of_other_members():
    rankings = Rankings.from_nested([[[["a"], ["b"]]]])
    with pytest.raises(UnsupportedRequest, match="choose one of 'equation-14', 'published-code'"):
        cs.fit("irn", rankings, rank_weights="code")
    with pytest.raises(UnsupportedRequest, match="takes Rankings, as read_rankings returns them; this is Annotations"):
        cs.fit("irn", ANNOTATIONS)
    with pytest.raises(UnsupportedRequest, match="option 'dependence' of 'mace' is 2.0; it must be at most 1"):
        cs.fit("mace", ANNOTATIONS, dependence=2)
    with pytest.raises(UnsupportedRequest, match="has no priors"):
        cs.fit("prirn", rankings, dirichlet.Priors())
    with pytest.raises(UnsupportedRequest, match="model is int"):
        cs.fit(3, rankings)


def test_tables_and_attributes():
    fit = cs.fit(member("dirichlet"), ANNOTATIONS, alpha=0.5)
    assert fit.labels().columns.tolist() == ["item", "label", "probability", "certainty"]
    assert fit.labels()["item"].tolist() == ["a", "b", "c"]
    assert fit.labels()["label"].tolist() == ["x", "z", "y"]
    with pytest.raises(AttributeError, match="[Ii]ts tables are labels"):
        fit.annotators()
    with pytest.raises(UnknownName, match="no table 'annotators'"):
        fit.table("annotators")
    described = fit.describe()
    assert described["model"] == "dirichlet"
    assert described["option_reliability"] == 1.0
    assert "0.5" in described["priors"]
    assert described["data_hash"] == ANNOTATIONS.fingerprint()
    assert "dirichlet by exact" in repr(fit)


# ---- functions of the user's own ----


def own(data):
    """State a normal mean for every item."""
    with numpyro.plate("item", data.num_items):
        mean = numpyro.sample("mean", dist.Normal(0, 2))
    numpyro.sample("rating", dist.Normal(mean[data.item], 0.5), obs=data.rating)


def with_priors(data, priors):
    """Take any record as priors."""
    with numpyro.plate("item", data.num_items):
        mean = numpyro.sample("mean", priors)
    numpyro.sample("rating", dist.Normal(mean[data.item], 0.5), obs=data.rating)


def exact_moments(sd=2.0):
    """Return the conjugate posterior of `own`: mean and sd of each item."""
    precision = 1 / sd**2 + 2 / 0.25
    return np.array([3.0, -2.5]) / 0.25 / precision, precision**-0.5


def above(key, draw, data):
    return (draw["mean"] > 1.5).astype(int)


def soft(key, draw, data):
    p = 1 / (1 + jnp.exp(-draw["mean"]))
    return jnp.stack([1 - p, p], axis=-1)


@pytest.fixture(scope="module")
def labels_fit():
    return cs.fit(own, RATINGS, truth=above, draws=500)


def test_a_function_is_a_model(labels_fit):
    assert labels_fit.method == "nuts"
    assert labels_fit.member.name == "own"
    mean, sd = exact_moments()
    table = labels_fit.summary()
    assert np.abs((table["mean"] - mean) / table["mcse"]).max() < 5
    assert labels_fit.posterior.chains["mean"].shape == (4, 500, 2)


def test_truth_that_is_a_label(labels_fit):
    score = cs.certainty(labels_fit)
    share = (labels_fit.posterior.chains["mean"].reshape(-1, 2) > 1.5).mean(0)
    np.testing.assert_allclose(score.items, np.maximum(share, 1 - share))
    assert score.draws.shape == (2000,)
    with pytest.raises(UnsupportedRequest, match="one label per item"):
        cs.certainty(labels_fit, top=2)
    with pytest.raises(UnsupportedRequest, match="exact"):
        cs.certainty(labels_fit, exact=True)


def test_truth_that_is_a_distribution_with_svi():
    fit = cs.fit(own, RATINGS, truth=soft, method="svi", draws=1000)
    assert fit.elbo is not None
    mean, sd = exact_moments()
    # The guide is of the posterior's own family here.
    assert np.abs((fit.posterior.chains["mean"][0].mean(0) - mean) / (sd / np.sqrt(1000))).max() < 6
    assert cs.certainty(fit, top=2).value == 1
    share = (fit.posterior.chains["mean"][0] > 0).mean(0)
    np.testing.assert_allclose(cs.certainty(fit).items, np.maximum(share, 1 - share))


def test_priors_of_a_function_are_handed_on():
    fit = cs.fit(with_priors, RATINGS, dist.Normal(0.0, 1.0), draws=500)
    mean, _ = exact_moments(1.0)
    table = fit.summary()
    assert np.abs((table["mean"] - mean) / table["mcse"]).max() < 5


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
def test_a_function_without_truth_says_what_is_missing():
    fit = cs.fit(own, RATINGS, draws=20, warmup=20, chains=1)
    assert np.isfinite(fit.summary()["mean"]).all()
    for use in (cs.certainty, lambda fit: fit.truth):
        with pytest.raises(UnsupportedRequest, match="'own' does not say what the truth is.*truth=function"):
            use(fit)


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
def test_truth_of_another_shape_is_refused():
    fit = cs.fit(own, RATINGS, draws=20, warmup=20, chains=1, truth=lambda key, draw, data: draw["mean"])
    with pytest.raises(UnsupportedRequest, match=r"float32 of shape \(2,\).*integer codes"):
        cs.certainty(fit)


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
def test_the_worst_diagnostics_come_with_the_fit():
    data = cs.load("stutz-2023-cases")
    fit = cs.fit("plackett-luce", data, draws=60, chains=2, warmup=20)
    summary, described = fit.summary(), fit.describe()
    assert described["worst_r_hat"] == summary["r_hat"].max()
    assert described["fewest_effective_draws"] == summary[["ess_bulk", "ess_tail"]].min(axis=None)
    assert "worst_r_hat" not in cs.fit("plackett-luce", data, method="em").describe()
    summary["mean"] = 0.0
    assert fit.summary()["mean"].max() > 0


# ---- a posterior in closed form, by coordinate ascent ----


def _towards(state, problem):
    return state + 0.5 * (problem - state), -((problem - state) ** 2)


def _votes(resolved):
    data = resolved.data
    return 1.0 + jnp.zeros((3, 3)).at[data.item, data.label].add(1.0)


ASCENT = Ascent(
    name="cavi", prepare=_votes, start=lambda key, problem: jnp.ones_like(problem), step=_towards,
    sites=lambda state, problem: {"votes": state},
    finish=lambda values, resolved: Closed({"share": dist.Dirichlet(values["votes"])}, values),
)  # fmt: skip
SHARES = Model(
    name="shares", title="votes, approached by halves", paper="", takes=(Annotations,), engines=(ASCENT,),
    sites=Sites(Site("share", plates=("item",), event=("label",))),
    truth=lambda posterior, resolved, *, key, num_draws: LabelProbabilities.dense(
        np.asarray(posterior.votes, float), key=key, num_draws=num_draws
    ),
    tables=(
        Table(
            name="labels", help="labels", columns=(Column("item", "item"), Column("label", "class")),
            make=lambda posterior, resolved, truth: leading(truth),
        ),
    ),
)  # fmt: skip


def test_cavi_ends_with_a_posterior_in_closed_form(tmp_path):
    fit = cs.fit(SHARES, ANNOTATIONS, draws=100, max_steps=500)
    assert (fit.method, fit.result, fit.posterior.form) == ("cavi", Result.converged, "closed")
    np.testing.assert_allclose(fit.posterior.votes, [[3, 2, 1], [1, 1, 3], [1, 2, 1]], atol=1e-4)
    assert (np.diff(fit.elbo) >= 0).all()
    assert len(fit.elbo) == fit.run.steps
    assert fit.labels()["label"].tolist() == ["x", "z", "y"]
    assert fit.samples()["share"].shape == (1, 100, 3, 3)
    assert len(fit.summary()) == 9
    fit.save(tmp_path / "run")
    again = cs.load_fit(tmp_path / "run", model=SHARES)
    np.testing.assert_array_equal(again.posterior.votes, fit.posterior.votes)
    np.testing.assert_array_equal(again.elbo, fit.elbo)
    np.testing.assert_array_equal(again.samples()["share"], fit.samples()["share"])
    assert again.diagnostics() == []


def test_cavi_that_has_not_settled_says_so(tmp_path):
    with pytest.warns(DiagnosticWarning, match="had not settled after 3 steps"):
        fit = cs.fit(SHARES, ANNOTATIONS, max_steps=3, checkpoint=tmp_path / "kept")
    assert fit.result is Result.max_steps
    whole = cs.fit(SHARES, ANNOTATIONS, max_steps=500)
    assert fit.posterior.votes[0, 0] < whole.posterior.votes[0, 0]


# ---- a sampler beside an ascent ----


class Votes(NamedTuple):
    votes: Any
    start: Any


def _begin(key, problem):
    return {"share": jax.random.dirichlet(key, problem.votes), "start": problem.start}


SAMPLER = Gibbs(
    prepare=lambda resolved: Votes(_votes(resolved), jnp.zeros((3, 3))), start=_begin,
    sweep=lambda key, state, problem: _begin(key, problem), sites=lambda state, problem: state,
    begin_at=lambda problem, found: problem._replace(start=found.votes),
)  # fmt: skip


def sampled(before=ASCENT, **parts):
    return dataclasses.replace(SHARES, engines=(before, dataclasses.replace(SAMPLER, **parts)))


SAMPLED = sampled()


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
def test_a_sampler_starts_at_the_end_of_the_ascent():
    fit = cs.fit(SAMPLED, ANNOTATIONS, method="gibbs", draws=20, warmup=0, chains=2)
    np.testing.assert_allclose(fit.posterior.chains["start"][1, -1], [[3, 2, 1], [1, 1, 3], [1, 2, 1]], atol=1e-4)
    assert fit.describe()["start"] == "the end of CAVI"


def _repeat(key, state, problem):
    return {**_begin(key, problem), "start": state["start"]}


REPEATING = sampled(sweep=_repeat)


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
def test_a_run_that_goes_on_knows_what_the_ascent_learned(tmp_path):
    settings = {"method": "gibbs", "draws": 20, "warmup": 0, "chains": 2, "checkpoint": tmp_path / "kept"}
    whole = cs.fit(REPEATING, ANNOTATIONS, **settings)
    assert cs.fit(REPEATING, ANNOTATIONS, progress=stop_at(0), **settings).result is Result.interrupted
    again = cs.fit(REPEATING, ANNOTATIONS, resume=True, **settings)
    assert again.describe()["start"] == "the end of CAVI"
    for site, draws in whole.posterior.chains.items():
        np.testing.assert_array_equal(again.posterior.chains[site], draws)


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
def test_the_time_limit_counts_from_the_call_on(monkeypatch):
    limits = []

    def recording(run):
        def recorded(*prepared, **options):
            limits.append(options.get("time_limit"))
            return run(*prepared, **options)

        return recorded

    for module, name in ((ascent, "run_ascent"), (gibbs, "run_gibbs")):
        monkeypatch.setattr(module, name, recording(getattr(module, name)))
    cs.fit(SAMPLED, ANNOTATIONS, method="gibbs", draws=20, warmup=0, chains=2, time_limit=500.0)
    of_ascent, of_sampler = limits
    assert of_ascent is None
    assert 0 <= of_sampler < 500.0


def test_ctrl_c_in_the_ascent_before_a_sampler_ends_the_fit(tmp_path, monkeypatch):
    run = ascent.run_ascent

    def interrupted(*prepared, **options):
        return run(*prepared, **options)._replace(result=Result.interrupted)

    monkeypatch.setattr(ascent, "run_ascent", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cs.fit(SAMPLED, ANNOTATIONS, method="gibbs", draws=20, warmup=0, chains=2, checkpoint=tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
def test_ctrl_c_before_the_first_draw_raises_and_a_checkpoint_is_kept(tmp_path):
    settings = {"method": "gibbs", "draws": 20, "warmup": 200, "chains": 2}
    with pytest.raises(KeyboardInterrupt):
        cs.fit(REPEATING, ANNOTATIONS, progress=stop_at(1), **settings)
    with pytest.raises(KeyboardInterrupt):
        cs.fit(REPEATING, ANNOTATIONS, progress=stop_at(1), checkpoint=tmp_path / "kept", **settings)
    again = cs.fit(REPEATING, ANNOTATIONS, checkpoint=tmp_path / "kept", resume=True, **settings)
    assert again.describe()["resumed_at_step"] >= 1


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
def test_sites_without_numbers_are_draws_all_the_same():
    """As are the sticks of one view, or the means of no features; mirror modes are then mapped to one as ever."""
    empty = dataclasses.replace(
        sampled(sites=lambda state, problem: {**state, "stick": jnp.zeros((0, 2))}),
        sites=Sites(canonical=lambda samples, resolved: {site: values + 1.0 for site, values in samples.items()}),
    )  # fmt: skip
    fit = cs.fit(empty, ANNOTATIONS, method="gibbs", draws=20, warmup=0, chains=2)
    assert fit.run.has_draws
    assert fit.posterior.chains["share"].min() > 1
    assert fit.posterior.stick.shape == (40, 0, 2)


def _no_ascent(resolved):
    raise NotConjugate("site 'share': no ascent")


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
def test_a_sampler_takes_the_place_of_an_ascent_that_the_priors_do_not_allow():
    without = sampled(dataclasses.replace(ASCENT, prepare=_no_ascent))
    with pytest.warns(ConsilienceWarning, match="'shares' is fitted by gibbs; no CAVI: site 'share': no ascent"):
        fit = cs.fit(without, ANNOTATIONS, draws=20, warmup=0, chains=2)
    assert (fit.method, fit.reason) == ("gibbs", "no CAVI: site 'share': no ascent")
    assert "start" not in fit.describe()  # the sampler starts by itself
    assert (fit.posterior.chains["start"] == 0).all()
    with pytest.raises(NotConjugate, match="no ascent"):
        cs.fit(without, ANNOTATIONS, method="cavi")


def test_mirror_modes_are_mapped_to_one():
    def density(resolved):
        numpyro.sample("sign", dist.Normal(0, 1))

    def canonical(samples, resolved):
        return {"sign": np.abs(samples["sign"])}

    mirrored = Model(
        name="mirrored", title="", paper="", takes=(Annotations,), engines=(Generic(name="nuts"),), density=density,
        truth=lambda *args, **options: None, sites=Sites(canonical=canonical),
    )  # fmt: skip
    with pytest.warns(DiagnosticWarning):
        fit = cs.fit(mirrored, ANNOTATIONS, draws=50, warmup=50, chains=2)
    assert (fit.samples()["sign"] >= 0).all()


@dataclasses.dataclass(frozen=True, kw_only=True)
class TwoShorthands(Settings):
    alpha: float | None = setting(None, "one", sets=("plausibility", dirichlet.Symmetric))
    other: float | None = setting(None, "the other", sets=("plausibility", dirichlet.Symmetric))


def test_two_shorthands_of_one_prior_are_refused():
    twice = dataclasses.replace(member("dirichlet"), settings=TwoShorthands)
    with pytest.raises(UnsupportedRequest, match="alpha and other set the same prior of 'dirichlet'"):
        cs.fit(twice, ANNOTATIONS, alpha=1.0, other=2.0)


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
@pytest.mark.parametrize("method", ["cavi", "gibbs", pytest.param("nuts", marks=pytest.mark.slow), "svi"])
def test_a_prior_that_is_a_function_is_called_once(method):
    """By inference, k-hat, starts of chains, truth and tables together; EM refuses priors of one's own."""
    data, _ = member("dawid-skene").simulate(jax.random.key(0), num_items=12, num_annotators=3)
    calls = []

    def prior(data):
        calls.append(data)
        return dist.Dirichlet(np.ones(data.num_labels))

    priors = member("dawid-skene").priors(prevalence=prior)
    limits = {"gibbs": {"warmup": 10, "chains": 2}, "nuts": {"warmup": 10, "chains": 2}, "svi": {"max_steps": 20}}
    fit = cs.fit("dawid-skene", data, priors, method, draws=10, progress=False, **limits.get(method, {}))
    fit.labels()
    fit.to_arviz()
    if method == "cavi":
        assert fit.k_hat() is not None
    assert len(calls) == 1
