"""A member of the zoo from a channel: all that is the same for every crowd."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from consilience.data.annotations import Annotations
from consilience.models.crowd.ascent import cavi_of, em_of
from consilience.models.crowd.channel import Channel, CrowdSettings
from consilience.models.crowd.density import density_of, simulation_of
from consilience.models.crowd.gate import signal, signal_notes
from consilience.models.crowd.gibbs import gibbs_of
from consilience.models.crowd.pairs import pair_notes
from consilience.models.crowd.tables import pairs_table, tables_of
from consilience.models.crowd.truth import truth_of_channel
from consilience.models.gold import GOLD_MEASURES
from consilience.models.interface import Account, Column, Generic, Model, Table
from consilience.models.sites import Site, Sites
from consilience.notes import Note


def crowd_member(
    *, name: str, title: str, paper: str, channel: Channel, settings: type[CrowdSettings], priors: type,
    sites: tuple[Site, ...], hidden: str = "probability", canonical: Callable[..., Any] | None = None,
    tables: tuple[Table, ...] = (), extra: Callable[..., Any] | None = None, extra_columns: tuple[Column, ...] = (),
    says: Callable[[Account], Iterable[Note]] | None = None, testing_priors: Callable[[], Any] | None = None,
) -> Model:  # fmt: skip
    """Return the member whose annotators err by a channel.

    Parameters
    ----------
    name, title, paper, settings, priors, sites : see `Model`; a site without event dimensions is a probability.
    channel : how annotators err.
    hidden : name of the probabilities of the labels in posteriors.
    canonical : see `Sites`.
    tables : those that the model has beside the tables of every crowd.
    extra, extra_columns : further columns of the table of annotators, and the function that makes them.
    says : what there is to say beside what is said of every crowd.
    testing_priors : see `Simulation.priors`.

    Examples
    --------
    `consilience.models.one_coin` is a member in fewer than 100 lines.
    """
    own = Sites(*sites, canonical=canonical, hidden={hidden: ("item", "class")})

    pairs = pairs_table(channel)

    def said(account: Account) -> Iterator[Note]:
        data = account.resolved.data
        names = np.arange(data.num_annotators) if data.annotators is None else data.annotators
        yield from signal_notes(signal(data), names)
        if not signal(data).fires:
            table = pairs(account.posterior, account.resolved, account.truth)
            yield from pair_notes(table, names, data.num_annotators)
        if says is not None:
            yield from says(account)

    return Model(
        name=name, title=title, paper=paper, takes=(Annotations,), settings=settings, priors=priors, sites=own,
        density=density_of(channel, name),
        engines=(
            cavi_of(channel, name, hidden), gibbs_of(channel, name, own), em_of(channel, name, hidden, priors),
            Generic(name="nuts"), Generic(name="svi"),
        ),
        truth=truth_of_channel(channel, hidden),
        tables=(*tables_of(channel, extra, extra_columns), *tables, *GOLD_MEASURES), says=said,
        simulation=simulation_of(channel, own, priors=testing_priors),
    )  # fmt: skip

