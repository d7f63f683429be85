r"""Normal-inverse-gamma plausibilities from ratings (Stutz et al. 2023: toxicity of comments, aesthetics of images).

Annotators rate an item on a scale, and what counts is on which side of a threshold t its mean lies:

.. math::

    \sigma_i^2 \sim \mathrm{InvGamma}(\alpha_0, \beta_0), \quad
    \mu_i \mid \sigma_i^2 \sim \mathrm{N}(m_0, \sigma_i^2/\kappa_0), \quad
    y_{ir} \sim \mathrm{N}(\mu_i, \sigma_i^2).

| symbol | name | shape |
|---|---|---|
| μ | ``mean`` | (item,) |
| σ² | ``variance`` | (item,) |
| y | ``rating`` | (rating,) |
| t | ``threshold`` | scalar |

The classes are ``below`` (μ < t) and ``above``. The paper's sentence on "the maximum of the two possible outcomes
N(y ≤ t), N(y > t)" could be read as the posterior predictive of one more rating, but its findings (nearly certain
images with 222 ratings each) only fit its equations (2) and (4), which are implemented: the certainty that the *mean*
lies on one side, max(F, 1 − F) with F a Student t distribution function.

The paper prints no hyperparameters, and its footnote writes σ² ~ Γ(α, β) where conjugacy needs the inverse gamma.
Maximum likelihood of the hyperparameters is unbounded as soon as some items have identical ratings (β₀ → 0), so the
default prior matches moments.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from consilience.arrays import Array, Bool, Float, Key
from consilience.data.ratings import Ratings
from consilience.errors import InvalidPrior, NotConjugate
from consilience.models import settings
from consilience.models.dirichlet import MODEL as DIRICHLET
from consilience.models.interface import Column, Exact, Generic, Measure, Model, Simulation, Table
from consilience.models.keys import folded_key
from consilience.models.label_tables import INTERVAL, leading_labels
from consilience.models.posterior import Closed, Factor, Interval, Posterior
from consilience.models.random import log_gamma
from consilience.models.rating_gaps import gap_note
from consilience.models.rows import numpy_of
from consilience.models.settings import REQUIRED, setting
from consilience.models.sites import Resolved, Site, Sites, learned
from consilience.models.truth import Entries, LabelDraws, PointTruth, Ranked
from consilience.models.truth.classes import ClassTruth, Lead, marginals
from consilience.models.truth.entries import block_rows, pad
from consilience.models.truth.truth import Block, Marginals, Question, Shares

__all__ = ["MODEL", "Priors", "Settings", "model", "simulate"]

CLASSES = ("below", "above")

# Limits of what moments can say: a prior worth a thousand ratings is as good as a point.
_MOST_CONFIDENT = 1000.0


class Moments(NamedTuple):
    """Hyperparameters by the method of moments: m₀, κ₀, α₀, β₀ of the module's formulas, scalars."""

    location: Float[Array, ""]
    strength: Float[Array, ""]
    shape: Float[Array, ""]
    scale: Float[Array, ""]


def moments(data: Ratings) -> Moments:
    """Match the prior to the spread of ratings within and between items.

    With n ratings of variance s² in an item, E s² = E σ² and E s⁴ (n − 1)/(n + 1) = E σ⁴, whose ratio gives α₀; the
    variance of the item means is E σ² (1/κ₀ + mean of 1/n). Where no item has two ratings, half of the total
    variance counts as within items.
    """
    xp = numpy_of(data.rating)
    count = _sum(xp.ones_like(data.rating), data)
    rated = count > 0
    mean = _sum(data.rating, data) / xp.maximum(count, 1)
    squares = _sum((data.rating - mean[data.item]) ** 2, data)
    several = count > 1
    variance = xp.where(several, squares / xp.maximum(count - 1, 1), 0.0)
    location = _average(mean, rated)
    total = xp.mean((data.rating - location) ** 2)
    within = xp.where(several.any(), _average(variance, several), total / 2)
    # Where all ratings of every item agree the variance is only known to be small.
    within = xp.maximum(within, 1e-6 * xp.where(total > 0, total, 1.0))
    fourth = _average(variance**2 * (count - 1) / (count + 1), several)
    ratio = xp.where(several.any(), fourth / within**2, 2.0)
    shape = 2 + 1 / xp.maximum(ratio - 1, 1 / _MOST_CONFIDENT)
    between = _average((mean - location) ** 2, rated) - within * _average(1 / xp.maximum(count, 1), rated)
    return Moments(location, within / xp.maximum(between, within / _MOST_CONFIDENT), shape, (shape - 1) * within)


def _sum(values: Float[Array, " rating"], data: Ratings) -> Float[Array, " item"]:
    if numpy_of(values) is np:
        return np.bincount(data.item, values, data.num_items)
    return jax.ops.segment_sum(values, data.item, data.num_items)


def _average(values: Float[Array, " item"], where: Bool[Array, " item"]) -> Float[Array, ""]:
    xp = numpy_of(values)
    return xp.where(where, values, 0.0).sum() / xp.maximum(where.sum(), 1)


@learned
def moment_variance(data: Ratings) -> dist.InverseGamma:
    """Return an inverse gamma distribution about the variance within items, as all ratings show it."""
    prior = moments(data)
    return dist.InverseGamma(prior.shape, prior.scale)


@learned
def moment_mean(data: Ratings, variance: Array) -> dist.Normal:
    """Return a normal distribution about the mean of all ratings, as wide as these show it, given the variance."""
    prior = moments(data)
    return dist.Normal(prior.location, jnp.sqrt(variance / prior.strength))


@dataclass(frozen=True, kw_only=True)
class Priors:
    """What the model believes before any rating.

    Parameters
    ----------
    variance : distribution of σ² of one item, event shape ``()``, or a function of the data; inverse gamma for the
        exact posterior.
    mean : function of the data and σ² that returns the distribution of μ, event shape ``()``; normal with a variance
        in proportion to σ² for the exact posterior. A distribution makes μ independent of σ².
    """

    variance: dist.Distribution | Callable[[Any], dist.Distribution] = moment_variance
    mean: dist.Distribution | Callable[[Any, Array], dist.Distribution] = moment_mean


@dataclass(frozen=True, kw_only=True)
class Settings(settings.Settings):
    """Settings of `normal-inverse-gamma`; see the fields."""

    threshold: float = setting(REQUIRED, "where 'below' ends and 'above' begins, in the units of the ratings")


def density(resolved: Resolved) -> None:
    """State the joint density of means, variances and ratings; the threshold has no part in it."""
    data = resolved.data
    with numpyro.plate("item", data.num_items):
        variance = numpyro.sample("variance", resolved.prior("variance"))
        mean = numpyro.sample("mean", resolved.prior("mean", variance))
    with numpyro.plate("rating", data.num_ratings):
        likelihood = dist.Normal(mean[data.item], jnp.sqrt(variance[data.item]))
        numpyro.sample("observed", likelihood, obs=data.rating)


@dataclass(frozen=True)
class NormalInverseGamma(Factor):
    """Means and variances of all items together: m, κ, α, β of each, float64."""

    location: Float[np.ndarray, " item"]
    strength: Float[np.ndarray, " item"]
    shape: Float[np.ndarray, " item"]
    scale: Float[np.ndarray, " item"]

    def sample(self, key: Key, shape: tuple[int, ...]) -> dict[str, Float[Array, "*shape item"]]:
        """Return draws of ``mean`` and ``variance``."""
        key_variance, key_mean = jax.random.split(key)
        shape = (*shape, len(self.location))
        variance = jnp.asarray(self.scale) / jax.random.gamma(key_variance, jnp.asarray(self.shape), shape)
        noise = jax.random.normal(key_mean, shape)
        return {"mean": self.location + jnp.sqrt(variance / self.strength) * noise, "variance": variance}

    def summary(self, level: float) -> dict[str, Interval]:
        """Return those of ``mean``, a Student t variable, and ``variance``; moments of very wide ones are infinite."""
        from scipy import stats  # as long to import as JAX

        marginals = {"mean": _student(self), "variance": stats.invgamma(self.shape, scale=self.scale)}
        return {site: Interval(known.mean(), known.std(), *known.interval(level)) for site, known in marginals.items()}


def exact(resolved: Resolved) -> Closed:
    """Return the exact posterior by the conjugate update of κ, m, α and β, and the mean rating, NaN without any.

    Raises
    ------
    NotConjugate : the prior of ``variance`` is not an inverse gamma, or that of ``mean`` is not normal with a
        variance in proportion to ``variance``.
    """
    data = resolved.data
    location, strength_0, shape_0, scale_0 = (np.asarray(value) for value in _conjugate_prior(resolved))
    rating, item, size = np.asarray(data.rating, float), np.asarray(data.item), data.num_items
    count = np.bincount(item, minlength=size)
    mean = _mean_rating(data)
    squares = np.bincount(item, (rating - mean[item]) ** 2, size)
    strength = strength_0 + count
    shift = np.where(count > 0, mean - location, 0.0)
    found = NormalInverseGamma(
        location=location + count / strength * shift,
        strength=strength,
        shape=shape_0 + count / 2,
        scale=scale_0 + squares / 2 + strength_0 * count * shift**2 / (2 * strength),
    )
    return Closed({"mean,variance": found}, {"mean_rating": mean})


def _mean_rating(data: Ratings) -> Float[np.ndarray, " item"]:
    item, size = np.asarray(data.item), data.num_items
    with np.errstate(invalid="ignore"):
        return np.bincount(item, np.asarray(data.rating, float), size) / np.bincount(item, minlength=size)


def _conjugate_prior(resolved: Resolved) -> Moments:
    """Read m₀, κ₀, α₀, β₀ off the priors; the prior of the mean is a function, so it is tried at three variances."""
    variance = resolved.prior("variance")
    if not isinstance(variance, dist.InverseGamma):
        raise NotConjugate("site 'variance': the exact posterior needs an inverse gamma prior")
    tried = np.array([0.25, 1.0, 9.0])
    means = [resolved.prior("mean", np.asarray(value)) for value in tried]
    normal = all(isinstance(mean, dist.Normal) and not mean.batch_shape for mean in means)
    scales = np.array([mean.scale for mean in means], float) if normal else tried
    if not normal or not np.allclose(scales**2 / tried, scales[1] ** 2) or len({float(mean.loc) for mean in means}) > 1:
        raise NotConjugate(
            "site 'mean': the exact posterior needs a normal prior with a variance in proportion to 'variance'"
        )
    if variance.batch_shape:
        raise InvalidPrior("the prior of site 'variance' has a batch shape; give one distribution for all items")
    return Moments(
        *(np.asarray(value, float) for value in (means[1].loc, scales[1] ** -2, variance.concentration, variance.rate))
    )


class SideOfThreshold(ClassTruth):
    """On which side of the threshold the mean of each item lies, under a normal-inverse-gamma posterior.

    Parameters
    ----------
    posterior : the exact posterior.
    mean_rating : of each item, NaN without any; the point estimate.
    threshold : in the units of the ratings.
    key, num_draws : the draws are a function of these.
    """

    def __init__(
        self, posterior: NormalInverseGamma, mean_rating: Float[np.ndarray, " item"], threshold: float, *, key: Key,
        num_draws: int,
    ) -> None:  # fmt: skip
        self.posterior, self.threshold, self.key, self.num_draws = posterior, threshold, key, num_draws
        self.num_units, self.num_classes = len(posterior.location), len(CLASSES)
        self.ids = {"class": np.array(CLASSES, object)}
        self.entries = Entries.dense(self.num_units, len(CLASSES))
        self.point = _side_of_rating(mean_rating, threshold)

    def _normals(self) -> Iterator[tuple[slice, Array, Array]]:
        """Yield draws of μ and σ², ``(item, draw)``."""
        own = self.posterior
        parameters = np.stack([own.location, own.strength, own.shape, own.scale], axis=1)
        rows = block_rows(self.num_units, self.num_draws)
        for start in range(0, self.num_units, rows):
            items = slice(start, min(start + rows, self.num_units))
            key = folded_key(self.key, start)
            yield items, *_draw_normals(key, pad(parameters[items], rows, 1.0), self.num_draws)

    def _sides(self) -> Iterator[Block]:
        """Yield 0 for below and 1 for above, ``(item, draw)``."""
        for items, mean, _ in self._normals():
            yield self._block(items, (mean >= self.threshold).astype(jnp.int32))

    def _ranked(self, depth: int) -> Iterator[Block]:
        """Yield the side of each draw, then the other one."""
        for items, _, side in self._sides():
            beyond = [jnp.full_like(side, -1)] * max(0, depth - len(CLASSES))
            yield self._block(items, jnp.stack([side, 1 - side, *beyond][:depth], axis=-1))

    def _masses(self, group: np.ndarray, num_groups: int) -> Iterator[Block]:
        """Yield indicators of the group of each draw's side."""
        for items, _, side in self._sides():
            yield self._block(items, jax.nn.one_hot(jnp.asarray(group)[side], num_groups))

    def _agreement(self) -> Iterator[Block]:
        """Yield the probability that two ratings lie on the same side."""
        for items, mean, variance in self._normals():
            yield self._block(items, _same_side(mean, variance, self.threshold))

    def answers(self, question: Question) -> bool:
        """Return whether `blocks` would answer: there are no plausibilities to show."""
        return question != Shares() and super().answers(question)

    def exact(self, question: Question) -> Marginals | None:
        """Return P(μ < t) and P(μ >= t) of each item, by the Student t distribution function."""
        if question != Ranked(1):
            return None
        below = _student(self.posterior).cdf(self.threshold)
        probability = np.stack([below, 1 - below], axis=1).ravel()
        return Marginals(self.entries.first, self.entries.class_, probability, np.zeros(self.num_units))

    def _lead(self) -> Lead:
        both = marginals(self).probability.reshape(-1, 2)
        certainty = both.max(axis=1)
        return Lead(both.argmax(axis=1), certainty, certainty)

    def drawn_shares(self, positions: Sequence[int]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return draws that are 0 or 1, of the side of each."""
        side = np.concatenate([block.real[:, :, 0] for block in self._ranked(1)])[np.asarray(positions)]
        codes = np.arange(len(CLASSES))
        return [(codes, (row[:, None] == codes).astype(float)) for row in side]


class SampledSides(LabelDraws):
    """The same from stored draws.

    Parameters
    ----------
    mean, variance : shape ``(draw, item)``.
    threshold : in the units of the ratings.
    """

    def __init__(self, mean: Array, variance: Array, threshold: float) -> None:
        super().__init__(mean >= threshold, len(CLASSES))
        self.mean, self.variance, self.threshold = np.asarray(mean), np.asarray(variance), threshold
        self.ids = {"class": np.array(CLASSES, object)}

    def _agreement(self) -> Iterator[Block]:
        """Yield the probability that two ratings lie on the same side."""
        rows = block_rows(self.num_units, self.num_draws)
        for start in range(0, self.num_units, rows):
            items = slice(start, min(start + rows, self.num_units))
            mean, variance = (pad(draws[:, items].T, rows, 1.0) for draws in (self.mean, self.variance))
            yield self._block(items, _same_side(mean, variance, self.threshold))


def _side_of_rating(mean_rating: Float[np.ndarray, " item"], threshold: float) -> PointTruth:
    """Return the side on which the mean rating lies; above where there is none."""
    mean = np.nan_to_num(mean_rating, nan=threshold)
    side = np.stack([mean < threshold, mean >= threshold], axis=1).astype(float)
    return PointTruth(Entries.dense(len(mean), len(CLASSES)), side.ravel())


@functools.partial(jax.jit, static_argnames="num_draws")
def _draw_normals(
    key: Key, parameters: Float[Array, "item 4"], num_draws: int
) -> tuple[Float[Array, "item draw"], Float[Array, "item draw"]]:
    """Draw μ and σ², for rows of m, κ, α, β."""
    location, strength, shape, scale = (column[:, None] for column in parameters.T)
    key_variance, key_mean = jax.random.split(key)
    size = (parameters.shape[0], num_draws)
    variance = scale * jnp.exp(-log_gamma(key_variance, jnp.broadcast_to(shape, size)))
    mean = location + jnp.sqrt(variance / strength) * jax.random.normal(key_mean, size, parameters.dtype)
    return mean, variance


@jax.jit
def _same_side(
    mean: Float[Array, "item draw"], variance: Float[Array, "item draw"], threshold: float | Array
) -> Float[Array, "item draw"]:
    """Return the probability that two ratings with this mean and variance lie on the same side of the threshold."""
    below = jax.scipy.special.ndtr((threshold - mean) / jnp.sqrt(variance))
    return below**2 + (1 - below) ** 2


def _student(posterior: NormalInverseGamma) -> Any:
    """Marginal posterior of μ."""
    from scipy import stats

    scale = np.sqrt(posterior.scale / (posterior.shape * posterior.strength))
    return stats.t(2 * posterior.shape, posterior.location, scale)


def truth(posterior: Posterior, resolved: Resolved, *, key: Key, num_draws: int) -> ClassTruth:
    """Return the side of the threshold, from the exact posterior or from stored draws of the sites."""
    threshold = resolved.settings.threshold
    if posterior.form == "closed":
        return SideOfThreshold(posterior.mean, posterior.mean_rating, threshold, key=key, num_draws=num_draws)
    draws = SampledSides(posterior.mean, posterior.variance, threshold)
    draws.point = _side_of_rating(_mean_rating(resolved.data), threshold)
    return draws


def means(posterior: Posterior, resolved: Resolved, truth: ClassTruth) -> dict[str, np.ndarray]:
    """Return each item's mean with its central 95 % interval, and its expected variance."""
    mean = posterior.summary("mean")
    return {"item": np.arange(len(mean.mean))} | mean.columns() | {"variance": posterior.summary("variance").mean}


TABLES = (
    Table(
        name="labels", help="The side of the threshold on which each item's mean lies, and how sure that is.",
        columns=(
            Column("item", "item"), Column("label", "class"), Column("probability", help="of that side"),
            Column("certainty", help="the same"),
        ),
        make=leading_labels,
    ),
    Table(
        name="means", help="The mean of each item, and its variance.",
        columns=(
            Column("item", "item"), Column("mean", help="in the units of the ratings"), *INTERVAL,
            Column("variance", help="expected variance of the item's ratings"),
        ),
        make=means,
    ),
    Measure(
        name="sides", help="The mean and the side of each item, as its page has them.",
        place="consilience.pages.sides:sides",
        columns=(
            Column("item"), Column("side", help="above or below"), Column("certainty", help="of the side"),
            Column("mean"), *INTERVAL,
        ),
    ),
)  # fmt: skip


def testing_priors() -> Priors:
    """Return priors that need no data: σ² ~ InvGamma(3, 2) and μ | σ² ~ N(0, σ²)."""
    return Priors(variance=dist.InverseGamma(3.0, 2.0), mean=_unit_normal)


def _unit_normal(data: Any, variance: Array) -> dist.Normal:
    return dist.Normal(0.0, jnp.sqrt(variance))


def draw_data(key: Key, resolved: Resolved, sizes: Mapping[str, Any]) -> tuple[Ratings, dict[str, np.ndarray]]:
    """Draw means and variances from the prior and one rating per item and annotator.

    Returns
    -------
    data : all annotators rate all items.
    values : ``mean`` and ``variance``, each ``(item,)``.
    """
    variance, mean, rating = _drawn(key, resolved)
    item, annotator = np.indices(rating.shape).reshape(2, -1)
    data = Ratings.from_codes(item, annotator, np.asarray(rating, float).ravel(), **sizes)
    return data, {"mean": np.asarray(mean), "variance": np.asarray(variance)}


@jax.jit
def _drawn(
    key: Key, resolved: Resolved
) -> tuple[Float[Array, " item"], Float[Array, " item"], Float[Array, "item annotator"]]:
    num_items, _ = shape = resolved.data.num_items, resolved.data.num_annotators
    key_variance, key_mean, key_rating = jax.random.split(key, 3)
    variance = resolved.prior("variance").expand((num_items,)).sample(key_variance)
    mean = resolved.prior("mean", variance).expand((num_items,)).sample(key_mean)
    return variance, mean, mean[:, None] + jnp.sqrt(variance)[:, None] * jax.random.normal(key_rating, shape)


MODEL = Model(
    name="normal-inverse-gamma",
    title="ratings on a scale, on which side of a threshold the mean lies, with an exact posterior",
    paper=DIRICHLET.paper,
    takes=(Ratings,),
    settings=Settings,
    priors=Priors,
    sites=Sites(
        Site("variance", plates=("item",), prior_plates=("item",)),
        Site("mean", plates=("item",), given=("variance",)),
        hidden={"mean_rating": ("item",)},
    ),
    density=density,
    engines=(Exact(solve=exact), Generic(name="nuts"), Generic(name="svi")),
    truth=truth,
    tables=TABLES,
    says=lambda account: gap_note(account.resolved.data),
    simulation=Simulation(
        draw=draw_data,
        empty=Ratings.empty,
        sizes={"num_items": 100, "num_annotators": 10},
        priors=testing_priors,
        independent_items=True,
        unread={"threshold": 0.0},
    ),
)
model, simulate = MODEL.model, MODEL.simulate
