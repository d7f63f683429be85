"""A channel, how annotators err: a tree of simplices and two pure functions. All else is written once over it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from consilience.arrays import Array, Float, Key
from consilience.data.annotations import Annotations
from consilience.errors import UnsupportedRequest
from consilience.models import settings
from consilience.models.crowd.evidence import Evidence
from consilience.models.crowd.simplices import PREVALENCE, Tree
from consilience.models.crowd.votes import Votes
from consilience.models.gold import gold_setting
from consilience.models.interface import Total, unsharded
from consilience.models.settings import setting


def dependence_setting(default: float = 0.3) -> Any:
    """Return the setting; a model says by how much it assumes dependence where neither user nor gold labels do."""
    return setting(
        "auto",
        "how much the labels of one item err together, an intra-item correlation: 0 if annotators err independently; "
        f"gold: learned from gold labels; auto: learned where 20 items have gold, else {default:g}, or 1 if the "
        "annotators agree no more than chance",
        at_least=0.0, at_most=1.0, words=("auto", "gold"), earlier=0.0,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class CrowdSettings(settings.Settings):
    """Settings that every crowd model has; a model declares as fields what else it offers.

    Attributes
    ----------
    candidates : which labels an item can have: "closed", all of them, or "observed", those that somebody gave it.
    prevalence : "learned", or "uniform": all labels equally probable.
    restarts : random starts of an ascent beside its own.
    smoothing : of EM: pseudo-count that the labels share.
    """

    candidates: ClassVar[str] = "closed"
    prevalence: ClassVar[str] = "learned"
    restarts: ClassVar[int] = 0
    smoothing: ClassVar[float] = 0.0

    gold: str = gold_setting()
    dependence: float | str = dependence_setting()

    @property
    def learns_prevalence(self) -> bool:
        """Whether the shares of the classes are parameters."""
        return self.prevalence == "learned"


@dataclass(frozen=True)
class Channel:
    """How annotators err.

    The probability of a label is linear in each simplex of the tree, the others being fixed, so that posterior means of
    probabilities follow from those of independent simplices.

    Parameters
    ----------
    evidence : ``evidence(logs, num_labels)`` -> `Dense` or `Lifted`, of logarithms of the tree, or expected ones.
    counts : ``counts(statistics, logs, given, key)`` -> tree of the outcomes of each simplex: expected ones, or drawn
        with a key. ``statistics`` are those of the evidence: of a `Dense` one ``(annotator, class, label)``, of a
        `Lifted` one how many labels were right, ``(annotator, label)``; ``given`` is how many were given.
    flat_start : whether an ascent starts from equal shares in all simplices, and not from vote shares.
    fewest_labels : for which the channel is defined.
    earlier : ``earlier(values)`` -> arrays by site of what coordinate ascent ended with in fits that were saved under
        other names; None where the names are the same.
    whole_weights : whether the sampler needs weights that are whole numbers.
    occurring : whether the simplices are the rows of confusion matrices, of which coordinate ascent may hold what
        occurs (see `consilience.models.crowd.occurring`).
    pooled : ``pooled(prior, counts, hyper)`` -> prior with concentrations learned from all annotators, and ``hyper(
        resolved)`` the numbers of their own prior, an empty array where the prior is given; None of a channel whose
        priors are fixed.
    """

    evidence: Callable[[Tree, int], Evidence]
    counts: Callable[[Any, Tree, Array, Key | None], Tree]
    flat_start: bool = False
    fewest_labels: int = 1
    earlier: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    whole_weights: bool = False
    occurring: bool = False
    pooled: Callable[[Tree, Tree, Array], Tree] | None = None
    hyper: Callable[[Any], Array] | None = None


def require_labels(channel: Channel, data: Annotations, member: str) -> None:
    """Refuse data of fewer labels than the channel is defined for.

    Raises
    ------
    UnsupportedRequest : there are fewer.
    """
    if data.num_labels < channel.fewest_labels:
        raise UnsupportedRequest(f"'{member}' needs {channel.fewest_labels} labels or more; the data have one")


class Found(NamedTuple):
    """What an E-step finds.

    Parameters
    ----------
    responsibility : shape ``(item, class)``; zero of items that pad.
    log_evidence : shape ``(item,)``; log normalisers, up to the constant of the evidence.
    evidence : what annotations say.
    """

    responsibility: Float[Array, "item class"]
    log_evidence: Float[Array, " item"]
    evidence: Evidence


def joint(channel: Channel, logs: Tree, votes: Votes) -> tuple[Float[Array, "item class"], Evidence]:
    """Return the log probability of each class of each item with its annotations, up to the evidence's constant."""
    evidence = channel.evidence(logs, votes.num_labels)
    equal = jnp.zeros(votes.num_labels, votes.dtype)  # `Votes.log_prior` has what equal shares add
    return evidence.joint(votes, logs.get(PREVALENCE, equal)), evidence


def e_step(channel: Channel, logs: Tree, votes: Votes) -> Found:
    """Return the probabilities of the labels given logarithms of the parameters."""
    log_joint, evidence = joint(channel, logs, votes)
    log_evidence = jax.nn.logsumexp(log_joint, axis=1)
    responsibility = jnp.exp(log_joint - log_evidence[:, None]) * votes.real[:, None]
    return Found(responsibility, log_evidence * votes.real, evidence)


def counted(
    channel: Channel, evidence: Evidence, responsibility: Float[Array, "item class"], logs: Tree, votes: Votes,
    total: Total = unsharded, key: Key | None = None,
) -> Tree:  # fmt: skip
    """Return the outcomes of all simplices, expected or drawn, given probabilities of the labels or labels."""
    statistics, of_class = total((evidence.statistics(votes, responsibility), responsibility.sum(axis=0)))
    found = channel.counts(statistics, logs, votes.counts, key)
    return {PREVALENCE: of_class, **found} if PREVALENCE in logs else found


def log_evidence(channel: Channel, logs: Tree, votes: Votes) -> Float[Array, " item"]:
    """Return the log probability of each item's annotations, labels summed out."""
    log_joint, evidence = joint(channel, logs, votes)
    return jax.nn.logsumexp(log_joint, axis=1) + evidence.constant_by_item(votes)
