"""What a member of the zoo is: one value of thirteen fields that names the parts of a model file.

The registry holds these values; `fit`, the command line and the tests read them and know no model by name. A part that
a member does not have stays empty, and the tests skip exactly what needs it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from consilience.arrays import Key
from consilience.errors import UnsupportedRequest, no_such
from consilience.models.posterior import Posterior
from consilience.models.settings import Settings
from consilience.models.sites import Resolved, Sites, resolve
from consilience.notes import Note

# ---- engines: how a posterior is found; each owns its hooks


Total = Callable[[Any], Any]
"""Sums a statistic, a PyTree of arrays, over the shards of a problem."""


def unsharded(statistic: Any) -> Any:
    """Return the total of a statistic of a problem that is in one piece."""
    return statistic


class Terms(NamedTuple):
    """Terms of an objective.

    Parameters
    ----------
    items : any shape; of the items of a shard.
    shared : any shape; of what all shards have in common, such as the parameters.
    number : of the terms of all shards without those that pad; None where nothing pads.
    """

    items: Any
    shared: Any
    number: Any = None

    def sum(self, total: Total = unsharded) -> Any:
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
class Exact:
    """One function that returns the posterior, without a driver.

    Parameters
    ----------
    solve : ``solve(resolved)`` -> `Posterior`; raises `NotConjugate` for priors for which it does not hold. It takes
        ``mesh=`` where ``devices``, and ``engine=`` where ``engines``.
    name : of the method: "exact", or "em" of an estimator that no driver runs.
    devices : whether devices can take over what is large.
    engines : ``engines(engine, data)`` -> the engine for tables, such as DuckDB or Spark, that a user means; "local"
        where arrays in memory do. None where there is no other.
    """

    solve: Callable[..., Posterior]
    name: str = "exact"
    devices: bool = False
    engines: Callable[[Any, Any], Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Ascent:
    """Hand-written steps that raise an objective until it stands still: EM, or coordinate ascent (CAVI).

    Where ``shard`` is given, ``start``, ``step`` and ``sites`` take a further argument `Total`, by default `unsharded`,
    and sum with it what they count over items: a problem may be divided among devices.

    Where ``coordinates`` and ``at`` are given, the driver may extrapolate the steps (SQUAREM, see
    `consilience.models.squarem`): it then starts some step from a point that no step returned. So all that ``step``
    reads of the state must follow from the coordinates, and the objective must be finite and true of any of them, or
    not finite: a step whose objective is below the one before is taken back. A count in the state runs through steps
    that are taken back.

    Parameters
    ----------
    name : of the method: "cavi" or "em".
    prepare : ``prepare(resolved)`` -> problem, a PyTree of arrays, all that the steps read, on the host. Problems whose
        arrays have equal shapes share one compiled program. Raises `NotConjugate` where the steps do not hold for these
        priors, settings or data.
    start : ``start(key, problem)`` -> state.
    step : ``step(state, problem)`` -> (state, the objective at the state that came in, or always at the one that it
        returns). The objective is `Terms`, or an array of terms of items. Their sum never decreases.
    sites : ``sites(state, problem)`` -> dict of the arrays that ``finish`` needs.
    finish : ``finish(values, resolved)`` -> `Posterior`, of the same arrays on the host, mirror modes mapped to one by
        the member's `Sites`. CAVI ends with a `Closed` one, EM with an `Estimate`.
    part : ``part(state)`` -> number, from 0, of the part of the steps that is next, where steps are of several kinds:
        ``step`` then takes ``part=``, which is known when it is compiled, and the host calls a program for each.
    settled : ``settled(state, problem)`` -> whether the state is the last, by a rule of the member's own in the place
        of the driver's and exact to the step; None for problems of which the driver decides, which the structure of the
        problem must tell.
    shard : ``shard(problem, number)`` -> `Shards`, on the host; None of an ascent that runs on one device only.
    lengths : ``lengths(problem)`` -> dict of how many first rows of an array are real, on the host, where ``prepare``
        pads so that data of like size share a program; None where nothing is padded.
    moved : ``moved(before, after)`` -> scalar, how far a step moved what users look at, such as the largest change of a
        probability over the items of the shard; pure, of the states before and after a step. The driver takes the
        largest over the shards. Where given, a run has converged only if the last two steps moved no further than 1e-4,
        and the driver's rule of the objective holds too. A state may hold the responsibilities of the step before,
        which no step reads, so that this can be told.
    coordinates : ``coordinates(state)`` -> PyTree of arrays without bounds, all that a step reads of a state, equal on
        all shards: such as logarithms of concentrations. Of probabilities that may tend to zero, ``log(p + 1e-12)``
        rather than ``log(p)``, which would run away and dwarf all else. What is not finite stays as the steps left it.
    at : ``at(coordinates, state)`` -> a state from these coordinates whose next step starts there, brought back into
        bounds, such as probabilities that sum to one. Of ``state`` it may take what no step reads.
    begin_from : ``begin_from(problem, ended)`` -> problem whose ascent starts where an earlier one ended, on the host:
        with ``ended`` what the posterior of that one holds beside the sites and `Sites` declares, in codes of the data
        of this problem, NaN of units that the earlier one did not know; None of an ascent that cannot.
    climbs : ``climbs(problem)`` -> whether ``start`` takes many steps of its own, such as from random starts, so that
        its program has to be fast; None of an ascent that never does.
    unsuited : ``unsuited(resolved)`` -> why ``method="auto"`` passes the ascent over for these data, in words, empty
        where it does not; None of an ascent that suits all data.
    of_parts : whether each of several processes may prepare its own items alone: what ``prepare`` counts over items
        goes through ``data.total``, ``lengths`` and `Terms.number` are given, and no parameter is of an item.
    """

    name: str
    prepare: Callable[[Resolved], Any]
    start: Callable[..., Any]
    step: Callable[..., Any]
    sites: Callable[..., Mapping[str, Any]]
    finish: Callable[[dict[str, Any], Resolved], Posterior]
    part: Callable[[Any], Any] | None = None
    settled: Callable[..., Any] | None = None
    shard: Callable[[Any, int], Shards] | None = None
    lengths: Callable[[Any], Mapping[str, int]] | None = None
    moved: Callable[[Any, Any], Any] | None = None
    coordinates: Callable[[Any], Any] | None = None
    at: Callable[[Any, Any], Any] | None = None
    begin_from: Callable[[Any, Mapping[str, Any]], Any] | None = None
    climbs: Callable[[Any], bool] | None = None
    unsuited: Callable[[Resolved], str] | None = None
    of_parts: bool = False


@dataclass(frozen=True, kw_only=True)
class Starts:
    """Where the chains of a sampler start, where that depends on the data.

    Parameters
    ----------
    draws, chains, warmup : of a run for which the user says nothing else.
    words : where each start is; chains take them in turn. Chains that have none, though they start apart, are to meet.
    """

    draws: int
    chains: int
    warmup: int
    words: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Gibbs:
    """A hand-written Gibbs sampler. ``start``, ``sweep`` and ``sites`` are pure, and run inside ``jax.jit``.

    Parameters
    ----------
    prepare : ``prepare(resolved)`` -> problem, as in `Ascent`.
    start : ``start(key, problem)`` -> state of one chain; chains should start apart, so that R-hat can tell. Where
        ``starts`` is given it takes the number of the chain as a third argument.
    compares : ``compares(resolved, fitted)`` -> the fit to return where a setting is to be found by comparing fits,
        which ``fitted(resolved)`` makes; None where all settings are given, or of a sampler that compares none.
    starts : ``starts(resolved)`` -> `Starts` of data for which the sampler has starts of its own, else None; None of a
        sampler that has none.
    sweep : ``sweep(key, state, problem)`` -> state after every variable was updated once.
    sites : ``sites(state, problem)`` -> dict of the sites that are kept, under the names that they have in the model,
        latent or deterministic.
    host : whether the three are plain functions of NumPy arrays, which the driver calls on the host, chain by chain
        (numba, bincount): no compiled program calls back. Keys are then `numpy.random.Generator`s.
    warmed : ``warmed(state, problem, done, warmup)`` -> state, after each of the sweeps of the warm-up, ``done`` of
        them so far: what is tuned before the first draw. Of samplers on the host; None of one that tunes nothing.
    hidden : ``hidden(samples, resolved)`` -> (samples, what the posterior holds beside the sites), made of entries of
        ``sites`` that are no sites, ``(chain, draw, …)``, which it takes out; None where there are none.
    begin_at : ``begin_at(problem, posterior)`` -> problem whose chains start at what the member's coordinate ascent
        ended with, on the host; None where any start will do. `fit` then runs the ascent first, where the priors allow
        it.
    begin_from : as in `Ascent`, of the sites: ``ended`` are the last draws of the earlier chains, ``(chain, …)``.
    at : ``at(values, resolved, problem)`` -> state of a chain at the true values that the simulation returned, in which
        no auxiliary variable has forgotten them. The joint-distribution test starts there.
    redraw : ``redraw(key, state, problem)`` -> (state, problem) with data drawn anew given the parameters of the state,
        in arrays of the same shapes (rows of weight one), and auxiliary variables of the state that go with them; pure,
        as ``at`` then is, or on the host. Of members whose items share parameters: `check` replicates whole problems.
    log_likelihood : ``log_likelihood(state, problem)`` -> log probability of the data, hidden labels summed out where
        that can be done; pure.
    lengths : as in `Ascent`, of the sites.
    instead : ``instead(resolved)`` -> the sampler that takes the place of this one under settings that ask for another
        posterior, None where this one is meant.
    name : of the method.
    """

    prepare: Callable[[Resolved], Any]
    start: Callable[..., Any]
    sweep: Callable[..., Any]
    sites: Callable[..., Mapping[str, Any]]
    host: bool = False
    warmed: Callable[[Any, Any, int, int], Any] | None = None
    compares: Callable[[Resolved, Callable[[Resolved], Any]], Any] | None = None
    hidden: Callable[[dict[str, Any], Resolved], tuple[dict[str, Any], dict[str, Any]]] | None = None
    starts: Callable[[Resolved], Starts | None] | None = None
    begin_at: Callable[[Any, Posterior], Any] | None = None
    begin_from: Callable[[Any, Mapping[str, Any]], Any] | None = None
    at: Callable[..., Any] | None = None
    redraw: Callable[..., tuple[Any, Any]] | None = None
    log_likelihood: Callable[..., Any] | None = None
    lengths: Callable[[Any], Mapping[str, int]] | None = None
    instead: Callable[[Resolved], Gibbs | None] | None = None
    name: str = "gibbs"

    def compared(self, resolved: Resolved, fitted: Callable[[Resolved], Any]) -> Any:
        """Return the best of several fits where a setting is to be found by comparing them; else None."""
        return None if self.compares is None else self.compares(resolved, fitted)


@dataclass(frozen=True, kw_only=True)
class Generic:
    """Inference that knows the density alone.

    Parameters
    ----------
    name : "nuts" or "svi".
    prepare : ``prepare(resolved)`` -> resolved with what the density reads in the place of the data, where that must be
        found on the host, outside of compiled programs; None where the density reads the data.
    check : ``check(resolved)`` raises `UnsupportedRequest` for settings whose density is for other programs than ours,
        such as one with discrete sites; None where there are none.
    """

    name: str
    prepare: Callable[[Resolved], Resolved] | None = None
    check: Callable[[Resolved], None] | None = None


Engine = Exact | Ascent | Gibbs | Generic


# ---- what a user asks for


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    name : of the column.
    codes : dimension whose ids it shows; empty where it holds numbers or texts.
    help : what it is, with its unit.
    """

    name: str
    codes: str = ""
    help: str = ""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of a fit, a method of it by its name.

    Parameters
    ----------
    name, help : how it is called, and one line about it.
    columns : those that it may have, in order.
    make : ``make(posterior, resolved, truth, **choice)`` -> dict of arrays by column, ids as codes.
    kept : ``kept(engine, posterior, resolved, truth)`` -> the table as an engine keeps it, of fits by one; None where
        that is a data frame all the same.
    """

    name: str
    help: str
    columns: tuple[Column, ...]
    make: Callable[..., dict[str, Any]]
    kept: Callable[..., Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A method of a fit that is not made of the posterior alone, such as the number of entities with its interval.

    Parameters
    ----------
    name, help : how it is called, and one line about it.
    place : ``module:function`` of a fit; named only, since models import nothing of what evaluates them.
    columns : of the data frame that it returns, where it returns one. The command shows it as a table, though not every
        fit has one: it may raise `UnsupportedRequest`.
    says : what of it a reader of any fit should know, as notes; None where that is nothing.
    """

    name: str
    help: str
    place: str
    columns: tuple[Column, ...] = ()
    says: Callable[[Account], Iterable[Note]] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Account:
    """What a member may look at when it says what a reader should know.

    Parameters
    ----------
    posterior, resolved : of the fit.
    method : by which it was fitted.
    make_truth : makes the truth of the fit, when it is first asked for.
    """

    posterior: Posterior
    resolved: Resolved
    method: str
    make_truth: Callable[[], Any]

    @functools.cached_property
    def truth(self) -> Any:
        """The truth of the fit."""
        return self.make_truth()


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """Data from the prior predictive, for checks, demonstrations and benchmarks.

    Parameters
    ----------
    draw : ``draw(key, resolved, sizes)`` -> (data, dict of the true values), where ``resolved.data`` is the empty
        contract of the sizes asked for. Of a member with a Gibbs sampler it also takes ``values``, true values from
        which the data alone are to be drawn anew.
    empty : ``empty(**sizes)`` -> contract of these sizes without a report, which priors may look at.
    sizes : name -> default, such as ``{"num_items": 100}``.
    priors : ``priors()`` -> those under which `check` simulates and compares when none are given, where the member's
        will not do: NUTS must be able to sample their posterior, which it cannot where they are very sparse.
    independent_items : whether the truths of different items are independent given priors and settings, so that each
        item of one simulation is a replication of its own. Not so where items share parameters, such as the skill of an
        annotator.
    log_likelihood : ``log_likelihood(sites, resolved)`` -> ``(item,)``, log probability of the reports given one draw
        of the sites that the hand-written sampler keeps; constants that the data determine may be left out.
    unread : settings without a default that have no part in how data arise, with any value: `simulate` does not ask for
        them.
    """

    draw: Callable[..., tuple[Any, dict[str, Any]]]
    empty: Callable[..., Any]
    sizes: Mapping[str, Any]
    priors: Callable[[], Any] | None = None
    independent_items: bool = False
    log_likelihood: Callable[[Mapping[str, Any], Resolved], Any] | None = None
    unread: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """A member of the zoo.

    Parameters
    ----------
    name, title : how users call it, and one line about it.
    paper : BibTeX.
    takes : the contracts that it takes, such as `Annotations`.
    settings : class of its settings.
    priors : class of its priors, whose defaults are the paper's; None where it has none.
    sites : the variables of the model.
    density : ``density(resolved)``, NumPyro function of the joint density; None of a point estimate.
    engines : in order of preference; the first is what ``method="auto"`` takes.
    truth : ``truth(posterior, resolved, *, key, num_draws)`` -> `Truth`; ``num_draws`` is how many to make of a
        posterior in closed form.
    tables : what a user asks for, by name.
    says : what a reader of a fit should know, as notes.
    simulation : None where data cannot be simulated.
    """

    name: str
    title: str
    paper: str
    takes: tuple[type, ...]
    settings: type[Settings] = Settings
    priors: Any = None
    sites: Sites = field(default_factory=Sites)
    density: Callable[[Resolved], None] | None = None
    engines: tuple[Engine, ...]
    truth: Callable[..., Any]
    tables: tuple[Table | Measure, ...] = ()
    says: Callable[[Account], Iterable[Note]] | None = None
    simulation: Simulation | None = None

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Copy and pickle a registered member by its name: what it consists of may be functions of functions."""
        from consilience import models

        if self.name in models.MEMBERS and models.member(self.name) is self:
            return models.member, (self.name,)
        return super().__reduce_ex__(protocol)

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of its methods, in order of preference."""
        return tuple(engine.name for engine in self.engines)

    def engine(self, method: str) -> Any:
        """Return the engine of a method, None where the member has none of that name."""
        return next((engine for engine in self.engines if engine.name == method), None)

    def table(self, name: str) -> Table:
        """Return the table of a name.

        Raises
        ------
        UnknownName : there is none.
        """
        for table in self.tables:
            if table.name == name and isinstance(table, Table):
                return table
        known = [*self.table_names, *self.measured_tables]
        raise no_such(f"'{self.name}' has no table '{name}'", name, known, f"it has {', '.join(known)}")

    @property
    def table_names(self) -> tuple[str, ...]:
        """Names of the tables, which every fit has."""
        return tuple(table.name for table in self.tables if isinstance(table, Table))

    @property
    def measured_tables(self) -> tuple[str, ...]:
        """Names of the measures that return tables."""
        return tuple(table.name for table in self.tables if isinstance(table, Measure) and table.columns)

    @property
    def measure_names(self) -> tuple[str, ...]:
        """Names of what a fit answers beside tables."""
        return tuple(table.name for table in self.tables if isinstance(table, Measure))

    def resolve(self, data: Any, priors: Any = None, options: Mapping[str, Any] | None = None) -> Resolved:
        """Return data, priors and settings as everything else reads them; see `consilience.models.sites.resolve`."""
        return resolve(self.name, self.priors, self.settings, self.sites, data, priors, options or {})

    def model(self, data: Any, priors: Any = None, **settings: Any) -> None:
        """State the joint density as a NumPyro model.

        It is what `numpyro.infer.NUTS` takes: ``MCMC(NUTS(member.model), …).run(key, data, priors)``.

        Parameters
        ----------
        data : the contract.
        priors : the member's by default.
        settings : the member's own, by name.

        Raises
        ------
        UnsupportedRequest : the member has no density.
        """
        if self.density is None:
            raise UnsupportedRequest(f"'{self.name}' is a point estimate and has no density")
        resolved = self.resolve(data, priors, settings)
        prepare = next((one.prepare for one in self.engines if isinstance(one, Generic)), None)
        return self.density(resolved if prepare is None else prepare(resolved))

    def simulate(self, key: Key, priors: Any = None, **given: Any) -> tuple[Any, dict[str, Any]]:
        """Draw data from the prior predictive.

        Parameters
        ----------
        key : random key.
        priors : the member's by default; those that it names for simulations where it has such.
        given : sizes, such as ``num_items``, and settings, by name; ``values`` for true values that are known.

        Returns
        -------
        data : the contract.
        values : the true values, by site.

        Raises
        ------
        UnsupportedRequest : the member cannot simulate data.
        """
        if self.simulation is None:
            raise UnsupportedRequest(f"'{self.name}' cannot simulate data")
        sizes = {name: given.pop(name, default) for name, default in self.simulation.sizes.items()}
        known = {"values": given.pop("values")} if "values" in given else {}
        if priors is None and self.simulation.priors is not None and not _has_shorthands(self.settings, given):
            priors = self.simulation.priors()
        given = {**self.simulation.unread, **given}
        resolved = self.resolve(self.simulation.empty(**sizes), priors, given)
        resolved.settle()
        return self.simulation.draw(key, resolved, sizes, **known)


def _has_shorthands(settings: type[Settings], given: Mapping[str, Any]) -> bool:
    return any(one.sets is not None and given.get(one.name) is not None for one in settings.fields())
