"""How a fitted crowd errs: its parameters draw by draw, how it agrees with itself, what it would say again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Float, Int, Key
from consilience.data.annotations import Annotations
from consilience.errors import TooLarge
from consilience.models.crowd.channel import Channel
from consilience.models.crowd.evidence import Dense, Evidence, Lifted
from consilience.models.crowd.pairs import AgreementGivenClass, agreement_by, agreement_of_lifts
from consilience.models.crowd.simplices import (
    PREVALENCE,
    Tree,
    draw,
    draw_on_host,
    logs_of_variables,
    padded_tree,
    simplices,
    used_sites,
)
from consilience.models.crowd.votes import MOST_NUMBERS, padded_annotators
from consilience.models.keys import split_key
from consilience.models.posterior import Posterior
from consilience.models.rows import padded_rows, padded_size, repeated_rows
from consilience.models.sites import Resolved
from consilience.models.truth import Crowd
from consilience.models.truth.classes import Rows

# Below, a probability is a zero that has been through a logarithm.
_ZERO = 1e-300


def annotation_counts(data: Annotations) -> Float[np.ndarray, " annotator"]:
    """Return how many annotations each annotator made, weights summed."""
    return np.bincount(np.asarray(data.annotator), np.asarray(data.weight, float), data.num_annotators)


def annotation_shares(data: Annotations) -> Float[np.ndarray, " annotator"]:
    """Return the part of all annotations that each annotator made, weights summed."""
    count = annotation_counts(data)
    return count / max(count.sum(), np.finfo(float).tiny)


Quantity = Callable[..., Any]
"""``quantity(evidence, log_prevalence, *given)``: what is asked of the parameters of a crowd, and of annotators that
pad, so that crowds of like size share its program; a function of a module, for which that is kept."""


class Parameters:
    """The parameters of a fitted crowd: drawn when they are needed where they are in closed form, or stored.

    Parameters
    ----------
    channel : of the model.
    posterior, resolved : of the fit.
    key, num_draws : of draws of a closed form; those of an estimate are all alike.
    """

    has_intervals = True
    """Whether intervals hold about as often as they say; where they do not, none is shown."""
    is_listed = False
    """Whether confusion matrices list what occurs alone: mostly prior, they have neither intervals nor draws."""

    def __init__(
        self, channel: Channel, posterior: Posterior, resolved: Resolved, key: Key, num_draws: int
    ) -> None:
        self.channel, self.posterior, self.resolved, self.key = channel, posterior, resolved, key
        self.sites = used_sites(resolved)
        self.num_labels = resolved.data.num_labels
        self.is_closed = posterior.form == "closed"
        self.num_draws = num_draws

    @property
    def is_dense(self) -> bool:
        """Whether the channel has confusion matrices of its own."""
        # Of shapes alone, for the arrays would compile programs.
        shapes = jax.eval_shape(lambda logs: self.channel.evidence(logs, self.num_labels), self.mean_logs)
        return isinstance(shapes, Dense)

    @property
    def num_annotators(self) -> int:
        """How many annotators quantities are asked of, with those that pad."""
        return padded_annotators(self.resolved.data)

    @property
    def share(self) -> Float[np.ndarray, " annotator"]:
        """The part of all annotations that each annotator made; zero of those that pad."""
        return padded_rows(annotation_shares(self.resolved.data), self.num_annotators)

    @functools.cached_property
    def concentrations(self) -> Tree:
        """Concentrations of a closed form, by site."""
        return {site.name: np.asarray(self.posterior.value(site.name)) for site in self.sites}

    @functools.cached_property
    def stored(self) -> Tree:
        """Draws of the variables, by site, ``(draw, …)``; of an estimate one."""
        draws = self.posterior.draws()
        return {site.name: np.asarray(draws[site.name]) for site in self.sites}

    @property
    def mean_logs(self) -> Tree:
        """Logarithms of the means of a closed form, or of an estimate."""
        if self.is_closed:
            tree = {site: np.asarray(own, float) for site, own in self.concentrations.items()}
        else:
            tree = simplices({site: own[0] for site, own in self.stored.items()}, self.sites)
        least = np.finfo(float).tiny
        return {site: np.log(np.maximum(own / own.sum(axis=-1, keepdims=True), least)) for site, own in tree.items()}

    def padded_stored(self) -> Tree:
        """Return the stored draws with annotators that pad."""
        return padded_tree(self.stored, self.num_annotators, axis=1)

    def over(self, quantity: Quantity, *given: Any) -> Any:
        """Return a quantity of each draw, stacked ``(draw, …)``.

        Parameters
        ----------
        quantity : ``quantity(evidence, log_prevalence, *given)``; the log prevalence is None where it is not learned.
        given : arrays.
        """
        if self.is_closed:
            keys = split_key(self.key, self.num_draws)
            tree = padded_tree(self.concentrations, self.num_annotators)
            return _of_closed(self.channel, quantity, self.num_labels, keys, tree, given)
        return _of_stored(self.channel, quantity, self.num_labels, self.sites, self.padded_stored(), given)

    def mean(self, quantity: Quantity, *given: Any) -> Any:
        """Return the posterior mean of a quantity that is linear in each simplex, float64; of draws their mean."""
        if self.posterior.form == "draws":
            return np.asarray(self.over(quantity, *given)).mean(axis=0, dtype=float)
        logs = padded_tree(self.mean_logs, self.num_annotators)
        if self.is_dense:
            found = np.asarray(of_logs(self.channel, quantity, self.num_labels, logs, given), float)
        else:
            with jax.enable_x64(True):
                found = np.asarray(_of_logs(self.channel, quantity, self.num_labels, logs, given), float)
        # Zeros of an estimate, which have the logarithm of the least number, are zeros again.
        return np.where(np.abs(found) < _ZERO, 0.0, found)

    def agreement(self) -> AgreementGivenClass:
        """Return the function of how probably pairs of annotators agree, by their mean confusion matrices."""
        if not self.is_dense:
            return agreement_of_lifts(*np.asarray(self.mean(lifts_of), float))

        def rows(annotators: Int[np.ndarray, " chosen"]) -> Float[np.ndarray, "chosen class label"]:
            if not len(annotators):
                return np.zeros((0, self.num_labels, self.num_labels))
            number = len(annotators)
            if self.posterior.form == "draws":  # by a program
                annotators = repeated_rows(annotators, padded_size(number, self.num_annotators))
            return np.asarray(self.mean(rows_of, annotators), float)[:number]

        return agreement_by(rows)

    def confusion(self, annotators: Int[np.ndarray, " chosen"]) -> dict[str, np.ndarray] | None:
        """Return the table of confusion matrices where it lists what occurs; None where all labels have a row."""
        return None

    def crowd(self, share: Float[np.ndarray, " annotator"]) -> dict[str, np.ndarray] | None:
        """Return the same of the crowd, whose annotators are taken by these shares."""
        return None

    def one(self, draw: int) -> Evidence:
        """Return the evidence of one draw, on the host."""
        if self.is_closed:
            random = np.random.default_rng([*np.asarray(jax.random.key_data(self.key)).ravel(), draw])
            tree = {site: np.asarray(own, float) for site, own in self.concentrations.items()}
            return self.channel.evidence(draw_on_host(random, tree), self.num_labels)
        own = {site: values[draw % len(values)] for site, values in self.stored.items()}
        return self.channel.evidence(logs_of_variables(own, self.sites), self.num_labels)


ParametersOf = Callable[[Posterior, Resolved, Key, int], Parameters]
"""``parameters_of(posterior, resolved, key, num_draws)``: the parameters of a fitted crowd."""


def of_logs(channel: Channel, quantity: Quantity, num_labels: int, logs: Tree, given: tuple) -> Any:
    """Return a quantity of one tree of logarithms; of a dense channel in NumPy, where there is nothing to compile."""
    return quantity(channel.evidence(logs, num_labels), logs.get(PREVALENCE), *given)


_of_logs = jax.jit(of_logs, static_argnums=(0, 1, 2))


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _of_closed(
    channel: Channel, quantity: Quantity, num_labels: int, keys: Key, concentrations: Tree, given: tuple
) -> Any:
    def of_draw(key: Key) -> Any:
        logs = draw(key, concentrations)
        return quantity(channel.evidence(logs, num_labels), logs.get(PREVALENCE), *given)

    return jax.lax.map(of_draw, keys)


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _of_stored(
    channel: Channel, quantity: Quantity, num_labels: int, sites: Any, stored: Tree, given: tuple
) -> Any:
    def of_draw(values: Tree) -> Any:
        logs = logs_of_variables(values, sites)
        return quantity(channel.evidence(logs, num_labels), logs.get(PREVALENCE), *given)

    return jax.lax.map(of_draw, stored)


def rows_of(evidence: Evidence, log_prevalence: Any, annotators: Any) -> Float[Array, "chosen class label"]:
    """Return the confusion matrices of some annotators."""
    return evidence.rows(annotators)


def lifts_of(evidence: Evidence, log_prevalence: Any) -> Float[Array, "2 annotator label"]:
    """Return what a `Lifted` says in probabilities: see `Lifted.wrong` and `Lifted.surplus`."""
    assert isinstance(evidence, Lifted)
    return jnp.stack([evidence.wrong, evidence.surplus])


def average_of(evidence: Any, log_prevalence: Any, share: Any) -> Float[Array, "class label"]:
    """Return the confusion matrix of an annotator who is taken by these shares."""
    return evidence.average(share.astype(jnp.result_type(float)))


def _agreement(evidence: Evidence, log_prevalence: Any, share: Any) -> Any:
    return evidence.agreement(jnp.asarray(share, jnp.result_type(float)))


def crowd_of(parameters: Parameters, num_draws: int) -> Crowd:
    """Say how the annotators of the data err, in as many draws.

    Raises
    ------
    TooLarge : by its confusion matrix, where labels are too many.
    """
    data = parameters.resolved.data
    share = annotation_shares(data)

    def confusion() -> Float[np.ndarray, "class label"]:
        if parameters.num_labels**2 > MOST_NUMBERS:
            raise TooLarge(f"how a crowd confuses {parameters.num_labels:,} labels does not fit into memory")
        return np.asarray(parameters.mean(average_of, parameters.share))

    if np.count_nonzero(share) < 2 or parameters.is_listed:
        return Crowd(confusion)

    def agreement() -> Float[np.ndarray, "draw class"]:
        found = np.asarray(parameters.over(_agreement, parameters.share), float)
        return np.broadcast_to(found, (num_draws, found.shape[1]))

    def annotate(
        random: np.random.Generator, draw: int, label: Int[np.ndarray, " item"], rows: Rows
    ) -> Int[np.ndarray, " annotation"]:
        annotator, item = np.asarray(data.annotator)[rows], np.asarray(data.item)[rows]
        return parameters.one(draw).annotate(random, annotator, np.asarray(label)[item])

    moments = None
    if parameters.is_closed and parameters.is_dense:
        moments = functools.partial(agreement_moments, parameters.concentrations["confusion"], share)
    return Crowd(confusion, agreement, annotate, moments)


def agreement_moments(
    concentration: Float[np.ndarray, "annotator class label"], share: Float[np.ndarray, " annotator"]
) -> tuple[Float[np.ndarray, " class"], Float[np.ndarray, " class"]]:
    r"""Return the means and variances of `Dense.agreement` over independent Dirichlet rows, in closed form.

    With :math:`\mu_j` and :math:`C_j` the mean and covariance of the Dirichlet row :math:`\Theta_{jt}`, rows being
    independent, :math:`\sum_{i \ne j} s_i s_j \Theta_{it} \cdot \Theta_{jt}` has the variance
    :math:`4 \sum_j s_j^2 b_j^T C_j b_j + 2 \sum_{i \ne j} s_i^2 s_j^2 \mathrm{tr}(C_i C_j)`,
    :math:`b_j = \sum_{i \ne j} s_i \mu_i`.

    Parameters
    ----------
    concentration : of the Dirichlet distributions.
    share : parts of all annotations.
    """
    concentration, share = np.asarray(concentration, float), share[:, None, None]
    total = concentration.sum(axis=-1, keepdims=True)
    mean = concentration / total
    others = (share * mean).sum(axis=0) - share * mean
    # bᵀCb, C = (diag(μ) - μμᵀ) / (total + 1).
    projected = ((mean * others**2).sum(axis=-1) - (mean * others).sum(axis=-1) ** 2) / (total + 1)[..., 0]
    # The traces of all pairs are those of products of Σ s²C with itself, less those of everybody with themselves.
    scale = share**2 / (total + 1)
    weighted = scale * mean
    sums = -np.einsum("jtk,jtl->tkl", weighted, mean)
    diagonal = np.arange(mean.shape[-1])
    sums[:, diagonal, diagonal] += weighted.sum(axis=0)
    squares = mean**2
    own = scale[..., 0] ** 2 * (squares.sum(axis=-1) * (1 + squares.sum(axis=-1)) - 2 * (squares * mean).sum(axis=-1))
    variance = 4 * (share[..., 0] ** 2 * projected).sum(axis=0) + 2 * ((sums**2).sum(axis=(1, 2)) - own.sum(axis=0))
    rest = 1 - (share**2).sum()
    expected = (share * mean * others).sum(axis=(0, 2)) / rest
    return expected, np.maximum(variance, 0.0) / rest**2
