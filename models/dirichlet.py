r"""Dirichlet plausibilities from single labels (Stutz et al. 2023, sections 3.1 and 4.1: toy data, CIFAR-10H).

Each annotator names one class. The plausibilities of an item have a Dirichlet prior, and the reliability γ says how
much a label is trusted, as a power of the likelihood:

.. math::

    \theta_i \sim \mathrm{Dirichlet}(\alpha), \qquad
    p(b_i \mid \theta_i) = \prod_r \theta_{i, b_{ir}}^{\gamma w_{ir}}, \qquad
    \theta_i \mid b_i \sim \mathrm{Dirichlet}(\gamma s_i + \alpha).

| symbol | name | shape |
|---|---|---|
| θ | ``plausibility`` | (item, label) |
| γ | ``reliability`` | scalar, set by the user and swept, never estimated |
| α | the concentration of ``Priors.plausibility`` | (label,), the same for each by default: see `Learned` |
| s | ``votes`` | (entry,): weighted counts of the labels that an item received |

The paper prints no α for CIFAR-10H. Any small one gives the certainties it reports: with γ = 1, exactly 176 images
below 0.99 for α = 0.01 and for α = 0.1 (the paper: 178, by Monte Carlo).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from consilience.arrays import Array, Float, Int, Key
from consilience.data.annotations import Annotations
from consilience.data.codes import places
from consilience.errors import NotConjugate
from consilience.models import settings
from consilience.models.beta_priors import check_positive
from consilience.models.concentration import CountsOfClasses
from consilience.models.gold import GOLD_MEASURES
from consilience.models.interface import Account, Column, Exact, Generic, Model, Simulation, Table
from consilience.models.label_tables import leading_labels
from consilience.models.posterior import Closed, Factor, Interval, Posterior, beta_interval
from consilience.models.settings import setting
from consilience.models.sites import Resolved, Site, Sites
from consilience.models.special import finite_log
from consilience.models.truth import DirichletTruth, Entries, PlausibilityDraws, PointTruth
from consilience.models.truth.classes import ClassTruth
from consilience.notes import IN_DETAILS, Level, Note

__all__ = ["MODEL", "Priors", "Settings", "Symmetric", "model", "simulate"]


@dataclass(frozen=True)
class Symmetric:
    """A prior that adds the same number to each label.

    Parameters
    ----------
    concentration : positive.

    Raises
    ------
    InvalidPrior : it is not.
    """

    concentration: float

    def __post_init__(self) -> None:
        check_positive("concentration of Symmetric(concentration)", self.concentration)

    def __call__(self, data: Any) -> dist.Dirichlet:
        """Return Dirichlet(α, …, α) over the labels of the data."""
        return dist.Dirichlet(jnp.full(data.num_labels, self.concentration))

    def numbers(self, data: Any) -> Float[np.ndarray, " label"]:
        """Return the concentrations without making the distribution."""
        return np.full(data.num_labels, self.concentration, float)


_SPREAD = 2.0  # of the logarithm: one standard deviation is a factor of seven
_HIGHEST = 100.0


@dataclass(frozen=True)
class Learned:
    """Dirichlet(α, …, α), where α is learned from how often the labels of an item differ.

    The most probable α given all labels (Dirichlet-multinomial; Minka 2000), under a log-normal prior about ``least``
    with a standard deviation of 2; never below ``least``, since annotators who err together agree more than they know.
    Of weights that are no whole numbers nobody knows what they count: α is then ``least``.

    Parameters
    ----------
    least : positive; 0.1 gives CIFAR-10H what the paper reports of it.

    Raises
    ------
    InvalidPrior : it is not.
    """

    least: float = 0.1
    is_learned: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_positive("least of Learned(least)", self.least)

    def __call__(self, data: Annotations) -> dist.Dirichlet:
        """Return Dirichlet(α, …, α) over the labels of the data."""
        return Symmetric(self.concentration(data))(data)

    def numbers(self, data: Annotations) -> Float[np.ndarray, " label"]:
        """Return the concentrations without making the distribution."""
        return Symmetric(self.concentration(data)).numbers(data)

    def concentration(self, data: Annotations) -> float:
        """Return α."""
        entries, votes = votes_of(data)
        if not np.all(votes % 1 == 0):
            return self.least
        totals = np.bincount(entries.item, votes, data.num_items).astype(int)
        counts = CountsOfClasses.of(votes.astype(int), totals[totals > 0], data.num_labels)
        return counts.most_probable(self.least, _HIGHEST, spread=_SPREAD)


@dataclass(frozen=True, kw_only=True)
class Priors:
    """What the model believes before any label.

    Parameters
    ----------
    plausibility : distribution of an item's plausibilities, event shape ``(label,)``; by default Dirichlet(α, …, α)
        with an α learned from the labels.
    """

    plausibility: dist.Distribution | Callable[[Any], dist.Distribution] = Learned()


@dataclass(frozen=True, kw_only=True)
class Settings(settings.Settings):
    """Settings of `dirichlet`; see the fields."""

    reliability: float = setting(
        1.0, "how many independent annotations each one counts as: the power of its likelihood", above=0.0
    )
    alpha: float | None = setting(
        None, "number added to each label, the symmetric Dirichlet prior: learned, at least 0.1", above=0.0,
        sets=("plausibility", Symmetric),
    )  # fmt: skip


def density(resolved: Resolved) -> None:
    """State the joint density of plausibilities and labels."""
    data = resolved.data
    with numpyro.plate("item", data.num_items):
        plausibility = numpyro.sample("plausibility", resolved.prior("plausibility"))
    # Small concentrations put plausibilities below the smallest float; the logarithm must stay finite for its gradient.
    log_plausibility = finite_log(plausibility)[data.item, data.label]
    numpyro.factor("annotations", resolved.settings.reliability * jnp.sum(data.weight * log_plausibility))


@dataclass(frozen=True)
class RaggedDirichlet(Factor):
    """Dirichlet distributions of all items, of which only the classes that somebody named are listed.

    Parameters
    ----------
    first : int64, shape ``(item + 1,)``; the entries of item i are ``first[i]:first[i + 1]``.
    entry_class : int32, shape ``(entry,)``; the class of an entry.
    concentration : float64, shape ``(entry,)``.
    unnamed : float64 scalar; concentration of each class without an entry.
    num_classes : how many classes there are in all.
    per_entry : whether a draw has one number for each entry, and not one for each class of each item; the classes
        without an entry then have nothing.
    """

    first: Int[np.ndarray, " boundary"]
    entry_class: Int[np.ndarray, " entry"]
    concentration: Float[np.ndarray, " entry"]
    unnamed: float
    num_classes: int
    per_entry: bool = False

    @property
    def entries(self) -> Entries:
        """The classes that somebody named."""
        return Entries(self.first, self.entry_class, self.num_classes)

    def sample(self, key: Key, shape: tuple[int, ...]) -> Float[Array, "*shape ..."]:
        """Return the plausibilities of all classes, ``(*shape, item, class)``, large where there are many.

        Where draws are per entry, ``(*shape, entry)``.
        """
        entries = self.entries
        if self.per_entry:
            return _draw_entries(key, self.concentration, entries.item, entries.num_items, shape)
        # By JAX, so that its size can be asked for without building it.
        cells = jnp.full((entries.num_items, self.num_classes), self.unnamed)
        cells = cells.at[entries.item, entries.class_].set(self.concentration)
        return jax.random.dirichlet(key, cells, (*shape, entries.num_items))

    def summary(self, level: float) -> Interval:
        """Return mean, standard deviation and interval of the plausibility of each entry."""
        item = self.entries.item
        total = np.bincount(item, self.concentration, self.entries.num_items)
        total = (total + self.unnamed * self.entries.num_unnamed)[item]
        return beta_interval(self.concentration, total - self.concentration, level)


def _draw_entries(
    key: Key, concentration: Float[np.ndarray, " entry"], item: Int[np.ndarray, " entry"], num_items: int,
    shape: tuple[int, ...],
) -> Float[Array, "*shape entry"]:  # fmt: skip
    """Draw Dirichlet vectors of any lengths: Gamma variables, normalised item by item."""
    log_weight = jax.random.loggamma(key, jnp.asarray(concentration), (*shape, len(item)))
    highest = jax.ops.segment_max(jnp.moveaxis(log_weight, -1, 0), item, num_items)[item]
    weight = jnp.exp(jnp.moveaxis(log_weight, -1, 0) - highest)
    return jnp.moveaxis(weight / jax.ops.segment_sum(weight, item, num_items)[item], 0, -1)


_VOTES: weakref.WeakKeyDictionary[Annotations, tuple[Entries, Float[np.ndarray, " entry"]]] = (
    weakref.WeakKeyDictionary()
)


def votes_of(data: Annotations) -> tuple[Entries, Float[np.ndarray, " entry"]]:
    """Return the labels that each item got, and the sums of their weights; counted once for the same data."""
    if data not in _VOTES:
        cell = np.asarray(data.item, np.int64) * data.num_labels + np.asarray(data.label)
        weight = np.asarray(data.weight, float)
        named, position = places(cell[weight > 0])
        votes = np.bincount(position, weight[weight > 0], len(named)).astype(float)  # whole numbers when empty
        _VOTES[data] = Entries.of(*np.divmod(named, data.num_labels), data.num_items, data.num_labels), votes
    return _VOTES[data]


def _of_all_labels(entries: Entries, votes: Float[np.ndarray, " entry"]) -> tuple[Entries, Float[np.ndarray, " cell"]]:
    """Return the votes with an entry for every label of every item."""
    every = np.zeros((entries.num_items, entries.num_classes))
    every[entries.item, entries.class_] = votes
    item, label = np.indices(every.shape).reshape(2, -1)
    return Entries.of(item, label, *every.shape), every.ravel()


def exact(resolved: Resolved) -> Closed:
    """Return the exact posterior, Dirichlet(γ s + α) per item (Stutz et al. 2023, section 4.1).

    A symmetric prior leaves the labels that nobody gave exchangeable, so that they need not be listed: memory is
    linear in the number of annotations for any number of labels.

    Raises
    ------
    NotConjugate : the prior of site ``plausibility`` is not one Dirichlet distribution for all items.
    """
    data, alpha = resolved.data, resolved.concentration("plausibility")[0]
    if resolved.prior("plausibility").batch_shape:
        raise NotConjugate("site 'plausibility': the exact posterior needs one Dirichlet prior for all items")
    exchangeable = bool(np.all(alpha == alpha[0]))
    entries, votes = votes_of(data) if exchangeable else _of_all_labels(*votes_of(data))
    concentration = resolved.settings.reliability * votes + alpha[entries.class_]
    unnamed = float(alpha[0]) if exchangeable else 0.0
    found = RaggedDirichlet(entries.first, entries.class_, concentration, unnamed, data.num_labels)
    return Closed({"plausibility": found}, {"votes": votes})


def says(account: Account) -> Iterator[Note]:
    """Say which number the prior adds to each label, where it was learned and is not the least."""
    own = getattr(account.resolved.given, "plausibility", None)
    if not isinstance(own, Learned):
        return
    alpha = float(account.resolved.concentration("plausibility").flat[0])
    if alpha > own.least:
        yield Note(
            Level.note,
            f"the prior adds {alpha:.2g} to each label (alpha), as learned from how often the labels of an item differ",
            about=IN_DETAILS,
        )


def truth(posterior: Posterior, resolved: Resolved, *, key: Key, num_draws: int) -> ClassTruth:
    """Return draws of the plausibilities: of the exact posterior, or those stored for the site ``plausibility``."""
    draws: ClassTruth
    if posterior.form == "closed":
        own = posterior.plausibility
        draws = DirichletTruth(own.entries, own.concentration, own.unnamed, key=key, num_draws=num_draws)
    else:
        draws = PlausibilityDraws.dense(posterior.plausibility)
    draws.point = PointTruth(*_votes(posterior, resolved.data))
    return draws


def _votes(posterior: Posterior, data: Annotations) -> tuple[Entries, Float[np.ndarray, " entry"]]:
    """Return the labels that items got and their numbers, as the posterior has them if it was exact."""
    if posterior.form == "closed":
        return posterior.plausibility.entries, posterior.votes
    return votes_of(data)


LABELS = Table(
    name="labels", help="The most plausible label of each item, and how sure that is.",
    columns=(
        Column("item", "item"), Column("label", "class"), Column("probability", help="mean plausibility of the label"),
        Column("certainty", help="probability that the label is the most plausible one"),
    ),
    make=leading_labels,
)  # fmt: skip
"""The table of every truth of plausibilities."""


def testing_priors() -> Priors:
    """Return Dirichlet(1, …, 1): under the sparser default NUTS does not reach the classes that an item never got."""
    return Priors(plausibility=Symmetric(1.0))


def draw_data(
    key: Key, resolved: Resolved, sizes: Mapping[str, Any]
) -> tuple[Annotations, dict[str, np.ndarray]]:
    """Draw plausibilities from the prior and one label per item and annotator from them.

    The reliability is how far an analyst trusts the labels; it has no part in how they arise.

    Returns
    -------
    data : all annotators label all items.
    values : ``plausibility``, shape ``(item, label)``.
    """
    plausibility, label = _drawn(key, resolved)
    item, annotator = np.indices(label.shape).reshape(2, -1)
    data = Annotations.from_codes(item, annotator, np.asarray(label).ravel(), **sizes)
    return data, {"plausibility": np.asarray(plausibility)}


@jax.jit
def _drawn(key: Key, resolved: Resolved) -> tuple[Float[Array, "item label"], Int[Array, "item annotator"]]:
    key_plausibility, key_label = jax.random.split(key)
    shape = resolved.data.num_items, resolved.data.num_annotators
    plausibility = resolved.prior("plausibility").expand(shape[:1]).sample(key_plausibility)
    return plausibility, jax.random.categorical(key_label, finite_log(plausibility)[:, None, :], shape=shape)


MODEL = Model(
    name="dirichlet",
    title="plausibilities of single labels, with an exact Dirichlet posterior",
    paper="""@article{stutz2023evaluating,
  title   = {Evaluating {AI} systems under uncertain ground truth: a case study in dermatology},
  author  = {Stutz, David and Cemgil, Ali Taylan and Roy, Abhijit Guha and Matejovicova, Tatiana and Barsbey, Melih and
             Strachan, Patricia and Schaekermann, Mike and Freyberg, Jan and Rikhye, Rajeev and Freeman, Beverly and
             Matos, Javier Perez and Telang, Umesh and Webster, Dale R. and Liu, Yuan and Corrado, Greg S. and
             Matias, Yossi and Kohli, Pushmeet and Liu, Yun and Doucet, Arnaud and Karthikesalingam, Alan},
  journal = {arXiv preprint arXiv:2307.02191},
  year    = {2023}
}""",
    takes=(Annotations,),
    settings=Settings,
    priors=Priors,
    sites=Sites(
        Site("plausibility", plates=("item",), event=("label",), family=dist.Dirichlet, prior_plates=("item",)),
        hidden={"votes": ("entry",)},
    ),
    density=density,
    engines=(Exact(solve=exact), Generic(name="nuts"), Generic(name="svi")),
    truth=truth,
    says=says,
    tables=(LABELS, *GOLD_MEASURES),
    simulation=Simulation(
        draw=draw_data, empty=Annotations.empty, sizes={"num_items": 100, "num_annotators": 10, "num_labels": 3},
        priors=testing_priors, independent_items=True,
    ),
)  # fmt: skip
model, simulate = MODEL.model, MODEL.simulate
