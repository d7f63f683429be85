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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from scipy import stats

from consilience.arrays import Array, Bool, Float, Key
from consilience.data.ratings import Ratings
from consilience.errors import InvalidPrior, NotConjugate
from consilience.models.dirichlet import MODEL as DIRICHLET
from consilience.models.interface import REQUIRED, Model, Option, checked_prior
from consilience.models.random import log_gamma
from consilience.models.truth import Block, Entries, LabelDraws, PointTruth, TopProbabilities, Truth, block_rows, pad

__all__ = [
    "CLASSES",
    "MODEL",
    "Moments",
    "Posterior",
    "Priors",
    "exact",
    "model",
    "moments",
    "simulate",
    "testing_priors",
    "truth",
]

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
    count = _sum(jnp.ones_like(data.rating), data)
    rated = count > 0
    mean = _sum(data.rating, data) / jnp.maximum(count, 1)
    squares = _sum((data.rating - mean[data.item]) ** 2, data)
    several = count > 1
    variance = jnp.where(several, squares / jnp.maximum(count - 1, 1), 0.0)
    location = _average(mean, rated)
    total = jnp.mean((data.rating - location) ** 2)
    within = jnp.where(jnp.any(several), _average(variance, several), total / 2)
    # Where all ratings of every item agree the variance is only known to be small.
    within = jnp.maximum(within, 1e-6 * jnp.where(total > 0, total, 1.0))
    fourth = _average(variance**2 * (count - 1) / (count + 1), several)
    ratio = jnp.where(jnp.any(several), fourth / within**2, 2.0)
    shape = 2 + 1 / jnp.maximum(ratio - 1, 1 / _MOST_CONFIDENT)
    between = _average((mean - location) ** 2, rated) - within * _average(1 / jnp.maximum(count, 1), rated)
    return Moments(location, within / jnp.maximum(between, within / _MOST_CONFIDENT), shape, (shape - 1) * within)


def _sum(values: Float[Array, " rating"], data: Ratings) -> Float[Array, " item"]:
    return jax.ops.segment_sum(values, data.item, data.num_items)


def _average(values: Float[Array, " item"], where: Bool[Array, " item"]) -> Float[Array, ""]:
    return jnp.sum(jnp.where(where, values, 0.0)) / jnp.maximum(jnp.sum(where), 1)


def moment_variance(data: Ratings) -> dist.InverseGamma:
    """Return the default prior of an item's variance."""
    prior = moments(data)
    return dist.InverseGamma(prior.shape, prior.scale)


def moment_mean(data: Ratings, variance: Array) -> dist.Normal:
    """Return the default prior of an item's mean given its variance."""
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


def model(data: Ratings, priors: Priors | None = None, *, threshold: float = 0.0) -> None:
    """State the joint density of means, variances and ratings as a NumPyro model; the threshold has no part in it."""
    priors = priors or Priors()
    with numpyro.plate("item", data.num_items):
        variance = numpyro.sample("variance", checked_prior("variance", priors.variance, data, ()))
        mean = numpyro.sample("mean", checked_prior("mean", priors.mean, data, (), variance))
    with numpyro.plate("rating", data.num_ratings):
        likelihood = dist.Normal(mean[data.item], jnp.sqrt(variance[data.item]))
        numpyro.sample("observed", likelihood, obs=data.rating)


class Posterior(NamedTuple):
    """Normal-inverse-gamma posteriors, float64, each ``(item,)``: m, κ, α, β; and the mean rating, NaN without any."""

    location: Float[np.ndarray, " item"]
    strength: Float[np.ndarray, " item"]
    shape: Float[np.ndarray, " item"]
    scale: Float[np.ndarray, " item"]
    mean_rating: Float[np.ndarray, " item"]


def exact(data: Ratings, priors: Priors, *, threshold: float) -> Posterior:
    """Return the exact posterior by the conjugate update of κ, m, α and β.

    Raises
    ------
    NotConjugate : the prior of ``variance`` is not an inverse gamma, or that of ``mean`` is not normal with a
        variance in proportion to ``variance``.
    """
    with jax.enable_x64():
        prior = _conjugate_prior(data, priors)
    rating, item, size = np.asarray(data.rating, float), np.asarray(data.item), data.num_items
    count = np.bincount(item, minlength=size)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(item, rating, size) / count
    squares = np.bincount(item, (rating - mean[item]) ** 2, size)
    location, strength_0, shape_0, scale_0 = (np.asarray(value, float) for value in prior)
    strength = strength_0 + count
    shift = np.where(count > 0, mean - location, 0.0)
    return Posterior(
        location=location + count / strength * shift,
        strength=strength,
        shape=shape_0 + count / 2,
        scale=scale_0 + squares / 2 + strength_0 * count * shift**2 / (2 * strength),
        mean_rating=mean,
    )


def _conjugate_prior(data: Ratings, priors: Priors) -> Moments:
    """Read m₀, κ₀, α₀, β₀ off the priors; the prior of the mean is a function, so it is tried at three variances."""
    variance = checked_prior("variance", priors.variance, data, ())
    if not isinstance(variance, dist.InverseGamma):
        raise NotConjugate("site 'variance': the exact posterior needs an inverse gamma prior")
    tried = np.array([0.25, 1.0, 9.0])
    means = [checked_prior("mean", priors.mean, data, (), jnp.asarray(value)) for value in tried]
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


class SideOfThreshold(Truth):
    """On which side of the threshold the mean of each item lies, under a normal-inverse-gamma posterior.

    Parameters
    ----------
    posterior : the exact posterior.
    threshold : in the units of the ratings.
    key, num_draws : the draws are a function of these.
    """

    def __init__(self, posterior: Posterior, threshold: float, *, key: Key, num_draws: int) -> None:
        self.posterior, self.threshold, self.key, self.num_draws = posterior, threshold, key, num_draws
        self.num_items, self.num_classes, self.classes = (
            len(posterior.location),
            len(CLASSES),
            np.array(CLASSES, object),
        )
        self.entries = Entries.dense(self.num_items, len(CLASSES))
        mean = np.nan_to_num(posterior.mean_rating, nan=threshold)
        side = np.stack([mean < threshold, mean >= threshold], axis=1).astype(float)
        self.point = PointTruth(self.entries, side.ravel())

    def _normals(self) -> Iterator[tuple[slice, Array, Array]]:
        """Yield draws of μ and σ², ``(item, draw)``."""
        parameters = np.stack(self.posterior[:4], axis=1)
        rows = block_rows(self.num_items, self.num_draws)
        for start in range(0, self.num_items, rows):
            items = slice(start, min(start + rows, self.num_items))
            key = jax.random.fold_in(self.key, start)
            yield items, *_draw_normals(key, pad(parameters[items], rows, 1.0), self.num_draws)

    def _sides(self) -> Iterator[Block]:
        """Yield 0 for below and 1 for above, ``(item, draw)``."""
        for items, mean, _ in self._normals():
            yield Block(items, (mean >= self.threshold).astype(jnp.int32))

    def ranked(self, depth: int) -> Iterator[Block]:
        """Yield the side of each draw, then the other one."""
        for items, side in self._sides():
            beyond = [jnp.full_like(side, -1)] * max(0, depth - len(CLASSES))
            yield Block(items, jnp.stack([side, 1 - side, *beyond][:depth], axis=-1))

    def grouped(self, group: np.ndarray, num_groups: int) -> Iterator[Block]:
        """Yield indicators of the group of each draw's side."""
        for items, side in self._sides():
            yield Block(items, jax.nn.one_hot(jnp.asarray(group)[side], num_groups))

    def agreement(self) -> Iterator[Block]:
        """Yield the probability that two ratings lie on the same side; see `Truth.agreement`."""
        for items, mean, variance in self._normals():
            yield Block(items, _same_side(mean, variance, self.threshold))

    def top_probabilities(self) -> TopProbabilities:
        """Return P(μ < t) and P(μ >= t) of each item, by the Student t distribution function."""
        below = _student(self.posterior).cdf(self.threshold)
        return TopProbabilities(np.stack([below, 1 - below], axis=1).ravel(), np.zeros(self.num_items))

    def leading(self) -> dict[str, np.ndarray]:
        """Tabulate the more probable side of each item, exactly."""
        both = self.top_probabilities().entry.reshape(-1, 2)
        certainty = both.max(axis=1)
        return {
            "item": np.arange(self.num_items), "label": both.argmax(axis=1), "probability": certainty, "certainty":
            certainty,
        }  # fmt: skip


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
        self.classes = np.array(CLASSES, object)

    def agreement(self) -> Iterator[Block]:
        """Yield the probability that two ratings lie on the same side; see `Truth.agreement`."""
        rows = block_rows(self.num_items, self.num_draws)
        for start in range(0, self.num_items, rows):
            items = slice(start, min(start + rows, self.num_items))
            mean, variance = (pad(draws[:, items].T, rows, 1.0) for draws in (self.mean, self.variance))
            yield Block(items, _same_side(mean, variance, self.threshold))


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


def _student(posterior: Posterior) -> Any:
    """Marginal posterior of μ."""
    scale = np.sqrt(posterior.scale / (posterior.shape * posterior.strength))
    return stats.t(2 * posterior.shape, posterior.location, scale)


def truth(posterior: Any, data: Ratings, *, key: Key, num_draws: int, threshold: float) -> Truth:
    """Return the side of the threshold, from the exact posterior or from stored draws of the site ``mean``."""
    if isinstance(posterior, Posterior):
        return SideOfThreshold(posterior, threshold, key=key, num_draws=num_draws)
    draws = SampledSides(posterior["mean"], posterior["variance"], threshold)
    conjugate = exact(data, Priors(), threshold=threshold)
    draws.point = SideOfThreshold(conjugate, threshold, key=key, num_draws=1).point
    return draws


def draw(posterior: Posterior, data: Any, *, key: Key, num_draws: int, **options: Any) -> dict[str, Array]:
    """Return draws of ``mean`` and ``variance``, ``(draw, item)``."""
    key_variance, key_mean = jax.random.split(key)
    shape = (num_draws, len(posterior.location))
    variance = jnp.asarray(posterior.scale) / jax.random.gamma(key_variance, jnp.asarray(posterior.shape), shape)
    noise = jax.random.normal(key_mean, shape)
    return {"mean": posterior.location + jnp.sqrt(variance / posterior.strength) * noise, "variance": variance}


def labels(posterior: Any, data: Ratings, truth: Truth) -> dict[str, np.ndarray]:
    """Table of the side on which each item's mean lies, and the probability of that."""
    return truth.leading()


def means(posterior: Any, data: Ratings, truth: Truth) -> dict[str, np.ndarray]:
    """Table of each item's mean with its central 95 % interval, and its expected variance."""
    if isinstance(posterior, Posterior):
        student = _student(posterior)
        lower, upper = student.interval(0.95)
        with np.errstate(divide="ignore"):  # the variance of a very wide posterior has no finite expectation
            mean, variance = posterior.location, posterior.scale / np.maximum(posterior.shape - 1, 0.0)
    else:
        lower, upper = np.quantile(posterior["mean"], [0.025, 0.975], axis=0)
        mean, variance = posterior["mean"].mean(0), posterior["variance"].mean(0)
    return {"item": np.arange(len(mean)), "mean": mean, "lower": lower, "upper": upper, "variance": variance}


def testing_priors() -> Priors:
    """Return priors that need no data: σ² ~ InvGamma(3, 2) and μ | σ² ~ N(0, σ²)."""
    return Priors(variance=dist.InverseGamma(3.0, 2.0), mean=_unit_normal)


def _unit_normal(data: Any, variance: Array) -> dist.Normal:
    return dist.Normal(0.0, jnp.sqrt(variance))


def simulate(
    key: Key, priors: Priors | None = None, *, num_items: int = 100, num_annotators: int = 10, threshold: float = 0.0
) -> tuple[Ratings, dict[str, np.ndarray]]:
    """Draw means and variances from the prior and one rating per item and annotator.

    A prior that is a function of the data has no data here: without ``priors``, those of `testing_priors`.

    Returns
    -------
    data : all annotators rate all items.
    values : ``mean`` and ``variance``, each ``(item,)``.
    """
    priors = priors or testing_priors()
    key_variance, key_mean, key_rating = jax.random.split(key, 3)
    variance = checked_prior("variance", priors.variance, None, ()).expand((num_items,)).sample(key_variance)
    mean = checked_prior("mean", priors.mean, None, (), variance).expand((num_items,)).sample(key_mean)
    noise = jax.random.normal(key_rating, (num_items, num_annotators))
    rating = mean[:, None] + jnp.sqrt(variance)[:, None] * noise
    item, annotator = np.indices((num_items, num_annotators)).reshape(2, -1)
    data = Ratings.from_codes(item, annotator, np.asarray(rating, float).ravel())
    return data, {"mean": np.asarray(mean), "variance": np.asarray(variance)}


MODEL = Model(
    name="normal-inverse-gamma",
    title="ratings on a scale, on which side of a threshold the mean lies, with an exact posterior",
    citation=DIRICHLET.citation,
    data=Ratings,
    methods=("exact", "nuts", "svi"),
    model=model,
    priors=Priors,
    options=(
        Option(
            name="threshold", kind=float, default=REQUIRED,
            help="where 'below' ends and 'above' begins, in the units of the ratings",
        ),
    ),
    posterior=Posterior,
    exact=exact,
    draw=draw,
    truth=truth,
    tables={"labels": labels, "means": means},
    dims={"mean": ("item",), "variance": ("item",)},
    simulate=simulate,
    testing_priors=testing_priors,
    independent_items=True,
)  # fmt: skip
