"""The joint density of any channel as a NumPyro model, labels summed out; annotations drawn from its prior."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro

from consilience.arrays import Array, Float, Int, Key
from consilience.data.annotations import Annotations
from consilience.errors import UnsupportedRequest
from consilience.models.crowd.channel import Channel, log_evidence, require_labels
from consilience.models.crowd.simplices import PREVALENCE, logs_of_variables, used_sites
from consilience.models.crowd.votes import listed_votes, require_annotators
from consilience.models.interface import Simulation
from consilience.models.sites import Resolved, Sites

SIZES: dict[str, Any] = {"num_items": 100, "num_annotators": 10, "num_labels": 3, "annotations_per_item": None}
"""What a simulation asks for; ``annotations_per_item`` None lets everybody label every item."""


def log_likelihood_of(channel: Channel) -> Callable[[Mapping[str, Array], Resolved], Float[Array, " item"]]:
    """Return the function of the log probability of each item's annotations given the sites."""

    def log_likelihood(sites: Mapping[str, Array], resolved: Resolved) -> Float[Array, " item"]:
        """Return the log probability of each item's annotations, and of its gold label where that is used."""
        logs = logs_of_variables(sites, used_sites(resolved))
        return log_evidence(channel, logs, listed_votes(resolved))

    return log_likelihood


def density_of(channel: Channel, member: str) -> Callable[[Resolved], None]:
    """Return the NumPyro model of the channel of a member."""
    log_likelihood = log_likelihood_of(channel)

    def density(resolved: Resolved) -> None:
        """State the joint density of the parameters and the annotations, true labels summed out."""
        require_annotators(resolved.data, member)
        require_labels(channel, resolved.data, member)
        sites = {}
        for site in used_sites(resolved):
            plates = [
                numpyro.plate(plate, resolved.size(plate), dim=axis - len(site.plates))
                for axis, plate in enumerate(site.plates)
            ]
            sites[site.name] = _in_plates(plates, site.name, resolved)
        with numpyro.plate("item", resolved.data.num_items):
            numpyro.factor("annotations", log_likelihood(sites, resolved))

    return density


def _in_plates(plates: list[Any], name: str, resolved: Resolved) -> Array:
    if plates:
        with plates[0]:
            return _in_plates(plates[1:], name, resolved)
    return numpyro.sample(name, resolved.prior(name))


# ---- simulation


def simulation_of(channel: Channel, member_sites: Sites, **more: Any) -> Simulation:
    """Return the simulation of a channel; ``more`` are further fields of `Simulation`."""

    def draw_data(
        key: Key, resolved: Resolved, sizes: Mapping[str, Any], values: Mapping[str, Any] | None = None
    ) -> tuple[Annotations, dict[str, np.ndarray]]:
        """Draw parameters from the prior, and from them true labels and annotations.

        With ``gold="use"`` the true label of every other item is known.

        Parameters
        ----------
        sizes : ``num_items, num_annotators, num_labels``, and ``annotations_per_item``: how many different annotators,
            chosen at random, label each item; None for all of them.
        values : true values as this function returns them: keep the parameters, and draw the rest.

        Returns
        -------
        data : sorted by item.
        values : the sites, and ``label`` ``(item,)``.

        Raises
        ------
        UnsupportedRequest : more annotations an item than annotators.
        """
        counts = {name: sizes[name] for name in ("num_items", "num_annotators", "num_labels")}
        num_items, num_labels = sizes["num_items"], sizes["num_labels"]
        key_sites, key_who, key_label = jax.random.split(key, 3)
        used = used_sites(resolved)
        if values is None:
            keys = jax.random.split(key_sites, len(used))
            values = {site.name: _drawn(own, site, resolved) for own, site in zip(keys, used, strict=True)}
        else:
            values = {site.name: jnp.asarray(values[site.name]) for site in used}
        item, annotator = who_labels_what(key_who, sizes)
        logs = logs_of_variables(values, used)
        log_prevalence = logs.get(PREVALENCE, jnp.zeros(num_labels))
        evidence = channel.evidence(logs, num_labels)
        true, label = draw_annotations(key_label, log_prevalence, evidence, item, annotator, num_items)
        gold = np.where(np.arange(num_items) % 2, true, -1) if resolved.settings.gold == "use" else None
        data = Annotations.from_codes(item, annotator, np.asarray(label), gold=gold, **counts)
        return data, {name: np.asarray(value) for name, value in (values | {"label": true}).items()}

    return Simulation(
        draw=draw_data, empty=Annotations.empty, sizes=SIZES, log_likelihood=log_likelihood_of(channel), **more
    )


def _drawn(key: Key, site: Any, resolved: Resolved) -> Array:
    """Draw a site from its prior."""
    prior = resolved.prior(site.name)
    return prior.expand(tuple(resolved.size(plate) for plate in site.plates)).sample(key)


def draw_annotations(
    key: Key, log_prevalence: Float[Array, " class"], evidence: Any, item: Int[np.ndarray, " annotation"],
    annotator: Int[np.ndarray, " annotation"], num_items: int,
) -> tuple[Int[Array, " item"], Int[Array, " annotation"]]:  # fmt: skip
    """Draw the true label of every item, and what each annotation says."""
    key_true, key_label = jax.random.split(key)
    true = jax.random.categorical(key_true, log_prevalence, shape=(num_items,))
    return true, jax.random.categorical(key_label, evidence.said(annotator, true[item]))


def who_labels_what(
    key: Key, sizes: Mapping[str, Any]
) -> tuple[Int[np.ndarray, " annotation"], Int[np.ndarray, " annotation"]]:
    """Return item and annotator of each annotation, sorted by item, of the sizes that are asked of a simulation.

    Raises
    ------
    UnsupportedRequest : more annotations an item than annotators.
    """
    num_items, num_annotators = sizes["num_items"], sizes["num_annotators"]
    size = sizes["annotations_per_item"] or num_annotators
    if size > num_annotators:
        raise UnsupportedRequest(f"{size} annotations of one item need as many annotators, not {num_annotators}")
    annotator = np.asarray(choose_annotators(key, num_items, num_annotators, size)).ravel()
    return np.repeat(np.arange(num_items), size), annotator


def choose_annotators(key: Key, num_items: int, num_annotators: int, size: int) -> Int[np.ndarray, "item annotation"]:
    """Choose different annotators for each item, all sets being as likely (Floyd's algorithm, all items at once)."""
    if size == num_annotators:
        return np.broadcast_to(np.arange(num_annotators), (num_items, size))
    highest = np.arange(num_annotators - size, num_annotators)
    chosen = np.array(jax.random.randint(key, (num_items, size), 0, highest + 1))
    for place, last in enumerate(highest):
        again = (chosen[:, :place] == chosen[:, place, None]).any(axis=1)
        chosen[again, place] = last
    return np.sort(chosen, axis=1)
