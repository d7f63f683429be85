r"""A skeleton to copy for a new member: yes-no answers with a Beta posterior (contributing.md explains each part).

Annotators answer a question about each item with one of two labels. The share of annotators who would say the second
label is the item's plausibility:

.. math::

    p_i \sim \mathrm{Beta}(a, b), \qquad
    p(y_i \mid p_i) = \prod_r \bigl(p_i^{y_{ir}} (1 - p_i)^{1 - y_{ir}}\bigr)^\gamma.

| symbol | name | shape |
|---|---|---|
| p | ``share`` | (item,) |
| a, b | the concentrations of ``Priors.share`` | scalars, 1 each by default |
| γ | ``reliability`` | scalar, set by the user, 1 by default |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from consilience.arrays import Float
from consilience.data import Annotations
from consilience.errors import UnsupportedRequest
from consilience.models import settings
from consilience.models.interface import Account, Column, Exact, Generic, Model, Simulation, Table
from consilience.models.posterior import Closed, Posterior
from consilience.models.settings import setting
from consilience.models.sites import Resolved, Site, Sites
from consilience.models.truth import DirichletTruth, Entries, PlausibilityDraws, PointTruth, leading
from consilience.models.truth.classes import ClassTruth
from consilience.notes import Level, Note

__all__ = ["MODEL", "Priors", "Settings", "Symmetric", "exact", "model", "says", "simulate", "truth"]


# 1. What a researcher swaps: each field a NumPyro distribution, or a function of the data that returns one.
@dataclass(frozen=True)
class Symmetric:
    """A prior that counts as some answers of either label, as a function of the data.

    Parameters
    ----------
    concentration : positive.
    """

    concentration: float

    def __call__(self, data: Any) -> dist.Beta:
        """Return the distribution of one share."""
        return dist.Beta(self.concentration, self.concentration)


@dataclass(frozen=True, kw_only=True)
class Priors:
    """What the model believes before any answer.

    Parameters
    ----------
    share : distribution of an item's share, event shape ``()``; every share is as likely as any other by default.
    """

    share: dist.Distribution | Callable[[Any], dist.Distribution] = Symmetric(1.0)


# 2. What a user sets: keywords of `fit` and flags of the command. A setting with ``sets`` is a shorthand for a prior.
@dataclass(frozen=True, kw_only=True)
class Settings(settings.Settings):
    """Settings of `yes-no`; see the fields."""

    reliability: float = setting(1.0, "how much each answer is trusted: the power of its likelihood", above=0.0)
    prior_answers: float | None = setting(
        None, "how many answers of either label the prior counts as: 1", above=0.0, sets=("share", Symmetric)
    )


# 3. The single truth about the joint density. Data, settings and priors come checked, in one value.
def density(resolved: Resolved) -> None:
    """State the joint density of shares and answers."""
    data = resolved.data
    require_two_labels(data)
    with numpyro.plate("item", data.num_items):
        share = numpyro.sample("share", resolved.prior("share"))
    answers = dist.Bernoulli(share[data.item]).log_prob(data.label)
    numpyro.factor("answers", resolved.settings.reliability * jnp.sum(data.weight * answers))


# 4. The kernel: here a conjugate update; a Gibbs or CAVI member has its conditionals in this place.
def exact(resolved: Resolved) -> Closed:
    """Return the exact posterior, Beta(a + γ answers, b + γ answers).

    Raises
    ------
    NotConjugate : the prior of ``share`` is not a Beta distribution.
    UnsupportedRequest : there are not two labels.
    """
    votes = votes_of(resolved.data)
    yes, no = (resolved.concentration("share") + resolved.settings.reliability * votes[:, ::-1]).T
    return Closed({"share": dist.Beta(yes, no)}, {"votes": votes})


def votes_of(data: Annotations) -> Float[np.ndarray, "item label"]:
    """Return how many annotators gave each item each label."""
    require_two_labels(data)
    votes = np.zeros((data.num_items, 2))
    np.add.at(votes, (data.item, data.label), data.weight)
    return votes


def require_two_labels(data: Annotations) -> None:
    """Refuse what are no yes-no answers.

    Raises
    ------
    UnsupportedRequest : there are not two labels.
    """
    if data.num_labels != 2:
        raise UnsupportedRequest(f"'yes-no' takes two labels, and the data have {data.num_labels}; use 'dirichlet'")


# 5. What the paper calls true, as draws: here plausibilities of both labels.
def truth(posterior: Posterior, resolved: Resolved, *, key: Any, num_draws: int) -> ClassTruth:
    """Return draws of the plausibilities, from the exact posterior or from stored draws of the site ``share``."""
    entries = Entries.dense(resolved.data.num_items, 2)
    draws: ClassTruth
    if posterior.form == "closed":
        no_yes = np.asarray(posterior.share, float)[:, ::-1]
        draws = DirichletTruth(entries, no_yes.ravel(), 0.0, key=key, num_draws=num_draws)
    else:
        draws = PlausibilityDraws.dense(np.stack([1 - posterior.share, posterior.share], axis=-1))
    draws.point = PointTruth(entries, votes_of(resolved.data).ravel())
    return draws


# 6. What a user asks for, by name. A column with ids names its dimension: the user's own ids are put in.
def labels(posterior: Posterior, resolved: Resolved, truth: ClassTruth) -> dict[str, np.ndarray]:
    """Return the more plausible label of each item."""
    return leading(truth)


def shares(posterior: Posterior, resolved: Resolved, truth: ClassTruth) -> dict[str, np.ndarray]:
    """Return the share of each item. A summary asks any posterior, in closed form or drawn, in one way."""
    found = posterior.summary("share")
    return {"item": np.arange(len(found.mean))} | found.columns()


TABLES = (
    Table(
        name="labels", help="The more plausible label of each item, and how sure that is.", make=labels,
        columns=(
            Column("item", "item"), Column("label", "class"), Column("probability", help="mean share of the label"),
            Column("certainty", help="probability that the label is the more plausible one"),
        ),
    ),
    Table(
        name="shares", help="The share of annotators who would say the second label.", make=shares,
        columns=(
            Column("item", "item"), Column("mean", help="of the share"),
            Column("lower", help="end of the central 95 % interval"), Column("upper", help="its other end"),
        ),
    ),
)  # fmt: skip


# 7. What a reader of any fit should know, in words; remedies would be arguments by name (consilience/notes.py).
def says(account: Account) -> Iterator[Note]:
    """Say of how many items the prior knows as much as the data."""
    data = account.resolved.data
    few = int((np.bincount(data.item, data.weight, data.num_items) < 2).sum())
    if few:
        text = f"{few} of {data.num_items} items have fewer than two answers: the prior says as much of them"
        yield Note(Level.note, text)


# 8. Data from the prior predictive, for calibration, demonstrations and benchmarks. ``resolved.data`` is the contract
#    of the sizes without any answer: a prior that looks at data finds these sizes there.
def draw_data(key: Any, resolved: Resolved, sizes: Mapping[str, int]) -> tuple[Annotations, dict[str, np.ndarray]]:
    """Draw shares from the prior and an answer of every annotator for every item; the reliability has no part in it.

    Returns
    -------
    data : all annotators answer for all items.
    values : ``share``, shape ``(item,)``.
    """
    key_share, key_answer = jax.random.split(key)
    shape = sizes["num_items"], sizes["num_annotators"]
    share = resolved.prior("share").expand(shape[:1]).sample(key_share)
    answer = jax.random.bernoulli(key_answer, share[:, None], shape)
    item, annotator = np.indices(shape).reshape(2, -1)
    data = Annotations.from_codes(item, annotator, np.asarray(answer, int).ravel(), num_labels=2, **sizes)
    return data, {"share": np.asarray(share)}


def two_labels(**sizes: int) -> Annotations:
    """Return the contract of these sizes without any answer."""
    return Annotations.empty(num_labels=2, **sizes)


# 9. The value that the registry names.
MODEL = Model(
    name="yes-no",
    title="yes-no answers with a Beta posterior, a skeleton to copy",
    paper="""@book{gelman2013bayesian,
  title     = {Bayesian Data Analysis},
  author    = {Gelman, Andrew and Carlin, John B. and Stern, Hal S. and Dunson, David B. and Vehtari, Aki and
               Rubin, Donald B.},
  edition   = {3},
  publisher = {CRC Press},
  year      = {2013}
}""",
    takes=(Annotations,),
    settings=Settings,
    priors=Priors,
    sites=Sites(Site("share", plates=("item",), family=dist.Beta), hidden={"votes": ("item", "label")}),
    density=density,
    engines=(Exact(solve=exact), Generic(name="nuts"), Generic(name="svi")),
    truth=truth,
    tables=TABLES,
    says=says,
    simulation=Simulation(
        draw=draw_data, empty=two_labels, sizes={"num_items": 100, "num_annotators": 10}, independent_items=True
    ),
)
model, simulate = MODEL.model, MODEL.simulate
