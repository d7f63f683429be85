r"""MACE: annotators who know the label, or guess (Hovy et al. 2013).

.. math::

    T_i \sim \mathrm{Cat}(p), \qquad S_n \sim \mathrm{Bernoulli}(1 - \theta_{j_n}), \qquad
    l_n = T_{i_n} \text{ if } S_n = 0, \qquad l_n \sim \mathrm{Categorical}(\xi_{j_n}) \text{ if } S_n = 1,

so that, with S summed out, annotator j gives an item of label t the label l with probability
:math:`\theta_j 1[l = t] + (1 - \theta_j) \xi_{jl}`. The weight of an annotation is the power of its likelihood: that
many annotations.

| symbol | name | shape |
|---|---|---|
| p | ``prevalence``; the published model has equal shares, ``prevalence="uniform"`` | (class,) |
| θ | ``competence``, the probability that the annotator knows | (annotator,) |
| ξ | ``guess``, what it says when it guesses | (annotator, label) |
| T | ``label``, the true one | (item,) |
| S | which annotations are guesses: summed out, or counted by the Gibbs sampler | (annotation,) |

Inference, truth and tables are those of every crowd (`consilience.models.crowd`). Of the annotations of annotator j
that give the right label l, the share :math:`\kappa = k / (k + g)` was known, with :math:`k = \theta` and
:math:`g = (1 - \theta) \xi`, or their expected logarithms; the rest of her annotations were guessed. Given the labels
the number that was known is binomial, by cells of annotator and label.

The prevalence is learned, unlike in the paper: where classes are unequal, equal shares cost accuracy (on ZenCrowd 6
points); ``prevalence="uniform", dependence=0`` is the published model. Two traps of the published program. Its
``alpha`` is the pseudo-count of *guessing* and its ``beta`` that of *knowing*, so that alpha > beta means distrust;
here both have names (`KnowsGuesses`). And of several starts it keeps the one with the largest
:math:`\sum_i \log Z_i`, which under variational Bayes is not the bound; here starts are compared by the bound. It makes
10 random starts of 50 iterations; here the flat start, in which nobody is known to be better than anybody else, is the
default, and a run goes on until it stands still. That start is no saddle: "knows" is tied to the names of the labels,
so that an annotator who agrees with others gains at once, and there are no mirror modes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from consilience.arrays import Array, Float, Int, Key
from consilience.models.beta_priors import check_positive
from consilience.models.crowd.channel import Channel, CrowdSettings
from consilience.models.crowd.evidence import Lifted
from consilience.models.crowd.member import crowd_member
from consilience.models.crowd.simplices import Tree
from consilience.models.crowd.tables import Asked
from consilience.models.dirichlet import Symmetric
from consilience.models.interface import Column, Table
from consilience.models.intervals import LEVEL
from consilience.models.label_tables import INTERVAL
from consilience.models.posterior import Posterior
from consilience.models.settings import setting
from consilience.models.sites import Resolved, Site
from consilience.models.truth.labels import LabelTruth

__all__ = ["MODEL", "KnowsGuesses", "Priors", "Settings", "model", "simulate"]


@dataclass(frozen=True)
class KnowsGuesses:
    """Beta(knows, guesses): pseudo-counts of annotations that were known and that were guessed.

    The published program asks for the same two numbers the other way round: its ``alpha`` counts guesses, its ``beta``
    what is known. There alpha > beta means distrust.

    Parameters
    ----------
    knows, guesses : positive.

    Raises
    ------
    InvalidPrior : they are not.
    """

    knows: float
    guesses: float

    def __post_init__(self) -> None:
        check_positive("knows of KnowsGuesses(knows, guesses)", self.knows)
        check_positive("guesses of KnowsGuesses(knows, guesses)", self.guesses)

    def __str__(self) -> str:
        return f"Beta({self.knows:g} known, {self.guesses:g} guessed)"

    def __call__(self, data: Any) -> dist.Beta:
        """Return the distribution of one competence."""
        return dist.Beta(self.knows, self.guesses)

    def numbers(self, data: Any) -> Float[np.ndarray, " 2"]:
        """Return both without making the distribution."""
        return np.array([self.knows, self.guesses], float)


@dataclass(frozen=True, kw_only=True)
class Priors:
    """What the model believes before any annotation; of annotators it is what the published program believes.

    Parameters
    ----------
    prevalence : distribution of the class shares, event shape ``(class,)``; Dirichlet(1, …, 1) by default.
    competence : distribution of the probability that an annotator knows the label, batch shape ``()`` or
        ``(annotator,)``; Beta(0.5, 0.5) by default.
    guess : distribution of what an annotator says when it guesses, event shape ``(label,)``, batch shape ``()`` or
        ``(annotator,)``; Dirichlet(10, …, 10) by default.
    """

    prevalence: dist.Distribution | Callable[[Any], dist.Distribution] = Symmetric(1.0)
    competence: dist.Distribution | Callable[[Any], dist.Distribution] = KnowsGuesses(0.5, 0.5)
    guess: dist.Distribution | Callable[[Any], dist.Distribution] = Symmetric(10.0)


@dataclass(frozen=True, kw_only=True)
class Settings(CrowdSettings):
    """Settings of `mace`; see the fields."""

    prevalence: str = setting(  # type: ignore[misc]
        "learned", "shares of the labels among items: learned, or uniform, as published",
        choices=("learned", "uniform"), earlier="uniform",
    )  # fmt: skip
    candidates: str = setting(  # type: ignore[misc]
        "closed", "which labels an item can have: all of them (closed), or those that somebody gave it (observed)",
        choices=("closed", "observed"),
    )  # fmt: skip
    restarts: int = setting(  # type: ignore[misc]
        0, "random starts of cavi and em beside the flat one; the one with the highest objective goes on", at_least=0.0
    )
    smoothing: float = setting(  # type: ignore[misc]
        0.01,
        "of em: pseudo-count that the labels share, as in the published program; 0 for maximum likelihood",
        at_least=0.0,
    )
    guess_count: float | None = setting(
        None, "pseudo-count of each label among the guesses of an annotator: 10", above=0.0, sets=("guess", Symmetric)
    )


def _log_weights(logs: Tree) -> tuple[Float[Array, "annotator 1"], Float[Array, "annotator label"]]:
    """Return the logarithms of k and g; an estimate of zero stays finite."""
    least = jnp.log(jnp.finfo(logs["guess"].dtype).tiny)
    competence, guess = (jnp.maximum(logs[site], least) for site in ("competence", "guess"))
    return competence[:, :1], competence[:, 1:] + guess


def evidence(logs: Tree, num_labels: int) -> Lifted:
    r"""Return g, and by how much a label is more probable where it is true: 1 + k / g."""
    knows, guesses = _log_weights(logs)
    return Lifted(guesses, jax.nn.softplus(knows - guesses))


def counts(
    right: Float[Array, "annotator label"], logs: Tree, given: Float[Array, "annotator label"], key: Key | None
) -> Tree:
    """Return how many annotations were known and how many guessed: expected, or drawn with a key."""
    knows, guesses = _log_weights(logs)
    share = jax.nn.sigmoid(knows - guesses)
    known = share * right if key is None else jax.random.binomial(key, right, share)
    known = jnp.minimum(known, given)
    guessed = given - known
    return {"competence": jnp.stack([known.sum(axis=1), guessed.sum(axis=1)], axis=1), "guess": guessed}


def _earlier(values: dict[str, Any]) -> dict[str, Any]:
    """Return the concentrations of the competences in one array, which were two."""
    if "knows" not in values:
        return values
    return {**values, "competence": np.stack([values["knows"], values["guesses"]], axis=-1)}


CHANNEL = Channel(evidence, counts, flat_start=True, whole_weights=True, earlier=_earlier)


def _competence(asked: Asked) -> dict[str, np.ndarray]:
    """Return the probability of knowing, for the table of annotators."""
    found = asked.posterior.summary("competence", level=asked.level)
    return {"competence": found.mean, "competence_lower": found.lower, "competence_upper": found.upper}


def guesses(
    posterior: Posterior, resolved: Resolved, truth: LabelTruth, annotators: Int[np.ndarray, " chosen"] | None = None,
    level: float = LEVEL,
) -> dict[str, np.ndarray]:  # fmt: skip
    """Return what each annotator says when it guesses, one row for each label.

    Parameters
    ----------
    annotators : codes of those to tabulate; all by default.
    level : probability of the intervals.
    """
    data = resolved.data
    chosen = np.arange(data.num_annotators) if annotators is None else np.asarray(annotators)
    place, label = np.indices((len(chosen), data.num_labels)).reshape(2, -1)
    found = posterior.summary("guess", where=chosen, level=level)
    values = {"probability": found.mean, "lower": found.lower, "upper": found.upper}
    return {"annotator": chosen[place], "label": label, **{name: column.ravel() for name, column in values.items()}}


MODEL = crowd_member(
    name="mace",
    title="annotators who know the label or guess (MACE), by variational Bayes as published, Gibbs or EM",
    paper="""@inproceedings{hovy2013learning,
  title     = {Learning whom to trust with {MACE}},
  author    = {Hovy, Dirk and Berg-Kirkpatrick, Taylor and Vaswani, Ashish and Hovy, Eduard},
  booktitle = {Proceedings of the 2013 Conference of the North American Chapter of the Association for Computational
               Linguistics: Human Language Technologies},
  pages     = {1120--1130},
  year      = {2013}
}""",
    channel=CHANNEL, settings=Settings, priors=Priors, extra=_competence,
    extra_columns=(
        Column("competence", help="probability of knowing the label"),
        Column("competence_lower", help="end of its central interval"),
        Column("competence_upper", help="its other end"),
    ),
    sites=(
        Site("prevalence", event=("class",), family=dist.Dirichlet),
        Site("competence", plates=("annotator",), family=dist.Beta, prior_plates=("annotator",)),
        Site("guess", plates=("annotator",), event=("label",), family=dist.Dirichlet, prior_plates=("annotator",)),
    ),
    tables=(
        Table(
            name="guesses", help="What each annotator says when she guesses.", make=guesses,
            columns=(
                Column("annotator", "annotator"), Column("label", "class"),
                Column("probability", help="of the label, of a guess"), *INTERVAL,
            ),
        ),
    ),
)  # fmt: skip
model, simulate = MODEL.model, MODEL.simulate
