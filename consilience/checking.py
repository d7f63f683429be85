"""`check`: is the hand-derived inference of a member right? Three tests, each in units of its own Monte Carlo error.

1. **against NUTS**: the hand-derived method and generic inference on the same data, all means and second moments.
   NUTS reads the joint density alone, so that this ties the method to the density.
2. **joint distribution** (Geweke 2004), of members with a Gibbs sampler: thousands of chains that start at true values,
   swept and given new data in turns. The sharpest of the three.
3. **calibration** (Talts et al. 2018): ranks of true values among draws of the posterior, through the public `fit`, so
   that start, warm-up and draws of the truth are part of it.

The tests themselves are in `consilience.evaluation.calibration` and `consilience.evaluation.kernel_comparison`; here
they are given a member. Where the items of a member are independent, the items of one simulated data set are the
replications, and one fit serves all of them. What a member lacks is skipped, and the result says so.
"""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from consilience.arrays import Key
from consilience.data.contract import Contract
from consilience.errors import DiagnosticWarning, UnsupportedRequest
from consilience.evaluation.calibration import (
    joint_distribution_test,
    pit_values,
    rank_statistics,
    uniformity,
    with_second_moments,
)
from consilience.evaluation.kernel_comparison import compare_summaries
from consilience.inference.fitting import Fit, as_member, fit, resolve_priors
from consilience.inference.loop import Progress
from consilience.inference.posterior import summarise
from consilience.models.interface import Model
from consilience.models.truth import Truth
from consilience.printing import rows_of, table_text

__all__ = ["Check", "Part", "check"]

_GENERIC = ("nuts", "svi", "em")
# Items of the simulated data on which NUTS runs, where the user gives no data.
_ITEMS_FOR_NUTS = 20
_RANKED_DRAWS = 99
# A chain's draws are thinned to as good as independent ones before they are ranked.
_THINNING = 10
_MOST_AUTOCORRELATION = 0.2
_LARGEST_Z, _SMALLEST_P = 4.5, 0.001
# Classes of which the plausibilities are looked at one by one.
_MOST_CLASSES = 5
_REPLICATIONS, _CHAINS, _LONGER = 1000, 4000, 5
_ROUNDS, _SWEEPS = 3, 5


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """One of the tests.

    Parameters
    ----------
    name : of the test.
    findings : one row for each figure: ``figure, value, bar, passed, at``; the last names the worst quantity.
    skipped : why it was not run; None where it was.
    details : data frame with a row for each quantity or function; None where it was skipped.
    """

    name: str
    findings: tuple[Mapping[str, Any], ...] = ()
    skipped: str | None = None
    details: Any = None

    @property
    def passed(self) -> bool:
        """Whether every figure met its bar; a test that was skipped does not fail."""
        return all(row["passed"] for row in self.findings)


@dataclass(frozen=True, kw_only=True, eq=False)
class Check:
    """What the tests of a member found; prints itself.

    Parameters
    ----------
    model, method : the member and its hand-derived method.
    parts : the tests, also those that were skipped.
    """

    model: str
    method: str
    parts: tuple[Part, ...]

    @property
    def passed(self) -> bool:
        """Whether every test that was run met its bars."""
        return all(part.passed for part in self.parts)

    @property
    def table(self) -> Any:
        """Data frame with the columns ``check, figure, value, bar, at, result``."""
        import pandas

        rows: list[dict[str, Any]] = []
        for part in self.parts:
            if part.skipped is not None:
                rows.append({"check": part.name, "figure": part.skipped, "value": np.nan, "bar": "", "at": "",
                             "result": "skipped"})  # fmt: skip
            for finding in part.findings:
                result = "passed" if finding["passed"] else "FAILED"
                figures = {name: finding[name] for name in ("figure", "value", "bar", "at")}
                rows.append({"check": part.name, **figures, "result": result})
        return pandas.DataFrame(rows)

    def __repr__(self) -> str:
        failed = [part.name for part in self.parts if not part.passed]
        run = sum(part.skipped is None for part in self.parts)
        verdict = f"failed: {', '.join(failed)}" if failed else f"passed {run} of {run} checks"
        return f"{self.model} by {self.method}: {verdict}\n{table_text(rows_of(self.table), limit=None, widest=None)}"


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
        key = jax.random.fold_in(jax.random.key(self.seed), stream)
        return self.member.simulate(key, self.priors, num_items=num_items, **self.options)

    def fit(self, data: Any, method: str, seed: int, **settings: Any) -> Fit:
        return fit(
            self.member, data, self.priors, method, seed=seed, progress=self.progress, **settings, **self.options
        )


def check(
    model: str | Model,
    data: Contract | None = None,
    *,
    priors: Any = None,
    method: str | None = None,
    draws: int = 1000,
    chains: int = 4,
    seed: int = 0,
    replications: int | None = None,
    quick: bool = True,
    progress: Progress = None,
    **options: Any,
) -> Check:
    """Test the hand-derived inference of a member.

    Parameters
    ----------
    model : name of a member, or a `Model`.
    data : on which to compare with NUTS; a small simulated data set by default.
    priors, options : as for `fit`.
    method : the hand-derived method; by default the first that the member lists.
    draws, chains : of the comparison with NUTS.
    seed : the same seed gives the same figures.
    replications : how many simulated truths to rank, and to start chains from. By default 1,000 and 4,000.
    quick : False for five times as many.
    progress : as for `fit`.

    Returns
    -------
    Check, with ``passed`` and ``table``.

    Raises
    ------
    UnsupportedRequest : the member has nothing that could be tested.
    """
    member = as_member(model, None)
    if method in _GENERIC:
        raise UnsupportedRequest(f"'{method}' is not derived by hand for one model; there is nothing to check")
    given = priors is not None or any(options.get(name) is not None for name in member.prior_options)
    priors, options = resolve_priors(member, priors, options)
    subject = _Subject(
        member=member, method=method or _hand_derived(member), options=member.checked_options(options), seed=seed,
        priors=priors if given or member.testing_priors is None else member.testing_priors(), progress=progress,
    )  # fmt: skip
    _check_replications(replications)
    more = 1 if quick else _LONGER
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiagnosticWarning)  # the figures say the same
        parts = (
            _against_nuts(subject, data, priors, draws, chains),
            _joint_distribution(subject, replications or _CHAINS * more),
            _calibration(subject, replications or _REPLICATIONS * more),
        )
    if all(part.skipped is not None for part in parts):
        reasons = "; ".join(f"{part.name}: {part.skipped}" for part in parts)
        raise UnsupportedRequest(f"'{member.name}' has nothing to check ({reasons})")
    return Check(model=member.name, method=subject.method, parts=parts)


def _hand_derived(member: Model) -> str:
    for method in member.methods:
        if method not in _GENERIC:
            return method
    raise UnsupportedRequest(f"'{member.name}' has no hand-derived method; it has {', '.join(member.methods)}")


def _check_replications(replications: int | None) -> None:
    if replications is not None and replications < 100:
        raise UnsupportedRequest(f"replications is {replications}; give 100 or more, fewer show nothing")


# ---- 1. against NUTS ----


def _against_nuts(subject: _Subject, data: Any, priors: Any, draws: int, chains: int) -> Part:
    name = f"{subject.method} against nuts"
    if "nuts" not in subject.member.methods:
        return Part(name=name, skipped="the member has no density for NUTS")
    if data is None and subject.member.simulate is None:
        return Part(name=name, skipped="the member cannot simulate data; give some")
    if data is None:
        data, _ = subject.simulate(_ITEMS_FOR_NUTS, stream=0)
    else:
        subject = dataclasses.replace(subject, priors=priors)
    by_hand = {"draws": draws * chains} if subject.method == "exact" else {"draws": draws, "chains": chains}
    own = subject.fit(data, subject.method, subject.seed, **by_hand)
    generic = subject.fit(data, "nuts", subject.seed + 1, draws=draws, chains=chains)
    compared = compare_summaries(_summary(own), _summary(generic), names=(subject.method, "nuts"))
    return Part(name=name, findings=tuple(compared.findings()), details=compared.table)


def _summary(fitted: Fit) -> Any:
    """Summarise the sites and their squares."""
    samples = fitted.samples()
    known = fitted.member.dims
    dims = {site: known[site] for site, values in samples.items() if len(known.get(site, ())) == values.ndim - 2}
    squares = {f"{site}^2": values**2 for site, values in samples.items()}
    return summarise({**samples, **squares}, dims=dims | {f"{site}^2": names for site, names in dims.items()})


# ---- 2. the joint distribution ----


def _joint_distribution(subject: _Subject, num_chains: int) -> Part:
    name, gibbs = "joint distribution", subject.member.gibbs
    if subject.method != "gibbs" or gibbs is None:
        return Part(name=name, skipped="for Gibbs samplers only")
    if gibbs.state_at is None:
        return Part(name=name, skipped="the sampler cannot start at true values")
    if reason := _not_simulated(subject):
        return Part(name=name, skipped=reason)
    found = joint_distribution_test(
        jax.random.key(subject.seed), *_joint_callables(subject, num_chains), rounds=_ROUNDS
    )
    worst = found.functions[int(np.abs(found.z).argmax())]
    figure = f"largest |z| of {len(found.functions)} functions, {num_chains:,} chains"
    finding = {"figure": figure, "value": found.largest, "bar": f"< {_LARGEST_Z}", "at": worst}
    return Part(name=name, findings=({**finding, "passed": found.largest < _LARGEST_Z},), details=found.table)


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
    """Return ``start, sweep, resimulate, functions`` of `joint_distribution_test`."""
    member, options = subject.member, subject.options
    gibbs: Any = member.gibbs

    @jax.jit
    def sweeps(key: Key, state: Any, problem: Any) -> Any:
        return jax.lax.fori_loop(
            0, _SWEEPS, lambda step, state: gibbs.sweep(jax.random.fold_in(key, step), state, problem), state
        )

    log_likelihood = (
        None if member.log_likelihood is None else jax.jit(functools.partial(member.log_likelihood, **options))
    )

    def at(values: Mapping[str, Any], data: Any) -> tuple[_Chains, Any]:
        problem = gibbs.prepare(data, subject.priors, **options)
        state = gibbs.state_at(values, data, problem)
        plausibility = _shares(values["weight"])
        return _Chains(plausibility=plausibility, sites=gibbs.sites(state, problem), state=state, problem=problem), data

    def start(key: Key) -> tuple[_Chains, Any]:
        data, values = member.simulate(key, subject.priors, num_items=num_chains, **options)
        return at(values, data)

    def sweep(key: Key, chains: _Chains, data: Any) -> _Chains:
        key_sweep, key_truth = jax.random.split(key)
        state = sweeps(key_sweep, chains.state, chains.problem)
        sites = gibbs.sites(state, chains.problem)
        drawn = {site: np.asarray(value)[None] for site, value in sites.items()}
        truth = member.truth(drawn, data, key=key_truth, num_draws=1, **options)
        return _Chains(plausibility=_plausibilities(truth)[:, 0], sites=sites, state=state, problem=chains.problem)

    def resimulate(key: Key, chains: _Chains, data: Any) -> tuple[_Chains, Any]:
        # The likelihood sees shares alone: any total will do.
        values = {"weight": chains.plausibility}
        data, values = member.simulate(key, subject.priors, num_items=num_chains, values=values, **options)
        return at(values, data)

    def functions(chains: _Chains, data: Any) -> dict[str, Any]:
        quantities = {
            f"plausibility {k}": column for k, column in enumerate(chains.plausibility.T[:_MOST_CLASSES].astype(float))
        }
        quantities["largest plausibility"] = chains.plausibility.max(axis=1)
        if log_likelihood is not None:
            quantities["log likelihood"] = np.asarray(log_likelihood(chains.sites, data), float)
        return with_second_moments(quantities)

    return start, sweep, resimulate, functions


# ---- 3. calibration ----


def _calibration(subject: _Subject, replications: int) -> Part:
    name = "calibration"
    if reason := _not_simulated(subject):
        return Part(name=name, skipped=reason)
    data, values = subject.simulate(replications, stream=1)
    exact = subject.method == "exact"
    settings = {"draws": _RANKED_DRAWS} if exact else {"draws": _RANKED_DRAWS * _THINNING, "chains": 1}
    fitted = subject.fit(data, subject.method, subject.seed, **settings)
    names, true, draws = _item_quantities(fitted, values)
    draws = draws[:, :: 1 if exact else _THINNING]
    ranks = rank_statistics(jax.random.fold_in(jax.random.key(subject.seed), 2), true, draws)
    uniform = uniformity(ranks, _RANKED_DRAWS)
    findings = [
        {
            "figure": f"smallest p-value of ranks, {replications:,} replications, times the number of tests",
            "value": uniform.smallest, "bar": f"> {_SMALLEST_P}", "passed": uniform.smallest > _SMALLEST_P,
            "at": names[int(np.minimum(uniform.chi_square, uniform.kolmogorov_smirnov).argmin())],
        }
    ]  # fmt: skip
    if not exact:
        correlation = _autocorrelation(draws)
        findings.append(
            {
                "figure": "autocorrelation of the draws that are ranked", "value": float(correlation.max()),
                "bar": f"< {_MOST_AUTOCORRELATION}", "passed": correlation.max() < _MOST_AUTOCORRELATION,
                "at": names[int(correlation.argmax())],
            }
        )  # fmt: skip
    return Part(name=name, findings=tuple(findings), details=_rank_table(names, ranks))


def _not_simulated(subject: _Subject) -> str | None:
    """Say why simulated truths cannot be used, or return None."""
    if subject.member.simulate is None:
        return "the member cannot simulate data"
    if not subject.member.independent_items:
        return "the items of the member share parameters, so that one data set is one replication only"
    if subject.options.get("reliability", 1.0) != 1.0:
        return "with a reliability other than 1 the likelihood is no distribution of reports"
    return None


def _item_quantities(fitted: Fit, values: Mapping[str, Any]) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return names, true values ``(item, quantity)`` and draws ``(item, draw, quantity)`` of what each item has."""
    size = fitted.truth.num_items
    true: dict[str, Any] = {}
    draws: dict[str, Any] = {}
    plausibility = values.get("plausibility")
    if plausibility is not None and np.shape(plausibility) == (size, fitted.truth.num_classes):
        drawn = _plausibilities(fitted.truth)
        for k in range(min(_MOST_CLASSES, fitted.truth.num_classes)):
            true[f"plausibility {k}"], draws[f"plausibility {k}"] = plausibility[:, k], drawn[:, :, k]
        true["top class"], draws["top class"] = np.argmax(plausibility, axis=1), _leading(fitted.truth)
    else:
        at_true = {site: np.asarray(value)[None] for site, value in values.items()}
        truth = fitted.member.truth(at_true, fitted.data, key=jax.random.key(0), num_draws=1, **fitted.options)
        true["top class"], draws["top class"] = _leading(truth)[:, 0], _leading(fitted.truth)
        for site, sampled in fitted.samples().items():
            if site in values and np.shape(values[site]) == (size,):
                true[site], draws[site] = values[site], sampled[0].T
    return list(true), _stacked(true), _stacked(draws)


def _stacked(parts: Mapping[str, Any]) -> np.ndarray:
    return np.stack([np.asarray(part, float) for part in parts.values()], axis=-1)


def _plausibilities(truth: Truth) -> np.ndarray:
    """Return the plausibilities of all classes, ``(item, draw, class)``."""
    blocks = truth.grouped(np.arange(truth.num_classes), truth.num_classes)
    return np.concatenate([np.asarray(block.values)[: block.num_items] for block in blocks])


def _leading(truth: Truth) -> np.ndarray:
    """Return the leading class of each draw, ``(item, draw)``."""
    return np.concatenate([np.asarray(block.values)[: block.num_items, :, 0] for block in truth.ranked(1)])


def _shares(weight: Any) -> np.ndarray:
    weight = np.asarray(weight, float)
    return weight / weight.sum(axis=1, keepdims=True)


def _autocorrelation(draws: np.ndarray) -> np.ndarray:
    """Return the correlation of successive draws, over all replications together, ``(quantity,)``."""
    centred = draws - draws.mean(axis=1, keepdims=True)
    variance = (centred**2).mean(axis=(0, 1))
    covariance = (centred[:, 1:] * centred[:, :-1]).mean(axis=(0, 1))
    return np.divide(covariance, variance, out=np.zeros_like(variance), where=variance > 0)


def _rank_table(names: list[str], ranks: np.ndarray) -> Any:
    import pandas

    return pandas.DataFrame(pit_values(ranks, _RANKED_DRAWS), columns=names)
