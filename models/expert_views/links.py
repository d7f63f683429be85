"""From the weights of a view to the logits of its clusters, and how the sampler moves weights given clusters.

Weights move by Hamiltonian Monte Carlo. Of the linear link the mass is that of a logistic regression at even odds,
:math:`X^T X / 4 + I / s^2`, the same for all views and rungs, and all is done in NumPy. A link of your own is a JAX
function: its mass is diagonal, with the curvature that the prior leads to expect, the step lengths vary more, and one
compiled program moves all views.

References
----------
Neal (2011), MCMC using Hamiltonian dynamics, Handbook of Markov Chain Monte Carlo.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpyro.distributions import biject_to

from consilience.arrays import Array, Bool, Float, Int, Key

_LEAPFROG_STEPS, _LONGEST_STEP, _SHORTEST_STEP = 4, 1.1, 0.5
_OWN_STEPS, _LONGEST_OWN_STEP, _SHORTEST_OWN_STEP = 6, 0.65, 0.03
_PRIOR_DRAWS = 32

Weights = Float[np.ndarray, "rung view cluster column"]
Clusters = Int[np.ndarray, "rung view item"]


class LinearLink:
    """Logits that are linear in the features, with normal weights.

    Parameters
    ----------
    feature : ``(item, column)``, standardised, with a last column of ones.
    scale : standard deviation of the weights.
    clusters : how many.
    """

    def __init__(self, feature: Float[np.ndarray, "item column"], scale: float, clusters: int) -> None:
        self.feature, self.scale, self.shape = np.asarray(feature, float), scale, (clusters, feature.shape[1])
        self.single = self.feature.astype(np.float32)
        precision = self.feature.T @ self.feature / 4 + np.eye(feature.shape[1]) / scale**2
        self.root, self.inverse = np.linalg.cholesky(precision), np.linalg.inv(precision)

    def drawn(self, random: np.random.Generator, *shape: int) -> Weights:
        """Draw weights from the prior."""
        return self.scale * random.standard_normal((*shape, *self.shape))

    def log_prior(self, weight: Float[np.ndarray, "draw cluster column"]) -> Float[np.ndarray, " draw"]:
        """Return the log prior density of weights of one view."""
        size = self.shape[0] * self.shape[1]
        constant = size * (np.log(2 * np.pi) / 2 + np.log(self.scale))
        return -(weight**2).sum(axis=(1, 2)) / (2 * self.scale**2) - constant

    def logits(self, weight: Weights) -> Float[np.ndarray, "rung view cluster item"]:
        """Return the logits of the clusters."""
        return _product(weight, self.feature.T)

    def moved(
        self, random: np.random.Generator, weight: Weights, cluster: Clusters, used: Bool[np.ndarray, "rung view"]
    ) -> Weights:
        """Move the weights of some views given the clusters; those of the others are drawn from the prior."""
        found = self.drawn(random, *used.shape)
        # Clusters come first: sums over them are of whole rows.
        label, at = cluster[used], np.ascontiguousarray(weight[used].swapaxes(0, 1))
        share = np.stack([label == number for number in range(self.shape[0])]).astype(float)
        total, precision = _product(share, self.feature), self.scale**-2
        step = _SHORTEST_STEP * (_LONGEST_STEP / _SHORTEST_STEP) ** random.random((len(label), 1))
        momentum = _product(random.standard_normal(at.shape), self.root.T)

        def looked_at(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            """Return the gradient of the log density, and what its value is made of."""
            # In single precision, twice as fast. A path is reversible whatever its gradients, and energies are right
            # to a thousandth.
            logits = _product(weight.astype(np.float32), self.single.T)
            most = functools.reduce(np.maximum, logits)
            np.exp(np.subtract(logits, most, out=logits), out=logits)
            whole = functools.reduce(np.add, logits)
            logits /= whole
            return total - _product(logits, self.single) - precision * weight, most, whole

        def energy(weight: np.ndarray, momentum: np.ndarray, most: np.ndarray, whole: np.ndarray) -> np.ndarray:
            value = (weight * (total - precision / 2 * weight)).sum(axis=(0, 2))
            value -= (most + np.log(whole)).sum(axis=1, dtype=float)
            return (_product(momentum, self.inverse) * momentum).sum(axis=(0, 2)) / 2 - value

        begun = at
        gradient, *value = looked_at(at)
        gain = energy(at, momentum, *value)
        for _ in range(_LEAPFROG_STEPS):
            momentum = momentum + step / 2 * gradient
            at = at + step * _product(momentum, self.inverse)
            gradient, *value = looked_at(at)
            momentum = momentum + step / 2 * gradient
        gain -= energy(at, momentum, *value)
        taken = np.log(1 - random.random(len(label))) < gain
        found[used] = np.where(taken[:, None], at, begun).swapaxes(0, 1)
        return found

    def weight(self, position: Float[np.ndarray, "view cluster column"]) -> Float[np.ndarray, "view column cluster"]:
        """Return the weights as the model has them."""
        return position.swapaxes(-1, -2)

    def position(self, weight: Any) -> Float[np.ndarray, "view cluster column"]:
        """Return the weights as the sampler has them."""
        return np.asarray(weight, float).swapaxes(-1, -2)


class OwnLink:
    """A link of the user's own; weights are kept at their positions in an unconstrained space, one column each.

    Parameters
    ----------
    feature : as of `LinearLink`.
    prior : of the weights of one view.
    link : function of the weights of a view and the features.
    """

    def __init__(self, feature: Any, prior: dist.Distribution, link: Callable[[Any, Any], Any]) -> None:
        self.feature, self.prior, self.link = jnp.asarray(feature, jnp.result_type(float)), prior, link
        self.transform = biject_to(prior.support)
        self.mass = self._expected_curvature()
        self._logits = jax.jit(jax.vmap(jax.vmap(lambda position: link(self._weight(position), self.feature).T)))
        self._moved = jax.jit(jax.vmap(jax.vmap(self._move)))
        self._drawn = jax.jit(jax.vmap(lambda key: self.transform._inverse(prior.sample(key)).reshape(-1)))

    def drawn(self, random: np.random.Generator, *shape: int) -> Float[np.ndarray, "rung view row"]:
        """Draw positions from the prior."""
        return np.asarray(self._drawn(_keys(random, int(np.prod(shape))))).reshape(*shape, -1)

    def logits(self, weight: np.ndarray) -> Float[np.ndarray, "rung view cluster item"]:
        """Return the logits of the clusters."""
        return np.asarray(self._logits(weight), float)

    def moved(self, random: np.random.Generator, weight: np.ndarray, cluster: Clusters, used: np.ndarray) -> np.ndarray:
        """Move the positions of some views given the clusters; those of the others are drawn from the prior."""
        keys = _keys(random, used.size).reshape(used.shape)
        return np.where(used[..., None], self._moved(keys, weight, cluster), self.drawn(random, *used.shape))

    def weight(self, position: np.ndarray) -> np.ndarray:
        """Return the weights as the model has them."""
        return np.asarray(jax.vmap(self._weight)(position))

    def position(self, weight: Any) -> np.ndarray:
        """Return the positions of weights of all views."""
        return np.asarray(jax.vmap(lambda one: self.transform._inverse(one).reshape(-1))(jnp.asarray(weight)))

    def _weight(self, position: Array) -> Array:
        return self.transform(position.reshape(self.transform.inverse_shape(self.prior.event_shape)))

    def _log_prior(self, position: Array) -> Array:
        weight = self._weight(position)
        flat = position.reshape(self.transform.inverse_shape(self.prior.event_shape))
        return self.prior.log_prob(weight).sum() + jnp.sum(self.transform.log_abs_det_jacobian(flat, weight))

    def _expected_curvature(self) -> Float[Array, " row"]:
        """Return the diagonal of the curvature that the prior leads to expect: its own, and that at even odds.

        Squares of products of random signs with the derivatives of the logits are the sums of the derivatives'
        squares, on average (Hutchinson's estimator).
        """

        def one(key: Key) -> tuple[Array, Array]:
            key_position, key_signs = jax.random.split(key)
            position = self.transform._inverse(self.prior.sample(key_position)).reshape(-1)
            logits, pull_back = jax.vjp(lambda position: self.link(self._weight(position), self.feature), position)
            return position, pull_back(jax.random.rademacher(key_signs, logits.shape, logits.dtype))[0] ** 2

        positions, squares = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(0), _PRIOR_DRAWS))
        return 1 / positions.var(axis=0) + squares.mean(axis=0) / 4

    def _move(self, key: Key, position: Array, cluster: Array) -> Array:
        """Move the position of one view."""

        def log_density(position: Array) -> Array:
            log_share = jax.nn.log_softmax(self.link(self._weight(position), self.feature))
            return jnp.take_along_axis(log_share, cluster[:, None].astype(int), 1).sum() + self._log_prior(position)

        key_momentum, key_uniform = jax.random.split(key)
        momentum = jnp.sqrt(self.mass) * jax.random.normal(key_momentum, position.shape, position.dtype)
        of_step, of_acceptance = jax.random.uniform(key_uniform, (2,), position.dtype)
        step = _SHORTEST_OWN_STEP * (_LONGEST_OWN_STEP / _SHORTEST_OWN_STEP) ** of_step
        at = jax.value_and_grad(log_density)

        def leapfrog(number: Any, carry: tuple) -> tuple:
            position, momentum, _, gradient = carry
            momentum = momentum + step / 2 * gradient
            position = position + step * momentum / self.mass
            value, gradient = at(position)
            return position, momentum + step / 2 * gradient, value, gradient

        begun = (position, momentum, *at(position))
        ended = jax.lax.fori_loop(0, _OWN_STEPS, leapfrog, begun)
        energy = [(one[1] ** 2 / self.mass).sum() / 2 - one[2] for one in (begun, ended)]
        gain = energy[0] - energy[1]
        # A path that leaves what floats can hold is not taken.
        probability = jnp.exp(jnp.minimum(jnp.where(jnp.isnan(gain), -jnp.inf, gain), 0.0))
        return jnp.where(of_acceptance < probability, ended[0], position)


def _product(values: Float[np.ndarray, "*batch row"], matrix: Float[np.ndarray, "row column"]) -> np.ndarray:
    """Multiply by a matrix, in one call: NumPy would make one for each of the leading axes."""
    return (values.reshape(-1, len(matrix)) @ matrix).reshape(*values.shape[:-1], matrix.shape[1])


def _keys(random: np.random.Generator, number: int) -> Key:
    return jax.random.split(jax.random.key(random.integers(1 << 31)), number)

