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
from consilience.models.rows import padded_size
from consilience.models.sites import Resolved, Sites

SIZES: dict[str, Any] = {"num_items": 100, "num_annotators": 10, "num_labels": 3, "annotations_per_item": None}
"""What a simulation asks for; ``annotations_per_item`` None lets everybody label every item."""

LEAST_ITEMS = 64
"""The fewest items for which a program that simulates is made."""


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
        used = [site.name for site in used_sites(resolved)]
        few, many = (of_size(resolved, size) for size in (1, padded_size(sizes["num_items"], LEAST_ITEMS)))
        known = drawn_sites(key, few) if values is None else {site: np.asarray(values[site]) for site in used}
        annotator, true, label = simulated(key, many, known, sizes["annotations_per_item"])
        ids, true = np.indices((sizes["num_items"], annotator.shape[1]))[0], np.asarray(true)[: sizes["num_items"]]
        who, what = (np.asarray(rows)[: len(ids)].ravel() for rows in (annotator, label))
        gold = np.where(np.arange(len(true)) % 2, true, -1) if resolved.settings.gold == "use" else None
        data = Annotations.from_codes(ids.ravel(), who, what, gold=gold, **counts)
        return data, {**{site: np.asarray(known[site]) for site in used}, "label": true}

    @jax.jit(static_argnums=3)
    def simulated(
        key: Key, resolved: Resolved, values: Mapping[str, Array], annotations_per_item: int | None
    ) -> tuple[Array, Array, Array]:
        """Return the annotators of each item, true labels, and the labels that the annotators give."""
        data, (_, key_who, key_label) = resolved.data, jax.random.split(key, 3)
        annotator = who_labels_what(key_who, data, annotations_per_item)
        item = jnp.repeat(jnp.arange(data.num_items), annotator.shape[1])
        logs = logs_of_variables(values, used_sites(resolved))
        log_prevalence = logs.get(PREVALENCE, jnp.zeros(data.num_labels))
        evidence = channel.evidence(logs, data.num_labels)
        true, label = draw_annotations(key_label, log_prevalence, evidence, item, annotator.ravel(), data.num_items)
        return annotator, true, label.reshape(annotator.shape)

    return Simulation(
        draw=draw_data, empty=Annotations.empty, sizes=SIZES, log_likelihood=log_likelihood_of(channel), **more
    )


def of_size(resolved: Resolved, num_items: int) -> Resolved:
    """Return the same for so many items: programs that draw are then shared by simulations of like size."""
    data = resolved.data
    sizes = {"num_annotators": data.num_annotators, "num_labels": data.num_labels}
    return resolved.replace(data=Annotations.empty(num_items=num_items, **sizes), _found=resolved._found)


@jax.jit
def drawn_sites(key: Key, resolved: Resolved) -> dict[str, Array]:
    """Draw the parameters from their priors, which do not depend on the items."""
    used = used_sites(resolved)
    keys = jax.random.split(jax.random.split(key, 3)[0], len(used))
    return {
        site.name: resolved.prior(site.name).expand(tuple(resolved.size(plate) for plate in site.plates)).sample(own)
        for own, site in zip(keys, used, strict=True)
    }


def draw_annotations(
    key: Key, log_prevalence: Float[Array, " class"], evidence: Any, item: Int[Array, " annotation"],
    annotator: Int[Array, " annotation"], num_items: int,
) -> tuple[Int[Array, " item"], Int[Array, " annotation"]]:  # fmt: skip
    """Draw the true label of every item, and what each annotation says."""
    key_true, key_label = jax.random.split(key)
    true = jax.random.categorical(key_true, log_prevalence, shape=(num_items,))
    return true, jax.random.categorical(key_label, evidence.said(annotator, true[item]))


def who_labels_what(key: Key, data: Annotations, annotations_per_item: int | None) -> Int[Array, "item annotation"]:
    """Return who annotates each item, for data of the size of those that are given.

    Raises
    ------
    UnsupportedRequest : more annotations an item than annotators.
    """
    num_items, num_annotators = data.num_items, data.num_annotators
    size = annotations_per_item or num_annotators
    if size > num_annotators:
        raise UnsupportedRequest(f"{size} annotations of one item need as many annotators, not {num_annotators}")
    return choose_annotators(key, num_items, num_annotators, size)


@jax.jit(static_argnums=(1, 2, 3))
def choose_annotators(key: Key, num_items: int, num_annotators: int, size: int) -> Int[Array, "item annotation"]:
    """Choose different annotators for each item, all sets being as likely (Floyd's algorithm, all items at once)."""
    if size == num_annotators:
        return jnp.tile(jnp.arange(num_annotators), (num_items, 1))
    lowest, places = num_annotators - size, jnp.arange(size)

    def settle(place: Any, chosen: Any) -> Any:
        own = chosen[:, place]
        again = ((chosen == own[:, None]) & (places < place)).any(axis=1)
        return chosen.at[:, place].set(jnp.where(again, lowest + place, own))

    drawn = jax.random.randint(key, (num_items, size), 0, lowest + 1 + places)
    return jnp.sort(jax.lax.fori_loop(0, size, settle, drawn), axis=1)
