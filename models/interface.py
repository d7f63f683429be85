"""What a member of the zoo is: one value that names the parts of a model file.

The registry holds these values; `fit`, the command line and the tests read them and know no model by name. A part
that a member does not have stays ``None``, and the tests skip exactly what needs it.
"""

from __future__ import annotations

import difflib
import enum
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpyro.distributions as dist

from consilience.errors import ConsilienceError, InvalidPrior, UnknownName, UnsupportedRequest

__all__ = ["REQUIRED", "Ascent", "Gibbs", "Model", "Option", "Shards", "Terms", "Total", "alone", "checked_prior"]


class _Default(enum.Enum):
    """A value of its own that stays the same one when it is copied or pickled."""

    required = enum.auto()


REQUIRED = _Default.required
"""Default of an option that the user must give."""

_KINDS = {int: "a whole number", float: "a number", str: "a text"}


@dataclass(frozen=True, kw_only=True)
class Option:
    """A setting of a member that is no prior: how much to trust the annotators, which weights, which threshold.

    Parameters
    ----------
    name : keyword of `fit`, and with dashes the flag of the command.
    kind : type of the value: float, int or str.
    default : value when left out, or `REQUIRED`.
    help : one line for `--help` and for error messages.
    choices : the allowed values, where they are few.
    minimum : smallest allowed value; ``above`` when it is itself not allowed.
    own : a class; objects of it are taken as they are, in the place of a choice. A saved fit knows them in words only.
    """

    name: str
    kind: type
    default: Any
    help: str
    choices: tuple = ()
    minimum: float | None = None
    above: bool = False
    own: type | None = None

    def checked(self, value: Any, member: str) -> Any:
        """Return the value in the option's type, or raise an error that says what is allowed."""
        if self.own is not None and isinstance(value, self.own):
            return value
        try:
            converted = self.kind(value)
            value = value if self.kind is str else float(value)
        except (TypeError, ValueError, OverflowError):
            converted = None
        if converted is None or (self.kind is not str and not (math.isfinite(converted) and converted == value)):
            raise UnsupportedRequest(
                f"option '{self.name}' of '{member}' is {value!r}; give {_KINDS[self.kind]} ({self.help})"
            )
        if self.choices and converted not in self.choices:
            raise UnsupportedRequest(
                f"option '{self.name}' of '{member}' is {value!r}; choose one of {', '.join(map(repr, self.choices))}"
            )
        if self.minimum is not None and (converted < self.minimum or (self.above and converted == self.minimum)):
            bound = "above" if self.above else "at least"
            raise UnsupportedRequest(
                f"option '{self.name}' of '{member}' is {converted!r}; it must be {bound} {self.minimum:g}"
            )
        return converted


@dataclass(frozen=True, kw_only=True)
class Gibbs:
    """A hand-written Gibbs sampler. ``start``, ``sweep`` and ``sites`` are pure, and run inside ``jax.jit``.

    A problem is a PyTree of arrays, all that the sweeps read of data, priors and options: layout tables, counts,
    parameters of conjugate priors. Problems whose arrays have equal shapes share one compiled program.

    Parameters
    ----------
    prepare : ``prepare(data, priors, **options)`` -> problem, on the host; raises `NotConjugate` where the conditionals
        do not hold for these priors, options or data.
    start : ``start(key, problem)`` -> state of one chain; chains should start apart, so that R-hat can tell.
    sweep : ``sweep(key, state, problem)`` -> state after every variable was updated once.
    sites : ``sites(state, problem)`` -> dict of the sites that are kept, under the names that they have in the model,
        latent or deterministic.
    state_at : ``state_at(values, data, problem)`` -> state of a chain at the true values that ``simulate`` returned, in
        which no auxiliary variable has forgotten them. The joint-distribution test starts there.
    redraw : ``redraw(key, state, problem)`` -> (state, problem) with data drawn anew given the parameters of the state,
        in arrays of the same shapes (rows of weight one), and auxiliary variables of the state that go with them; pure,
        as ``state_at`` then is. Of members whose items share parameters: `check` replicates whole problems.
    log_likelihood : ``log_likelihood(state, problem)`` -> log probability of the data, hidden labels summed out where
        that can be done; pure.
    informed : ``informed(problem, posterior)`` -> problem whose chains start at what the member's coordinate ascent
        ended with, on the host; None where any start will do. `fit` then runs the ascent first, where the priors allow
        it.
    start_options : ``start_options(options)`` -> options under which that ascent runs, where it knows a simpler kin of
        what is sampled; None takes those of the fit.
    lengths : ``lengths(problem)`` -> dict of how many first rows of a site are real, on the host, as in `Ascent`.
    """

    prepare: Callable[..., Any]
    start: Callable[..., Any]
    sweep: Callable[..., Any]
    sites: Callable[..., Mapping[str, Any]]
    state_at: Callable[..., Any] | None = None
    redraw: Callable[..., tuple[Any, Any]] | None = None
    log_likelihood: Callable[..., Any] | None = None
    informed: Callable[[Any, Any], Any] | None = None
    start_options: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    lengths: Callable[[Any], Mapping[str, int]] | None = None


Total = Callable[[Any], Any]
"""Sums a statistic, a PyTree of arrays, over the shards of a problem."""


def alone(statistic: Any) -> Any:
    """Return the total of a statistic of a problem that is in one piece."""
    return statistic


class Terms(NamedTuple):
    """Terms of an objective.

    Parameters
    ----------
    items : any shape; of the items of a shard.
    shared : any shape; of what all shards have in common, such as the parameters.
    """

    items: Any
    shared: Any

    def sum(self, total: Total = alone) -> Any:
        """Return the objective, inside of a program and in its precision."""
        return total(self.items.sum()) + self.shared.sum()


class Shards(NamedTuple):
    """A problem in pieces, each with some of the items.

    Parameters
    ----------
    problem : as ``prepare`` returns it, every array with a new first axis ``(shard, …)``. Pieces are padded to one
        shape with what contributes to no sum.
    lengths : site -> int ``(shard,)``, of the sites that are divided: how many of their first rows are real.
    """

    problem: Any
    lengths: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Ascent:
    """Hand-written steps that raise an objective until it stands still: EM, or coordinate ascent (CAVI).

    Where ``shard`` is given, ``start``, ``step`` and ``sites`` take a further argument `Total`, by default `alone`, and
    sum with it what they count over items: a problem may be divided among devices.

    Parameters
    ----------
    prepare : ``prepare(data, priors, **options)`` -> problem, as in `Gibbs`.
    start : ``start(key, problem)`` -> state.
    step : ``step(state, problem)`` -> (state, the objective at the state that came in, or always at the one that it
        returns). The objective is `Terms`, or an array of terms of items. Their sum never decreases.
    sites : ``sites(state, problem)`` -> dict of the sites of the estimate; of CAVI, the fields of the member's
        ``posterior``, parameters of the distribution that approximates it.
    truth : ``truth(sites, data)`` -> `Truth` without uncertainty, of an estimate; None where there is no estimate but a
        posterior, which the member's own ``truth`` takes.
    settled : ``settled(state, problem)`` -> whether the state is the last, by a rule of the member's own in the place
        of the driver's and exact to the step; None for problems of which the driver decides, which the structure of the
        problem must tell.
    shard : ``shard(problem, number)`` -> `Shards`, on the host; None of an ascent that runs on one device only.
    lengths : ``lengths(problem)`` -> dict of how many first rows of a site are real, on the host, where ``prepare``
        pads so that data of like size share a program; None where nothing is padded.
    """

    prepare: Callable[..., Any]
    start: Callable[..., Any]
    step: Callable[..., Any]
    sites: Callable[..., Mapping[str, Any]]
    truth: Callable[..., Any] | None = None
    settled: Callable[..., Any] | None = None
    shard: Callable[[Any, int], Shards] | None = None
    lengths: Callable[[Any], Mapping[str, int]] | None = None


@dataclass(frozen=True, kw_only=True)
class Model:
    """A member of the zoo.

    Parameters
    ----------
    name, title : how users call it, and one line about it.
    citation : BibTeX of the paper.
    data : the contract that it takes, such as `Annotations`.
    also : other contracts that it takes.
    methods : inference methods in order of preference; the first is what ``method="auto"`` takes.
    model : NumPyro function ``model(data, priors, **options)``, the joint density; None for a point estimate.
    model_data : ``model_data(data, **options)`` -> what the NumPyro function takes in the place of the data, where that
        must be found on the host, outside of compiled programs.
    priors : class of its priors; ``priors()`` are the paper's.
    prior_options : scalar shorthands for priors: name -> (help, function of the value that returns the fields of
        `priors` that it sets).
    options : its settings.
    posterior : class of what ``exact`` returns or ``cavi`` ends with: a NamedTuple of arrays, a posterior in closed
        form.
    exact : ``exact(data, priors, **options)`` -> posterior, the conjugate update; raises `NotConjugate` for other
        priors.
    cavi, gibbs, em : hand-written coordinate ascent, sampler and estimator, of members that have these methods; an
        estimator that no driver fits is a function like ``exact``, and where it takes ``mesh``, the devices that were
        asked for, it can be divided among them.
    truth : ``truth(posterior, data, *, key, num_draws, **options)`` -> `Truth`. The posterior is a `posterior`, or a
        dict of draws ``(draw, …)`` after sampling; ``num_draws`` is how many to make of a closed form.
    tables : name -> function ``(posterior, data, truth)`` -> dict of columns; a column named as an id (item, label,
        class, annotator) holds codes.
    measures : name -> ``module:function`` of a fit that returns no table, such as the number of entities with its
        interval; named only, since models import nothing of what evaluates them.
    dims : site -> dimension names, for ArviZ.
    draw : ``draw(posterior, data, *, key, num_draws, **options)`` -> dict of draws of the sites ``(draw, …)`` of a
        posterior in closed form.
    factors : ``factors(posterior)`` -> the independent Dirichlet and Beta distributions that ``cavi`` ends with, by
        site: k-hat tells from them how far the approximation is from the posterior, and NUTS starts at draws of them.
    simulate : ``simulate(key, priors, *, …sizes, **options)`` -> (data, dict of the true values), from the prior
        predictive. A member with a Gibbs sampler also takes ``values``, true values from which the data alone are to be
        drawn anew.
    testing_priors : ``testing_priors()`` -> the priors under which `check` simulates and compares when none are given,
        where ``priors()`` will not do: they must not look at data, and NUTS must be able to sample their posterior,
        which it cannot where they are very sparse.
    independent_items : whether the truths of different items are independent given priors and options, so that each
        item of one simulation is a replication of its own. Not so where items share parameters, such as the skill of an
        annotator.
    log_likelihood : ``log_likelihood(sites, data, **options)`` -> ``(item,)``, log probability of the reports given one
        draw of the sites that the hand-written sampler keeps; constants that the data determine may be left out.
    notes : ``notes(data, priors, **options)`` -> sentences about what a reader of any fit but EM's should beware of.
    warnings : ``warnings(posterior, data, **options)`` -> sentences about what went wrong in a fit that only its
        posterior tells.
    findings : ``findings(posterior, data, **options)`` -> sentences about what only the posterior tells, and that is no
        fault of the fit. Where ``warnings`` or ``findings`` names ``truth``, it gets a function without arguments that
        returns the truth of the fit, so that what both tell is computed once.
    canonical : ``canonical(samples, data, priors, **options)`` -> samples, which maps mirror modes to one in draws
        ``(chain, draw, …)`` by site (of CAVI and EM: one chain of one draw); None where the prior already does.
    summarised : ``summarised(samples, data)`` -> what summaries and diagnostics are about in the place of the sites,
        where these have labels that may be exchanged or are labels themselves; draws ``(chain, draw, …)`` by name.
    """

    name: str
    title: str
    citation: str
    data: type
    methods: tuple[str, ...]
    truth: Callable[..., Any]
    also: tuple[type, ...] = ()
    model: Any = None
    model_data: Any = None
    priors: Any = None
    prior_options: Mapping[str, tuple[str, Callable[[float], Mapping[str, Any]]]] = field(default_factory=dict)
    options: tuple[Option, ...] = ()
    posterior: Any = None
    exact: Any = None
    draw: Any = None
    factors: Any = None
    cavi: Ascent | None = None
    gibbs: Gibbs | None = None
    em: Ascent | Callable[..., Any] | None = None
    tables: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    measures: Mapping[str, str] = field(default_factory=dict)
    dims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    simulate: Any = None
    testing_priors: Any = None
    independent_items: bool = False
    log_likelihood: Any = None
    canonical: Any = None
    summarised: Any = None
    notes: Any = None
    warnings: Any = None
    findings: Any = None

    def checked_options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return all options with defaults filled in, or raise an error that says what is wrong with each of them."""
        known = {option.name: option for option in self.options}
        wrong: list[ConsilienceError] = []
        for name in given:
            if name not in known:
                close = difflib.get_close_matches(name, [*known, *self.prior_options], n=1)
                hint = f"; did you mean '{close[0]}'? Its" if close else "; its"
                listed = ", ".join([*known, *self.prior_options]) or "none"
                wrong.append(UnknownName(f"'{self.name}' has no option '{name}'{hint} options: {listed}"))
        values = {}
        for option in self.options:
            value = given.get(option.name, option.default)
            try:
                if value is REQUIRED:
                    raise UnsupportedRequest(f"'{self.name}' needs the option '{option.name}': {option.help}")
                values[option.name] = option.checked(value, self.name)
            except UnsupportedRequest as problem:
                wrong.append(problem)
        if wrong:
            raise type(wrong[0])("\n".join(map(str, wrong)))
        return values


def checked_prior(site: str, prior: Any, data: Any, event_shape: tuple[int, ...], *context: Any) -> dist.Distribution:
    """Resolve a prior field to a distribution of the right event shape.

    Parameters
    ----------
    site : name of the site, for the error.
    prior : a NumPyro distribution, or a function of the data (and ``context``) that returns one.
    data : the data contract.
    event_shape : what one draw must look like.

    Raises
    ------
    InvalidPrior : it is neither, or its event shape differs.
    """
    distribution = (
        prior if isinstance(prior, dist.Distribution) else prior(data, *context) if callable(prior) else prior
    )
    if not isinstance(distribution, dist.Distribution):
        raise InvalidPrior(
            f"the prior of site '{site}' is {type(distribution).__name__}; "
            "give a NumPyro distribution or a function of the data that returns one"
        )
    if distribution.event_shape != event_shape:
        raise InvalidPrior(
            f"the prior of site '{site}' has event shape {distribution.event_shape}, expected {event_shape}"
            + ("; use .to_event(1) if its last batch axis is one draw" if not distribution.event_shape else "")
        )
    return distribution
