"""`check`: is the hand-derived inference of a member right? Tests, each in units of its own Monte Carlo error.

1. **against NUTS**: the hand-derived method and generic inference on the same data, all means and second moments.
   NUTS reads the joint density alone, so that this ties the method to the density.
2. **joint distribution** (Geweke 2004), of members with a Gibbs sampler: thousands of chains that start at true values,
   swept and given new data in turns. The sharpest of the three.
3. **calibration** (Talts et al. 2018): ranks of true values among draws of the posterior, through the public `fit`, so
   that start, warm-up and draws of the truth are part of it.

A member without an exact posterior or a sampler of its own has a fourth in their place, **density against simulation**
(`consilience.scores_of_density`), which ties the two to each other and says nothing of an estimator.

The tests themselves are in `consilience.evaluation.calibration` and `consilience.evaluation.kernel_comparison`; here
they are given a member. Where the items of a member are independent, the items of one simulated data set are the
replications, and one fit serves all of them. Where they share parameters, replications are small data sets, all of them
swept at once (`consilience.replications`). What a member lacks is skipped, and the result says so.
"""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from consilience.arrays import Key
from consilience.check_results import Check, Findings, Part
from consilience.data.accept import as_contract
from consilience.errors import DiagnosticWarning, UnsupportedRequest
from consilience.evaluation.calibration import (
    joint_distribution_test,
    pit_values,
    rank_statistics,
    uniformity,
    with_second_moments,
)
from consilience.evaluation.kernel_comparison import compare_summaries
from consilience.inference.fitting import Fit, fit
from consilience.inference.gibbs import real_sites
from consilience.inference.loop import Progress
from consilience.inference.own_model import as_member
from consilience.inference.posterior import item_log_likelihoods, summarise
from consilience.models.interface import Model
from consilience.models.posterior import Draws
from consilience.models.sites import Resolved
from consilience.models.truth import Ranked
from consilience.models.truth.truth import Mass
from consilience.replications import Replications, Skipped, autocorrelation, replications_of
from consilience.scores_of_density import scores_of

_GENERIC = ("nuts", "svi")
# What is derived by hand and does not claim to be the posterior has other means and spreads.
_APPROXIMATE = ("cavi", "em")
# Items of the simulated data on which NUTS runs, where the user gives no data.
_ITEMS_FOR_NUTS = 20
_RANKED_DRAWS = 99
# A chain's draws are thinned to as good as independent ones before they are ranked.
_THINNING = 10
# Sweeps of small data sets before their first draw is ranked.
_SHARED_WARMUP = 200
_MOST_AUTOCORRELATION = 0.2
_LARGEST_Z, _SMALLEST_P = 4.5, 0.001
# Classes of which the plausibilities are looked at one by one.
_MOST_CLASSES = 5
_REPLICATIONS, _CHAINS, _DATA_SETS, _LONGER, _ROUNDS, _SWEEPS = 1000, 20_000, 2000, 5, 3, 10
_FEWER_ON_HOST = 10  # samplers there go through small data sets one by one


@dataclass(frozen=True, kw_only=True)
class _Subject:
    """What is tested, with the priors and options that simulations and fits share."""

    member: Model
    method: str
    priors: Any
    options: dict[str, Any]
    seed: int
    progress: Progress

    def simulate(self, num_items: int, stream: int) -> tuple[Any, dict[str, Any]]:
        return self.simulate_with(jax.random.fold_in(jax.random.key(self.seed), stream), num_items)

    def simulate_with(self, key: Key, num_items: int, **values: Any) -> tuple[Any, dict[str, Any]]:
        try:
            return self.member.simulate(key, self.priors, num_items=num_items, **values, **self.options)
        except UnsupportedRequest as problem:
            raise Skipped(str(problem)) from problem

    def resolve(self, data: Any) -> Resolved:
        return self.member.resolve(data, self.priors, self.options)

    def fit(self, data: Any, method: str, seed: int, **settings: Any) -> Fit:
        return fit(
            self.member, data, self.priors, method, seed=seed, progress=self.progress, **settings, **self.options
        )


def check(
    model: str | Model,
    data: Any = None,
    *,
    priors: Any = None,
    method: str | None = None,
    draws: int = 1000,
    chains: int = 4,
    seed: int = 0,
    replications: int | None = None,
    quick: bool = True,
    progress: Progress = None,
    **settings: Any,
) -> Check:
    """Test the hand-derived inference of a member.

    Parameters
    ----------
    model : str or Model
        Name of a member, or a `Model`.
    data : data contract, path, data frame, dict or list of rows, optional
        On which to compare with NUTS, as `fit` takes them; a small simulated data set by default.
    priors, **settings : Priors and keyword arguments, optional
        Of the member, as for `fit`.
    method : str, optional
        The hand-derived method, an exact posterior or a sampler; by default the first that the member lists. Of a
        member that has neither, density and simulation are compared with each other.
    draws, chains : int
        Of the comparison with NUTS. A sampler whose effective sample is too small for it gets up to 16 times as many.
    seed : int, default 0
        The same seed gives the same figures.
    replications : int, optional
        How many simulated truths to rank, and to start chains from; how many data sets to compare with the density. By
        default 1,000, 20,000 and 2,000; a tenth of the first two where the sampler runs on the host.
    quick : bool, default True
        False for five times as many.
    progress : bool or callable, optional
        As for `fit`.

    Returns
    -------
    Check
        With ``passed`` and ``table``.

    Raises
    ------
    UnsupportedRequest : the member has nothing that could be tested.

    Examples
    --------
    A member without NUTS has its ranks alone to show, which takes a second; ``cs.check("dirichlet")`` takes longer.

    >>> import dataclasses
    >>> import consilience as cs
    >>> from consilience.models import dirichlet
    >>> member = dataclasses.replace(dirichlet.MODEL, engines=dirichlet.MODEL.engines[:1])
    >>> cs.check(member, replications=100).passed
    True
    """
    member = as_member(model, None)
    data = None if data is None else as_contract(data, *member.takes, whose=f"'{member.name}'")
    by_hand = _hand_derived(member)
    if method in _GENERIC and by_hand:
        raise UnsupportedRequest(f"'{method}' is not derived by hand for one model; there is nothing to check")
    if method in _APPROXIMATE and by_hand:
        raise UnsupportedRequest(
            f"'{method}' is no draw from the posterior, whose means and spreads it does not claim to have; check exact "
            "posteriors and samplers"
        )
    if method is not None and method not in member.methods:
        raise UnsupportedRequest(f"'{member.name}' has no method '{method}'; it has {', '.join(member.methods)}")
    simulation, resolved = member.simulation, member.resolve(None, priors, settings)
    given = priors is not None or bool(member.settings.checked(settings, member.name).shorthands())
    testing = None if given or simulation is None or simulation.priors is None else simulation.priors()
    subject = _Subject(
        member=member, method=(method or by_hand) if by_hand else "density", options=resolved.settings.as_dict(),
        seed=seed, priors=testing or resolved.given, progress=progress,
    )  # fmt: skip
    if simulation is not None and "num_items" not in simulation.sizes:
        raise UnsupportedRequest(
            f"'{member.name}' simulates data with given numbers and not from its priors, and its methods do not share "
            "one posterior: they look at other candidates. Fit the data by each of them, and compare what they say"
        )
    _check_replications(replications)
    more = 1 if quick else _LONGER
    fewer = _FEWER_ON_HOST if getattr(member.engine(subject.method), "host", False) else 1
    with _said_once():
        parts: tuple[Part, ...]
        if by_hand:
            parts = (
                _part(f"{subject.method} against nuts", _against_nuts, subject, data, resolved.given, draws, chains),
                _part("joint distribution", _joint_distribution, subject, replications or _CHAINS * more // fewer),
                _part("calibration", _calibration, subject, replications or _REPLICATIONS * more // fewer),
            )
        else:
            unchecked = f"{', '.join(member.methods)}: of these no test is made"
            parts = (
                _part("density against simulation", _scores, subject, data, replications or _DATA_SETS * more),
                Part(name="estimator", skipped=unchecked),
            )
    if all(part.skipped is not None for part in parts):
        reasons = "; ".join(f"{part.name}: {part.skipped}" for part in parts)
        raise UnsupportedRequest(f"'{member.name}' has nothing to check ({reasons})")
    return Check(model=member.name, method=subject.method, parts=parts)


@contextlib.contextmanager
def _said_once() -> Iterator[None]:
    """Warn once of what several fits warn of, at the line of the user's call; not of diagnostics, as the figures do."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", DiagnosticWarning)
        yield
    for warning in {str(one.message): one.message for one in caught}.values():
        warnings.warn(warning, stacklevel=4)


def _part(name: str, test: Callable[..., tuple[Findings, Any]], *arguments: Any) -> Part:
    try:
        findings, details = test(*arguments)
    except Skipped as reason:
        return Part(name=name, skipped=str(reason))
    return Part(name=name, findings=findings, details=details)


def _below(bar: float, figure: str, value: float, at: str) -> dict[str, Any]:
    """Return the row of a figure that is to be below its bar."""
    return {"figure": figure, "value": float(value), "bar": f"< {bar}", "passed": bool(value < bar), "at": at}


def _above(bar: float, figure: str, value: float, at: str) -> dict[str, Any]:
    """Return the row of a figure that is to be above its bar."""
    return {"figure": figure, "value": float(value), "bar": f"> {bar}", "passed": bool(value > bar), "at": at}


def _hand_derived(member: Model) -> str | None:
    """Return the first exact posterior or sampler of the member; None where it has neither."""
    return next((method for method in member.methods if method not in (*_GENERIC, *_APPROXIMATE)), None)


def _check_replications(replications: int | None) -> None:
    if replications is not None and replications < 100:
        raise UnsupportedRequest(f"replications is {replications}; give 100 or more, fewer show nothing")


# ---- 1. against NUTS ----


def _against_nuts(subject: _Subject, data: Any, priors: Any, draws: int, chains: int) -> tuple[Findings, Any]:
    if "nuts" not in subject.member.methods:
        raise Skipped("the member has no density for NUTS")
    if data is None and subject.member.simulation is None:
        raise Skipped("the member cannot simulate data; give some")
    if data is None:
        data, _ = subject.simulate(_ITEMS_FOR_NUTS, stream=0)
    else:
        subject = dataclasses.replace(subject, priors=priors)
    generic = _summary(subject.fit(data, "nuts", subject.seed + 1, draws=draws, chains=chains))
    # A sampler that mixes slowly is not wrong: it is given more draws before the bars are read.
    for more in (1, 4, 16):
        number = draws * more
        by_hand = {"draws": number * chains} if subject.method == "exact" else {"draws": number, "chains": chains}
        own = _summary(subject.fit(data, subject.method, subject.seed, **by_hand))
        compared = compare_summaries(own, generic, names=(subject.method, "nuts"))
        if compared.mixes(subject.method):
            break
    short = compared.agrees and compared.mixes(subject.method)  # what is left to fail is NUTS's own
    return tuple({**row, "short": short and not row["passed"]} for row in compared.findings()), compared.table


def _summary(fitted: Fit) -> Any:
    """Summarise the sites and their squares."""
    samples = fitted.samples()
    known = fitted.member.sites.dims
    dims = {site: known[site] for site, values in samples.items() if len(known.get(site, ())) == values.ndim - 2}
    squares = {f"{site}^2": values**2 for site, values in samples.items()}
    return summarise({**samples, **squares}, dims=dims | {f"{site}^2": names for site, names in dims.items()})


# ---- 2. the joint distribution ----


def _joint_distribution(subject: _Subject, num_chains: int) -> tuple[Findings, Any]:
    gibbs: Any = subject.member.engine("gibbs")
    simulation: Any = subject.member.simulation
    if subject.method != "gibbs" or gibbs is None:
        raise Skipped("for Gibbs samplers only")
    if gibbs.at is None:
        raise Skipped("the sampler cannot start at true values")
    _need_replications(subject)
    assert simulation is not None  # or it was skipped
    parts = _joint_callables if simulation.independent_items else _shared_callables
    found = joint_distribution_test(jax.random.key(subject.seed), *parts(subject, num_chains), rounds=_ROUNDS)
    worst = found.functions[int(np.abs(found.z).argmax())]
    figure = f"largest |z| of {len(found.functions)} functions, {num_chains:,} chains"
    return (_below(_LARGEST_Z, figure, found.largest, worst),), found.table


@dataclass(frozen=True, kw_only=True)
class _Chains:
    """Where the chains are, one an item.

    Parameters
    ----------
    plausibility : ``(item, class)``; also of the classes that no report names.
    sites : those of the sampler, in its state.
    state, problem : the sampler's own.
    """

    plausibility: np.ndarray
    sites: Mapping[str, Any]
    state: Any
    problem: Any


def _joint_callables(subject: _Subject, num_chains: int) -> tuple[Any, ...]:
    """Return ``start, sweep, resimulate, functions`` of `joint_distribution_test`, whose data are resolved."""
    member = subject.member
    gibbs, simulation = member.engine("gibbs"), member.simulation
    assert simulation is not None

    @jax.jit
    def sweeps(key: Key, state: Any, problem: Any) -> Any:
        return jax.lax.fori_loop(
            0, _SWEEPS, lambda step, state: gibbs.sweep(jax.random.fold_in(key, step), state, problem), state
        )

    log_likelihood = None if simulation.log_likelihood is None else jax.jit(simulation.log_likelihood)

    def at(values: Mapping[str, Any], data: Any) -> tuple[_Chains, Resolved]:
        resolved = subject.resolve(data)
        problem = gibbs.prepare(resolved)
        state, shares = gibbs.at(values, resolved, problem), _shares(values["weight"])
        sites = real_sites(gibbs, state, problem)
        return _Chains(plausibility=shares, sites=sites, state=state, problem=problem), resolved

    def start(key: Key) -> tuple[_Chains, Resolved]:
        data, values = subject.simulate_with(key, num_chains)
        return at(values, data)

    def sweep(key: Key, chains: _Chains, resolved: Resolved) -> _Chains:
        key_sweep, key_truth = jax.random.split(key)
        state = sweeps(key_sweep, chains.state, chains.problem)
        problem, sites = chains.problem, real_sites(gibbs, state, chains.problem)
        truth = member.truth(_one_draw(sites), resolved, key=key_truth, num_draws=1)
        return _Chains(plausibility=_plausibilities(truth)[:, 0], sites=sites, state=state, problem=problem)

    def resimulate(key: Key, chains: _Chains, resolved: Resolved) -> tuple[_Chains, Resolved]:
        # The likelihood sees shares alone: any total will do.
        data, values = subject.simulate_with(key, num_chains, values={"weight": chains.plausibility})
        return at(values, data)

    def functions(chains: _Chains, resolved: Resolved) -> dict[str, Any]:
        quantities = {
            f"plausibility {k}": column for k, column in enumerate(chains.plausibility.T[:_MOST_CLASSES].astype(float))
        }
        quantities["largest plausibility"] = chains.plausibility.max(axis=1)
        if log_likelihood is not None:
            quantities["log likelihood"] = np.asarray(log_likelihood(chains.sites, resolved), float)
        return with_second_moments(quantities)

    return start, sweep, resimulate, functions


def _replications(subject: _Subject) -> Replications:
    """Return small data sets as replications, of a member whose items share parameters."""
    return replications_of(
        subject.member, subject.priors, subject.options, key=jax.random.key(subject.seed), sweeps=_SWEEPS,
        warmup=_SHARED_WARMUP, draws=_RANKED_DRAWS, thinning=_THINNING,
    )  # fmt: skip


def _shared_callables(subject: _Subject, num_chains: int) -> tuple[Any, ...]:
    """Return the same of chains that have a data set each; what they carry as data is in the chain."""
    many = _replications(subject)

    def split(key: Key) -> Key:
        return jax.random.split(key, num_chains)

    return (
        lambda key: (many.start(split(key)), None),
        lambda key, chains, _: many.sweep(split(key), chains),
        lambda key, chains, _: (many.redraw(split(key), chains), None),
        lambda chains, _: with_second_moments(
            {name: np.asarray(values, float) for name, values in many.quantities(chains).items()}
        ),
    )


def _one_draw(values: Mapping[str, Any]) -> Draws:
    return Draws({site: np.asarray(value)[None, None] for site, value in values.items()})


# ---- 3. calibration ----


def _calibration(subject: _Subject, replications: int) -> tuple[Findings, Any]:
    _need_replications(subject)
    simulation: Any = subject.member.simulation
    ranked = _item_ranks if simulation.independent_items else _data_set_ranks
    names, true, draws = ranked(subject, replications)
    ranks = rank_statistics(jax.random.fold_in(jax.random.key(subject.seed), 2), true, draws)
    uniform = uniformity(ranks, _RANKED_DRAWS)
    figure = f"smallest p-value of ranks, {replications:,} replications, times the number of tests"
    worst = np.minimum(uniform.chi_square, uniform.kolmogorov_smirnov).argmin()
    findings = [_above(_SMALLEST_P, figure, uniform.smallest, names[int(worst)])]
    if subject.method != "exact":
        correlation = autocorrelation(draws)
        figure, worst = "autocorrelation of the draws that are ranked", correlation.argmax()
        findings.append(_below(_MOST_AUTOCORRELATION, figure, correlation.max(), names[int(worst)]))
    return tuple(findings), _rank_table(names, ranks)


def _item_ranks(subject: _Subject, replications: int) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return what `_item_quantities` does, of one fit of all items through the public `fit`."""
    data, values = subject.simulate(replications, stream=1)
    exact = subject.method == "exact"
    settings = {"draws": _RANKED_DRAWS} if exact else {"draws": _RANKED_DRAWS * _THINNING, "chains": 1}
    fitted = subject.fit(data, subject.method, subject.seed, **settings)
    return _item_quantities(fitted, values, every=1 if exact else _THINNING)


def _data_set_ranks(subject: _Subject, replications: int) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return names, true values ``(data set, quantity)`` and draws ``(data set, draw, quantity)``."""
    many = _replications(subject)
    key_start, key_draws = jax.random.split(jax.random.fold_in(jax.random.key(subject.seed), 1))
    chains = many.start(jax.random.split(key_start, replications))
    true, draws = many.quantities(chains), many.posterior(jax.random.split(key_draws, replications), chains)
    return list(true), _stacked(true.values()), _stacked(draws[name] for name in true)


def _need_replications(subject: _Subject) -> None:
    """Raise unless the items of a simulation, or small data sets, are replications of the model that is fitted."""
    member = subject.member
    if member.simulation is None:
        raise Skipped("the member cannot simulate data")
    if not member.simulation.independent_items:
        gibbs = member.engine("gibbs")
        if subject.method != "gibbs" or gibbs is None or gibbs.redraw is None:
            raise Skipped("the items of the member share parameters, and its sampler cannot draw data anew")
        defaults = {field.name: field.default for field in member.settings.fields()}
        changed = [name for name, value in subject.options.items() if value != defaults[name]]
        if changed:
            raise Skipped(f"the items share parameters, and data are drawn anew for default options, not {changed[0]}")
    if subject.options.get("reliability", 1.0) != 1.0:
        raise Skipped("with a reliability other than 1 the likelihood is no distribution of reports")


def _item_quantities(fitted: Fit, values: Mapping[str, Any], every: int) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return names, true values ``(item, quantity)`` and draws ``(item, draw, quantity)`` of what each item has."""
    truth: Any = fitted.truth
    size = truth.num_units
    pairs: dict[str, tuple[Any, Any]] = {}
    plausibility = values.get("plausibility")
    if plausibility is not None and np.shape(plausibility) == (size, truth.num_classes):
        drawn = _plausibilities(truth)[:, ::every]
        for k in range(min(_MOST_CLASSES, truth.num_classes)):
            pairs[f"plausibility {k}"] = plausibility[:, k], drawn[:, :, k]
        pairs["top class"] = np.argmax(plausibility, axis=1), _leading(truth)[:, ::every]
    else:
        right = fitted.member.truth(_one_draw(values), fitted.resolved, key=jax.random.key(0), num_draws=1)
        pairs["top class"] = _leading(right)[:, 0], _leading(truth)[:, ::every]
        for site, sampled in fitted.samples().items():
            if site in values and np.shape(values[site]) == (size,):
                pairs[site] = values[site], sampled[0].T[:, ::every]
    gibbs, simulation = fitted.member.engine("gibbs"), fitted.member.simulation
    if fitted.method == "gibbs" and gibbs.at and simulation and simulation.log_likelihood:
        pairs["log likelihood"] = _log_likelihoods(fitted, values, every)
    true, draws = zip(*pairs.values(), strict=True)
    return list(pairs), _stacked(true), _stacked(draws)


def _log_likelihoods(fitted: Fit, values: Mapping[str, Any], every: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the log likelihood at the true values, ``(item,)``, and at the draws, ``(item, draw)``."""
    gibbs, resolved, simulation = fitted.member.engine("gibbs"), fitted.resolved, fitted.member.simulation
    assert simulation is not None
    assert simulation.log_likelihood is not None
    problem = gibbs.prepare(resolved)
    true = real_sites(gibbs, gibbs.at(values, resolved, problem), problem)
    draws = {site: values[:1, ::every] for site, values in fitted.samples().items() if site in true}
    of_draws = item_log_likelihoods(fitted.member, resolved, draws)[0]
    return np.asarray(jax.jit(simulation.log_likelihood)(true, resolved)), of_draws.T


def _stacked(parts: Iterable[Any]) -> np.ndarray:
    return np.stack([np.asarray(part, float) for part in parts], axis=-1)


def _plausibilities(truth: Any) -> np.ndarray:
    """Return the plausibilities of all classes, ``(item, draw, class)``."""
    blocks = truth.blocks(Mass(np.arange(truth.num_classes), truth.num_classes))
    return np.concatenate([np.asarray(block.values)[: block.num_units] for block in blocks])


def _leading(truth: Any) -> np.ndarray:
    """Return the leading class of each draw, ``(item, draw)``."""
    return np.concatenate([np.asarray(block.values)[: block.num_units, :, 0] for block in truth.blocks(Ranked(1))])


def _shares(weight: Any) -> np.ndarray:
    weight = np.asarray(weight, float)
    return weight / weight.sum(axis=1, keepdims=True)


def _rank_table(names: list[str], ranks: np.ndarray) -> Any:
    import pandas

    return pandas.DataFrame(pit_values(ranks, _RANKED_DRAWS), columns=names)


# ---- 4. the density against the simulation ----


def _scores(subject: _Subject, data: Any, num_data_sets: int) -> tuple[Findings, Any]:
    if data is not None:
        raise Skipped("density and simulation are compared on data that are simulated; leave out yours")
    if subject.options.get("reliability", 1.0) != 1.0:
        raise Skipped("with a reliability other than 1 the likelihood is no distribution of reports")
    found = scores_of(
        subject.member, subject.priors, subject.options, key=jax.random.key(subject.seed), number=num_data_sets
    )
    worst = found.table.loc[found.table["z"].abs().idxmax()]
    figure = f"p-value of Hotelling's T² of {len(found.table)} scores, {num_data_sets:,} data sets"
    findings = [_above(_SMALLEST_P, figure, found.p_value, worst["score"])]
    for site, own in found.table.groupby("site", sort=False):
        place, figure = own["z"].abs().idxmax(), f"largest |z| of the scores of {site}"
        findings.append(_below(_LARGEST_Z, figure, abs(own["z"][place]), own["score"][place]))
    return tuple(findings), found.table
