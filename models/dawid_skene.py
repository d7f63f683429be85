r"""Dawid and Skene (1979): annotators with a confusion matrix each, and items with one true label.

.. math::

    p \sim \mathrm{Dir}(a), \qquad \Theta_{jt} \sim \mathrm{Dir}(A_t), \qquad
    T_i \sim \mathrm{Cat}(p), \qquad l_n \sim \mathrm{Cat}(\Theta_{j_n, T_{i_n}}).

Annotation n says that annotator :math:`j_n` gave item :math:`i_n` the label :math:`l_n`. An annotator who labels an
item several times has several rows, and a row of weight w counts w times.

| symbol | name | shape |
|---|---|---|
| p | ``prevalence`` | (class,) |
| Θ | ``confusion`` | (annotator, class, label): who, the true class, the label that is given; always in this order |
| T | ``label`` of a simulation; summed out elsewhere | (item,) |
| q(T) | ``responsibility``, of CAVI and EM | (item, class) |
| a, A | the concentrations of ``Priors``: a is 1; A is 3 for the right label and 1 for each other | (class,), (class, label) |

Inference, truth and tables are those of every crowd (`consilience.models.crowd`). CAVI treats labels and parameters as
independent, and is too certain where data are few; the posterior of the labels is tempered for what the model leaves
out, that errors of one item hang together (``dependence``). ``diagonal=1, dependence=0`` is the model with flat priors
as it was first implemented here; ``method="em"`` is the estimate of 1979, maximum likelihood from vote shares, without
priors. On the data of 1979 it has log likelihood -192.89, and random starts find -191.57.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from consilience.errors import NotConjugate
from consilience.models.crowd.agreement import annotation_counts
from consilience.models.crowd.channel import Channel, CrowdSettings
from consilience.models.crowd.evidence import Dense
from consilience.models.crowd.gate import ERRORS
from consilience.models.crowd.labelling import canonical
from consilience.models.crowd.member import crowd_member
from consilience.models.crowd.own_labels import counted_accuracy
from consilience.models.crowd.pooled import with_one_coin
from consilience.models.crowd.tables import Asked
from consilience.models.dirichlet import Symmetric
from consilience.models.interface import Account
from consilience.models.posterior import Interval, Posterior
from consilience.models.settings import setting
from consilience.models.sites import Resolved, Site
from consilience.notes import Level, Note

__all__ = ["MODEL", "Diagonal", "Priors", "Settings", "model", "simulate"]


@dataclass(frozen=True)
class Diagonal:
    """Rows of confusion matrices that expect annotators to be right.

    Parameters
    ----------
    right : positive; the concentration of the true label.
    wrong : positive; the concentration of each other label.
    """

    right: float
    wrong: float = 1.0

    def __call__(self, data: Any) -> dist.Dirichlet:
        """Return a Dirichlet distribution for each class, batch shape ``(class,)``."""
        return dist.Dirichlet(self.wrong + (self.right - self.wrong) * jnp.eye(data.num_labels))

    def numbers(self, data: Any) -> np.ndarray:
        """Return the concentrations without making the distribution."""
        return self.wrong + (self.right - self.wrong) * np.eye(data.num_labels)


@dataclass(frozen=True, kw_only=True)
class Priors:
    """Priors of the shares of the classes and of the annotators' errors.

    Parameters
    ----------
    prevalence : distribution of the class shares, event shape ``(class,)``; Dirichlet(1, …, 1) by default.
    confusion : distribution of a row of a confusion matrix, event shape ``(label,)``, batch shape ``()`` or
        ``(class,)``; the same for every annotator. `Diagonal` (3) by default, which expects right labels.
    """

    prevalence: dist.Distribution | Callable[[Any], dist.Distribution] = Symmetric(1.0)
    confusion: dist.Distribution | Callable[[Any], dist.Distribution] = Diagonal(3.0)


@dataclass(frozen=True, kw_only=True)
class Settings(CrowdSettings):
    """Settings of `dawid-skene`; see the fields."""

    diagonal: float | None = setting(
        None, "concentration of the right label in a row of a confusion matrix; others have 1: 3", above=0.0,
        sets=("confusion", Diagonal),
    )  # fmt: skip
    candidates: str = setting(  # type: ignore[misc]
        "auto", "which labels may be true of an item: all (closed), or those that somebody gave it (observed); auto: "
        "all, unless confusion matrices of so many labels would not fit into memory",
        choices=("auto", "closed", "observed"),
    )  # fmt: skip


CHANNEL = Channel(
    evidence=lambda logs, num_labels: Dense(logs["confusion"]),
    counts=lambda statistics, logs, given, key: {"confusion": statistics},
    occurring=True,
)

# Standard errors by which the prior may move the accuracy of the median annotator without a word.
_UNSAID = 1.0


class _Weight(NamedTuple):
    """How accurate the prior expects annotators to be, with the weight of how many labels, and how many they gave."""

    expected: float
    weight: float
    number: float


def _outweighed(posterior: Posterior, resolved: Resolved) -> _Weight | None:
    """Return what the prior has to say about accuracies where that is more than the annotators' own labels do.

    Rows of a confusion matrix are independent, and each has the weight of its concentrations: of many labels all rows
    together claim to know an annotator's accuracy well, and to know it to be the prior's.
    """
    if posterior.form == "estimate" or resolved.given is None:
        return None
    try:
        prior = resolved.concentration("confusion")
    except NotConjugate:
        return None
    prior = np.broadcast_to(prior, (resolved.data.num_labels, prior.shape[-1]))
    number = annotation_counts(resolved.data)
    expected, weight = float((prior.diagonal() / prior.sum(axis=1)).mean()), float(prior.sum())
    accuracy = _accuracies(posterior, resolved)[number > 0]
    number = number[number > 0]
    # What her own labels say is as far from what is said of her as the prior's weight takes it.
    moved = np.abs(accuracy - expected) * weight / number
    error = np.sqrt(np.maximum(accuracy * (1 - accuracy), 1e-3) / (number + weight))
    if not number.size or np.median(moved / error) <= _UNSAID:
        return None
    return _Weight(expected, weight, float(np.median(number)))


def _is_of_ours(resolved: Resolved) -> bool:
    """Return whether the prior of the confusion matrices is of our kind, and not a distribution of the user's own."""
    return isinstance(getattr(resolved.given, "confusion", None), Diagonal)


def _accuracy(asked: Asked, own: Interval) -> Interval:
    """Return accuracies by this model and by `one-coin`; by a prior of the user's own they are what it makes of them.

    Where the prior outweighs the annotators they are counted from the labels, and not taken from confusion matrices.
    """
    posterior, resolved = asked.posterior, asked.resolved
    if posterior.form == "estimate" or not _is_of_ours(resolved):
        return own
    if _outweighed(posterior, resolved) is not None:
        own = counted_accuracy(np.asarray(asked.truth.untempered), resolved.data, asked.level)
    return with_one_coin(own, asked)


def _says(account: Account) -> Iterator[Note]:
    """Say where the prior has more of a say about confusion matrices than the annotators' own labels."""
    found = _outweighed(account.posterior, account.resolved)
    if found is None:
        return
    counted = _is_of_ours(account.resolved)
    leaning = "confusion matrices lean" if counted else "accuracies and confusion matrices lean"
    yield Note(
        Level.warning,
        f"{leaning} towards the prior, and so do their intervals: before any data it expects {found.expected:.2f} of "
        f"the labels to be right, and weighs as much as {found.weight:.0f} labels of each annotator, who gave "
        f"{found.number:,.0f} (the median)."
        + (
            " Accuracies are therefore counted from labels, one half of them by the model one-coin, which learns how "
            "accurate to expect each annotator"
            if counted else " The model one-coin learns from all annotators how accurate to expect each"
        ),
        title="What the model expects of annotators outweighs what they did.", model="one-coin", about=ERRORS,
    )


def _accuracies(posterior: Posterior, resolved: Resolved) -> np.ndarray:
    """Return the mean accuracy of each annotator on items drawn by the mean prevalence."""
    confusion, prevalence = (np.asarray(posterior.value(site), float) for site in ("confusion", "prevalence"))
    if posterior.form == "draws":
        confusion, prevalence = confusion.mean(axis=0), prevalence.mean(axis=0)
    right = confusion[: resolved.data.num_annotators].diagonal(axis1=1, axis2=2) / confusion.sum(axis=-1)
    return right @ (prevalence / prevalence.sum())


MODEL = crowd_member(
    name="dawid-skene",
    title="labels by annotators who each have a confusion matrix",
    paper="""@article{dawid1979maximum,
  title   = {Maximum Likelihood Estimation of Observer Error-Rates Using the {EM} Algorithm},
  author  = {Dawid, A. P. and Skene, A. M.},
  journal = {Journal of the Royal Statistical Society. Series C (Applied Statistics)},
  volume  = {28},
  number  = {1},
  pages   = {20--28},
  year    = {1979},
  doi     = {10.2307/2346806}
}""",
    channel=CHANNEL, settings=Settings, priors=Priors, hidden="responsibility", canonical=canonical,
    says=_says, accuracy=_accuracy,
    sites=(
        Site("prevalence", event=("class",), family=dist.Dirichlet),
        Site(
            "confusion", plates=("annotator", "class"), event=("label",), family=dist.Dirichlet,
            prior_plates=("class",),
        ),
    ),
)  # fmt: skip
model, simulate = MODEL.model, MODEL.simulate
