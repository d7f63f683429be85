"""`check`: right members pass, members with a planted bug fail, and what is lacking is said."""

import dataclasses
import json
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pandas
import pytest

import consilience as cs
from consilience import checking
from consilience.checking import Check, Part
from consilience.cli import ExitCode
from consilience.errors import ConsilienceWarning, UnknownName, UnsupportedRequest
from consilience.models import dawid_skene, dirichlet, member
from consilience.models.posterior import Closed
from consilience.replications import SIZES, Skipped, replications_of

# Default sizes, so that the tests share compiled programs: compiling NUTS takes longer than all else.
QUICK = {"progress": False}


def result_of(check, name):
    (part,) = [part for part in check.parts if part.name == name]
    return part


# ---- members that are right ----


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("model", "options"),
    [("dirichlet", {}), pytest.param("normal-inverse-gamma", {"threshold": 0.3}, marks=pytest.mark.slow)],
    ids=str,
)
def test_members_pass(model, options, seed):
    found = cs.check(model, seed=seed, progress=False, **options)
    assert found.passed, found
    assert "passed 2 of 2 checks" in repr(found)
    assert result_of(found, "joint distribution").skipped == "for Gibbs samplers only"


def test_the_table_holds_every_figure_with_its_bar():
    found = cs.check("dirichlet", **QUICK)
    table = found.table
    assert list(table.columns) == ["check", "figure", "value", "bar", "at", "result"]
    assert list(table["check"].unique()) == ["exact against nuts", "joint distribution", "calibration"]
    assert set(table["result"]) <= {"passed", "skipped"}
    assert table["value"][table["result"] == "passed"].notna().all()
    again = cs.check("dirichlet", **QUICK)
    assert again.table.equals(table)
    # Ranks as ArviZ takes them, one column a quantity.
    ranks = result_of(found, "calibration").details
    assert list(ranks.columns) == ["plausibility 0", "plausibility 1", "plausibility 2", "top class"]
    assert len(ranks) == 1000
    assert ((ranks > 0) & (ranks < 1)).all(axis=None)


def test_data_and_priors_of_the_users_own_are_used():
    data = cs.Annotations.from_codes([0, 0, 0, 1, 1], [0, 1, 2, 0, 1], [0, 0, 1, 2, 2], num_labels=3)
    found = cs.check("dirichlet", data, alpha=2.0, reliability=3.0, **QUICK)
    assert found.passed
    details = result_of(found, "exact against nuts").details
    assert len(details) == 2 * 2 * 3  # items, labels; first and second moments
    assert "reliability" in result_of(found, "calibration").skipped


@pytest.mark.slow
def test_a_member_without_simulation_is_compared_on_data():
    cases = cs.load("stutz-2023-cases")
    found = cs.check("prirn", cases, reliability=20, alpha=1.0, **QUICK)
    assert found.passed
    assert result_of(found, "calibration").skipped == "the member cannot simulate data"


# ---- a Gibbs sampler ----


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_plackett_luce_passes(seed):
    found = cs.check("plackett-luce", seed=seed, progress=False)
    assert found.passed, found
    assert "passed 3 of 3 checks" in repr(found)
    quantities = result_of(found, "calibration").details.columns
    assert {"plausibility 0", "top class", "log likelihood"} <= set(quantities)


@pytest.mark.slow
def test_a_wrong_sweep_fails_the_joint_distribution():
    gibbs = member("plackett-luce").engine("gibbs")

    def sweep(key, state, problem):
        return gibbs.sweep(key, state, problem._replace(shape=0.8 * problem.shape))

    found = cs.check(with_engine("plackett-luce", gibbs, sweep=sweep), progress=False)
    assert not result_of(found, "joint distribution").passed
    assert result_of(found, "joint distribution").findings[0]["value"] > 8


@pytest.mark.slow
def test_priors_that_tell_no_story_of_the_reports_are_compared_on_data():
    cases = cs.load("stutz-2023-cases")
    found = cs.check("plackett-luce", cases, alpha=1.0, reliability=2, progress=False)
    assert result_of(found, "gibbs against nuts").passed
    assert "reliability" in result_of(found, "calibration").skipped
    assert "one prior" in result_of(cs.check("plackett-luce", cases, alpha=0.7, progress=False), "calibration").skipped


# ---- members that are wrong ----


def with_engine(name, engine, only=False, **parts):
    """Return a member with other parts of an engine; with no other engine where only that is wanted."""
    wrong, own = dataclasses.replace(engine, **parts), member(name)
    engines = (wrong,) if only else tuple(wrong if one is engine else one for one in own.engines)
    return dataclasses.replace(own, engines=engines)


def changed(posterior, **parts):
    """Return the Dirichlet posterior with other parts."""
    return Closed({"plausibility": dataclasses.replace(posterior.plausibility, **parts)}, posterior.hidden)


def wrong_posterior(change):
    """Return the Dirichlet member with another exact posterior."""

    def solve(resolved):
        posterior = dirichlet.exact(resolved)
        return changed(posterior, concentration=change(posterior.plausibility.concentration))

    return with_engine("dirichlet", member("dirichlet").engine("exact"), solve=solve)


@pytest.mark.parametrize("factor", [0.5, pytest.param(2.0, marks=pytest.mark.slow)])
def test_a_posterior_that_is_too_wide_or_too_narrow_fails_both_tests(factor):
    found = cs.check(wrong_posterior(lambda concentration: factor * concentration), **QUICK)
    assert not found.passed
    assert not result_of(found, "exact against nuts").passed
    assert not result_of(found, "calibration").passed
    assert "failed: exact against nuts, calibration" in repr(found)
    assert "FAILED" in set(found.table["result"])


def test_a_wrong_truth_fails_calibration_though_the_sites_are_right():
    def truth(posterior, resolved, **settings):
        if posterior.form == "closed":
            codes = (posterior.plausibility.entry_class + 1) % resolved.data.num_labels
            posterior = changed(posterior, entry_class=codes.astype(np.int32))
        return dirichlet.truth(posterior, resolved, **settings)

    found = cs.check(dataclasses.replace(member("dirichlet"), truth=truth), **QUICK)
    assert result_of(found, "exact against nuts").passed
    assert not result_of(found, "calibration").passed


@pytest.mark.slow
def test_a_wrong_density_fails_against_nuts():
    def density(resolved):
        doubled = dataclasses.replace(resolved.settings, reliability=2 * resolved.settings.reliability)
        dirichlet.density(resolved.replace(settings=doubled))

    found = cs.check(dataclasses.replace(member("dirichlet"), density=density), **QUICK)
    assert not result_of(found, "exact against nuts").passed
    assert result_of(found, "calibration").passed


# ---- what is lacking, and what is asked for wrongly ----


@pytest.mark.parametrize(
    ("model", "settings", "message"),
    [
        ("irn", {}, "nothing to check.*no density for NUTS"),
        ("prirn", {}, "nothing to check.*give some"),
        ("block-linkage", {}, "Fit the data by each of them, and compare"),
        ("dirichlet-entity", {}, "nothing to check.*cannot simulate data"),
        ("dirichlet", {"method": "gibbs"}, "has no method 'gibbs'"),
        ("dirichlet", {"method": "nuts"}, "not derived by hand"),
        ("plackett-luce", {"method": "em"}, "no draw from the posterior"),
        ("dirichlet", {"replications": 3}, "give 100 or more"),
        ("normal-inverse-gamma", {}, "needs the option 'threshold'"),
    ],
)
def test_requests_that_cannot_be_met_are_refused(model, settings, message):
    with pytest.raises(UnsupportedRequest, match=message):
        cs.check(model, **settings)


def test_unknown_names_are_refused():
    with pytest.raises(UnknownName, match="did you mean 'dirichlet'"):
        cs.check("dirichlt")
    with pytest.raises(UnknownName, match="did you mean 'reliability'"):
        cs.check("dirichlet", reliabilty=2)


def test_items_that_share_parameters_are_not_taken_for_replications():
    own = member("dirichlet")
    shared = dataclasses.replace(own, simulation=dataclasses.replace(own.simulation, independent_items=False))
    assert "share parameters" in result_of(cs.check(shared, **QUICK), "calibration").skipped


def test_what_was_skipped_is_not_a_failure_and_is_shown():
    found = Check(model="m", method="gibbs", parts=(Part(name="one", skipped="not today"),))
    assert found.passed
    assert "skipped" in repr(found)
    assert "not today" in repr(found)


def summary_of(z, ess=1000.0, r_hat=1.0):
    columns = {"mean": [z, 0.0], "mcse": 0.5**0.5, "r_hat": r_hat, "ess_bulk": ess, "ess_tail": ess}
    return pandas.DataFrame({"quantity": ["a", "b"], **columns})


@pytest.mark.parametrize(
    ("own", "generic", "verdict"),
    [
        (summary_of(0), summary_of(0, ess=282), "passed 1 of 2 checks; inconclusive: gibbs against nuts"),
        (summary_of(0), summary_of(0, r_hat=1.018), "passed 1 of 2 checks; inconclusive: gibbs against nuts"),
        (summary_of(9), summary_of(0, ess=282), "failed: gibbs against nuts\n"),
        (summary_of(0, ess=300), summary_of(0, ess=282), "failed: gibbs against nuts\n"),
        (summary_of(0, r_hat=1.2), summary_of(0), "failed: gibbs against nuts\n"),
    ],
    ids=str,
)
def test_draws_of_nuts_that_are_too_few_are_no_failure(own, generic, verdict, monkeypatch):
    calibration = {"figure": "", "value": 1.0, "bar": "", "passed": True, "at": ""}
    monkeypatch.setattr(checking, "_summary", lambda fitted: fitted)
    fits = {"nuts": generic, "gibbs": own}
    monkeypatch.setattr(checking._Subject, "fit", lambda self, data, method, *_, **__: fits[method])
    monkeypatch.setattr(checking, "_joint_distribution", lambda *_: ((calibration,), None))
    monkeypatch.setattr(checking, "_calibration", _skipped)
    found = cs.check("dawid-skene", method="gibbs", **QUICK)
    assert f"dawid-skene by gibbs: {verdict}" in repr(found)
    assert not found.passed
    assert found.inconclusive == ("inconclusive" in verdict)
    assert ("inconclusive" if found.inconclusive else "FAILED") in set(found.table["result"])
    assert ("ask for more draws" in repr(found)) == found.inconclusive


def _skipped(*_):
    raise Skipped("not today")


def test_what_several_fits_warn_of_is_said_once(monkeypatch):
    def fitted(self, data, method, *_, **__):
        warnings.warn(ConsilienceWarning("the prior outweighs the labels"), stacklevel=2)
        return summary_of(0, ess=100)

    monkeypatch.setattr(checking, "_summary", lambda fitted: fitted)
    monkeypatch.setattr(checking._Subject, "fit", fitted)
    monkeypatch.setattr(checking, "_joint_distribution", _skipped)
    monkeypatch.setattr(checking, "_calibration", _skipped)
    with pytest.warns(ConsilienceWarning, match="outweighs") as said:
        cs.check("dawid-skene", method="gibbs", **QUICK)
    assert [one.filename for one in said] == [__file__]


# ---- the command ----


def test_the_command_prints_the_figures(printed):
    found = json.loads(printed("check", "dirichlet", "--alpha", "2", "--quiet", "--json"))
    assert found["passed"] is True
    assert found["method"] == "exact"
    expected = cs.check("dirichlet", alpha=2.0, **QUICK).table
    assert [row["figure"] for row in found["checks"]] == list(expected["figure"])
    values = [row["value"] for row in found["checks"] if row["value"] is not None]
    np.testing.assert_allclose(values, expected["value"].dropna())


def test_the_command_reads_a_file(printed, tmp_path):
    (tmp_path / "labels.csv").write_text("item,annotator,label\na,1,x\na,2,x\na,3,y\na,4,\nb,1,z\nb,2,z\n")
    words = ("check", "dirichlet", tmp_path / "labels.csv", "--missing", "drop", "--alpha", "2", "--reliability", "3")
    assert "dirichlet by exact: passed 1 of 1 checks" in printed(*words, "--quiet")


def test_a_failed_check_has_an_exit_code_of_its_own(run, monkeypatch):
    wrong = wrong_posterior(lambda concentration: 3 * concentration)
    monkeypatch.setattr(dirichlet, "MODEL", wrong)
    code, shown, _ = run("check", "dirichlet", "--quiet")
    assert code == ExitCode.poor
    assert "failed: exact against nuts, calibration" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("dirichlt",), "did you mean 'dirichlet'?"),
        (("dirichlet", "missing.csv"), "there is no such file"),
        (("dirichlet", "--missing", "drop"), "--missing says how to read a file"),
        (("dirichlet", "--threshold", "1"), "has no flag '--threshold'"),
        (("irn",), "nothing to check"),
    ],
)
def test_errors_of_the_command_name_the_cause(words, message, run):
    code, _, errors = run("check", *words)
    assert code == (ExitCode.usage if "has no flag" in message else ExitCode.error)
    assert message in errors


@pytest.mark.slow
def test_long_checks_pass():
    assert cs.check("dirichlet", quick=False, progress=False).passed
    assert cs.check("normal-inverse-gamma", threshold=0.0, quick=False, progress=False).passed


@pytest.mark.slow
def test_a_check_in_double_precision():
    with jax.enable_x64(True):
        assert cs.check("dirichlet", **QUICK).passed


# ---- members whose items share parameters ----

SHARED = {"progress": False, "replications": 500}


def without_nuts(name, **parts):
    return with_engine(name, member(name).engine("gibbs"), only=True, **parts)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dawid-skene", "mace", "one-coin"])
def test_small_data_sets_are_the_replications(name):
    found = cs.check(without_nuts(name), **SHARED)
    assert found.passed, found
    for part in ("joint distribution", "calibration"):
        assert result_of(found, part).skipped is None
    assert "log likelihood" in result_of(found, "calibration").details
    assert len(result_of(found, "joint distribution").details) == 35


@pytest.mark.parametrize("name", ["dawid-skene", "mace"])
def test_replications_start_within_a_program(name):
    """Traced, not compiled: the slow tests run them."""
    own, priors = member(name), member(name).priors()
    found = replications_of(own, priors, {}, key=jax.random.key(0), sweeps=1, warmup=0, draws=1, thinning=1)
    chains = jax.eval_shape(found.start, jax.random.split(jax.random.key(0), 3))
    assert {leaf.shape[0] for leaf in jax.tree.leaves(chains.state)} == {3}
    # Of the annotators those are looked at who are there, and not the copies that pad them.
    names = [name.split() for name in jax.eval_shape(found.quantities, chains)]
    looked_at = [int(place[0]) for site, *place in names if site in own.sites and site != "prevalence"]
    assert 0 < max(looked_at) < SIZES["num_annotators"]


def half_the_prior(problem):
    site = "guess" if "guess" in problem.prior else "confusion"
    return problem._replace(prior={**problem.prior, site: problem.prior[site] / 2})


def no_prior_of_what_is_right(problem):
    if "competence" in problem.prior:
        known = problem.prior["competence"] + jnp.array([0.5, 0])
        return problem._replace(prior={**problem.prior, "competence": known})
    return problem._replace(prior={**problem.prior, "confusion": jnp.ones_like(problem.prior["confusion"])})


@pytest.mark.slow
@pytest.mark.parametrize("bug", [half_the_prior, no_prior_of_what_is_right])
@pytest.mark.parametrize("name", ["dawid-skene", "mace"])
def test_a_bug_in_a_sampler_of_shared_parameters_fails(name, bug):
    right = member(name).engine("gibbs")
    wrong = without_nuts(name, sweep=lambda key, state, problem: right.sweep(key, state, bug(problem)))
    found = cs.check(wrong, progress=False, replications=10_000)
    (row,) = result_of(found, "joint distribution").findings
    assert row["value"] > 8, found


@pytest.mark.slow
def test_a_neighbours_label_and_a_key_used_twice_fail(monkeypatch):
    from consilience.models.crowd import gibbs
    from tests.models.crowd.test_crowd_mutants import one_key_for_all_annotators

    original = gibbs.draw_labels
    monkeypatch.setattr(gibbs, "draw_labels", lambda key, log_weight: jax.numpy.roll(original(key, log_weight), 1))
    found = cs.check(without_nuts("dawid-skene"), progress=False, replications=2000)
    (row,) = result_of(found, "joint distribution").findings
    assert row["value"] > 8, found
    monkeypatch.setattr(gibbs, "draw_labels", original)
    module, name, wrong = one_key_for_all_annotators("confusion")
    monkeypatch.setattr(module, name, wrong(getattr(module, name)))
    found = cs.check(without_nuts("dawid-skene"), progress=False)
    (row,) = result_of(found, "joint distribution").findings
    assert row["value"] > 8, found


def test_what_small_data_sets_cannot_replicate():
    own = without_nuts("mace")
    with pytest.raises(UnsupportedRequest, match="default options, not candidates"):
        cs.check(own, candidates="observed", **SHARED)
    with pytest.raises(UnsupportedRequest, match="cannot draw data anew"):
        cs.check(without_nuts("mace", redraw=None), **SHARED)

    def weighted(*arguments, **values):
        data, known = own.simulation.draw(*arguments, **values)
        return data.replace(weight=2 * data.weight), known

    with pytest.raises(UnsupportedRequest, match="rows with weights"):
        cs.check(dataclasses.replace(own, simulation=dataclasses.replace(own.simulation, draw=weighted)), **SHARED)


# ---- members with a density and a simulation, and no sampler of their own ----


def without_sampler(name, **parts):
    own = member(name)
    return dataclasses.replace(own, engines=tuple(one for one in own.engines if one.name != "gibbs"), **parts)


def test_density_and_simulation_are_compared_where_there_is_no_sampler():
    found = cs.check(without_sampler("dawid-skene"), replications=400, seed=2, **QUICK)
    assert found.passed, found
    assert found.method == "density"
    assert "cavi, em, nuts, svi: of these no test is made" in repr(found)
    details = result_of(found, "density against simulation").details
    # Of each number s and u s + 1: prevalence of 3 classes, and 4 annotators by 3 classes by 3 labels.
    assert len(details) == 2 * (2 + 4 * 3 * 2)
    assert set(details["site"]) == {"prevalence", "confusion"}


def transposed(resolved):
    prevalence = numpyro.sample("prevalence", resolved.prior("prevalence"))
    data = resolved.data
    with numpyro.plate("annotator", data.num_annotators, dim=-2), numpyro.plate("class", data.num_labels, dim=-1):
        confusion = numpyro.sample("confusion", resolved.prior("confusion"))
    swapped = {"prevalence": prevalence, "confusion": jnp.swapaxes(confusion, 1, 2)}
    numpyro.factor("annotations", dawid_skene.MODEL.simulation.log_likelihood(swapped, resolved).sum())


def one_label_in_ten_a_guess(key, resolved, sizes):
    data, values = member("dawid-skene").simulation.draw(key, resolved, sizes)
    random = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    guess = random.integers(0, data.num_labels, len(data.label)).astype(np.asarray(data.label).dtype)
    return data.replace(label=np.where(random.random(len(guess)) < 0.1, guess, data.label)), values


@pytest.mark.parametrize("wrong", [transposed, pytest.param(one_label_in_ten_a_guess, marks=pytest.mark.slow)])
def test_a_density_that_is_not_that_of_the_simulation_fails(wrong):
    simulation = member("dawid-skene").simulation
    parts = {"density": wrong} if wrong is transposed else {
        "simulation": dataclasses.replace(simulation, draw=one_label_in_ten_a_guess)
    }  # fmt: skip
    found = cs.check(without_sampler("dawid-skene", **parts), replications=2000, **QUICK)
    assert not found.passed, found


def test_what_cannot_be_compared_is_said():
    def silent(*arguments):
        data, values = member("dawid-skene").simulation.draw(*arguments)
        return data, {"prevalence": values["prevalence"]}

    simulation = dataclasses.replace(member("dawid-skene").simulation, draw=silent)
    with pytest.raises(UnsupportedRequest, match="does not tell the true values of confusion"):
        cs.check(without_sampler("dawid-skene", simulation=simulation), **QUICK)
    data = cs.Annotations.from_codes([0], [0], [0])
    with pytest.raises(UnsupportedRequest, match="leave out yours"):
        cs.check(without_sampler("dawid-skene"), data, **QUICK)


@pytest.mark.parametrize("name", ["dawid-skene", "mace", "one-coin"])
def test_the_objective_of_em_is_the_log_likelihood_along_its_path(name):
    """Up to a constant, which weights and smoothing would change."""
    own = member(name)
    data, _ = own.simulate(jax.random.key(0), num_items=30, num_annotators=4)
    em, resolved = own.engine("em"), own.resolve(data, None, {"smoothing": 0.0} if name == "mace" else {})
    problem = em.prepare(resolved)
    state, differences = em.start(jax.random.key(1), problem), []
    for _ in range(6):
        values = em.finish(em.sites(state, problem), resolved).values
        before = float(own.simulation.log_likelihood(values, resolved).sum())
        state, objective = em.step(state, problem)
        differences.append(float(objective.sum()) - before)
    assert before != 0
    np.testing.assert_allclose(differences[1:], differences[1], atol=2e-3)
