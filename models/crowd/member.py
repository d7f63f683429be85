"""A member of the zoo from a channel: all that is the same for every crowd."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from consilience.data.annotations import Annotations
from consilience.models.crowd.agreement import Parameters, ParametersOf
from consilience.models.crowd.ascent import cavi_of, em_of
from consilience.models.crowd.channel import Channel, CrowdSettings
from consilience.models.crowd.density import density_of, simulation_of
from consilience.models.crowd.gate import overruled_notes, signal, signal_notes, swapped_notes, unanimous_notes
from consilience.models.crowd.gibbs import gibbs_of
from consilience.models.crowd.groups import counted_by_group
from consilience.models.crowd.occurring import parameters_of, with_occurring
from consilience.models.crowd.pairs import pair_notes
from consilience.models.crowd.saddle import saddle_notes
from consilience.models.crowd.simplices import PREVALENCE, used_sites
from consilience.models.crowd.tables import Accuracy, pairs_table, tables_of
from consilience.models.crowd.truth import truth_of
from consilience.models.gold import GOLD_MEASURES
from consilience.models.interface import Account, Column, Generic, Model, Table
from consilience.models.keys import any_key
from consilience.models.sites import Site, Sites
from consilience.notes import Level, Note

# Of confusion matrices that would not fit into memory.
_LISTED = (
    "labels are so many that an item can have only those that somebody gave it; confusion matrices list what occurs, "
    "and accuracies are counted from an annotator's own labels"
)


def crowd_member(
    *, name: str, title: str, paper: str, channel: Channel, settings: type[CrowdSettings], priors: type,
    sites: tuple[Site, ...], hidden: str = "probability", canonical: Callable[..., Any] | None = None,
    tables: tuple[Table, ...] = (), extra: Callable[..., Any] | None = None, extra_columns: tuple[Column, ...] = (),
    says: Callable[[Account], Iterable[Note]] | None = None, testing_priors: Callable[[], Any] | None = None,
    accuracy: Accuracy | None = None,
) -> Model:  # fmt: skip
    """Return the member whose annotators err by a channel.

    Parameters
    ----------
    name, title, paper, settings, priors, sites : see `Model`; a site without event dimensions is a probability.
    channel : how annotators err.
    hidden : name of the probabilities of the labels in posteriors.
    canonical : see `Sites`.
    tables : those that the model has beside the tables of every crowd.
    extra, extra_columns, accuracy : of the table of annotators; see `consilience.models.crowd.tables.tables_of`.
    says : what there is to say beside what is said of every crowd.
    testing_priors : see `Simulation.priors`.

    Examples
    --------
    `consilience.models.one_coin` is a member in fewer than 100 lines.
    """
    made = parameters_of(channel) if channel.occurring else functools.partial(Parameters, channel)
    own = Sites(
        *sites, canonical=canonical, hidden={hidden: ("item", "class")} | _learned(channel, sites),
        used=used_sites,
    )  # fmt: skip
    ascents = {"cavi": cavi_of(channel, name, hidden), "em": em_of(channel, name, hidden, priors)}

    if channel.occurring:
        ascents["cavi"] = with_occurring(ascents["cavi"])

    def more(account: Account) -> Iterator[Note]:
        known = account.resolved.given is not None  # of a loaded fit the priors may be known in words only
        if known and account.method in ascents and signal(account.resolved.data).fires:
            yield from saddle_notes(ascents[account.method], account.posterior, account.resolved, hidden)
        if says is not None:
            yield from says(account)

    return Model(
        name=name, title=title, paper=paper, takes=(Annotations,), settings=settings, priors=priors, sites=own,
        density=density_of(channel, name),
        engines=(
            ascents["cavi"], gibbs_of(channel, name, own), ascents["em"],
            Generic(name="nuts", prepare=counted_by_group), Generic(name="svi", prepare=counted_by_group),
        ),
        truth=truth_of(made, hidden),
        tables=(*tables_of(made, extra, extra_columns, accuracy), *tables, *GOLD_MEASURES),
        says=says_of(made, more), simulation=simulation_of(channel, own, priors=testing_priors),
    )  # fmt: skip


def _learned(channel: Channel, sites: tuple[Site, ...]) -> dict[str, tuple[str, ...]]:
    """Return the dimensions of learned concentrations, which posteriors hold beside the probabilities."""
    if channel.pooled is None:
        return {}
    return {f"prior.{site.name}": (*site.plates, "2") for site in sites if site.name != PREVALENCE and not site.event}


def says_of(
    parameters_of: ParametersOf, more: Callable[[Account], Iterable[Note]] | None = None
) -> Callable[[Account], Iterator[Note]]:
    """Return the ``says`` of a crowd: what the agreement of annotators tells, and of pairs of them, then ``more``."""
    pairs = pairs_table(parameters_of)

    def said(account: Account) -> Iterator[Note]:
        data = account.resolved.data
        yield from signal_notes(signal(data), data.annotators)
        yield from swapped_notes(data)
        yield from unanimous_notes(data)
        is_known = np.asarray(data.gold) >= 0 if account.resolved.settings.gold == "use" else False
        yield from overruled_notes(data, account.truth.untempered, is_known)
        if parameters_of(account.posterior, account.resolved, any_key(), 1).is_listed:
            # What else is said rests on rows of confusion matrices.
            yield Note(Level.note, _LISTED)
            return
        if not signal(data).fires:
            table = _of_different_groups(pairs(account.posterior, account.resolved, account.truth), data)
            names = np.arange(data.num_annotators) if data.annotators is None else data.annotators
            yield from pair_notes(table, names, data.num_annotators)
        if more is not None:
            yield from more(account)

    return said


def _of_different_groups(table: dict[str, np.ndarray], data: Annotations) -> dict[str, np.ndarray]:
    """Return the pairs of a table who are not said to share a source."""
    if data.group is None:
        return table
    one, other = (np.asarray(data.group)[table[column]] for column in ("annotator_a", "annotator_b"))
    kept = (one != other) | (one < 0)
    return {name: values[kept] for name, values in table.items()}
