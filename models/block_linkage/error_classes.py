r"""Error classes: of an entity's records one is free of errors, and each other one errs not at all, once, or often.

Where lists are made by copying and mistyping, a record does not err in every field independently. One record of the
entity, any of them, is the head h; every other record is drawn from it by a class,

.. math::

    m(C) = \frac{1}{|C|} \sum_{h \in C} \prod_{i \in C, i \neq h} R(i \mid h), \qquad
    R = \pi_1 R_{\text{exact}} + \pi_2 R_{\text{one}} + \pi_3 R_{\text{many}} .

All is relative to how common values are. With :math:`x` the record's values, :math:`y` the head's, F fields,

* exact: :math:`\prod_f 1[x_f = y_f] / \theta_{y_f}`;
* one: a field f out of F, the same for all, has another value, :math:`1 / (F (1 - \theta_{y_f}))` if it differs; the
  other fields are exact. The field may be one that is missing;
* many: :math:`\prod_f ((1 - b_f) 1[x_f = y_f] / \theta_{y_f} + b_f)`, hit-miss given the head.

A field that either record lacks is a factor of one.

**EM.** Given a partition, the head of a cluster is h with probability :math:`w_{Ch} \propto \prod R(i \mid h)`, and the
class of i given h is s with probability :math:`\pi_s R_s / R`. With :math:`W_{hi} = \sum_{C \ni h, i} P(C) w_{Ch}`, the
expected number of records of class s is the sum of :math:`W_{hi} \pi_s R_s(i \mid h) / R(i \mid h)` over all pairs; of
those with many errors a field that agrees was distorted all the same with probability
:math:`b_f / ((1 - b_f) / \theta_{y_f} + b_f)`. Then :math:`\pi_s` and :math:`b_f` are the means of the Dirichlet and
Beta distributions that these counts make of their priors: modes of the logits. No pass lowers the evidence.

"Many" must mean heavily distorted, or records with two errors have nowhere to go: the prior of b is Beta(2, 4) unless
another one is given. That of the shares of the classes is Dirichlet(1, 1, 1).
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from consilience.arrays import Array, Float, Int
from consilience.models.block_linkage.enumeration import members_of_subsets, subset_probabilities
from consilience.models.block_linkage.likelihood import Likelihood, draw_values
from consilience.models.block_linkage.parameters import Parameters
from consilience.models.block_linkage.priors import Priors, RareDistortion

CLASSES = ("exact", "one error", "many errors")

CLASS_PRIOR = np.ones(3)
"""Parameters of the Dirichlet distribution of the shares of the classes."""

_MANY = RareDistortion(2.0, 4.0)
_FIRST_DISTORTION = 1 / 3


class GivenHead(NamedTuple):
    """Records given heads.

    Parameters
    ----------
    whole : any shape; log R, summed over classes.
    classes : of one axis more in front, ``(class, …)``; probability of each class.
    """

    whole: Float[Array, "*pairs"]
    classes: Float[Array, "class *pairs"]


def given_head(
    value: Int[Array, "*record_axes"], head: Int[Array, "*head_axes"], share: Float[Array, "*record_axes"],
    head_share: Float[Array, "*head_axes"], distortion: Float[Array, "*field_axes"],
    class_share: Float[Array, " class"], xp: Any, *, axis: int = -1,
) -> GivenHead:  # fmt: skip
    """Return how much more probable records are given heads than apart.

    Parameters
    ----------
    value, head : codes of the values of records and of heads, -1 where missing; shapes that go together.
    share, head_share : θ of these values; where they are missing, any number from 0 to 1.
    distortion : b of each field.
    class_share : π.
    xp : the array module, ``numpy`` or ``jax.numpy``.
    axis : of the fields.
    """
    both = (value >= 0) & (head >= 0)
    same = both & (value == head)
    differs = both & ~same
    exact = xp.where(same, -xp.log(head_share), 0).sum(axis)
    many = xp.log((1 - distortion) / head_share + distortion)
    many = xp.where(same, many, xp.where(both, xp.log(distortion), 0)).sum(axis)
    number, num_fields = differs.sum(axis), both.shape[axis]
    other = -xp.log(xp.where(differs, other_share(share, head_share, xp), 1)).sum(axis)
    missing = ((~both).sum(axis) / num_fields).astype(exact.dtype)
    # Relative to many errors, which are never impossible.
    relative = xp.exp(xp.where(number < 2, exact + xp.where(number == 1, other, 0) - many, 0))
    weights = xp.stack([
        class_share[0] * xp.where(number == 0, relative, 0),
        class_share[1] * xp.where(number == 0, missing, xp.where(number == 1, 1 / num_fields, 0)) * relative,
        class_share[2] * xp.ones_like(relative),
    ]).astype(exact.dtype)  # fmt: skip
    total = weights.sum(0)
    return GivenHead(many + xp.log(total), weights / total)


def other_share(share: Any, head_share: Any, xp: Any) -> Any:
    """Return how common values other than the head's are, 1 - θ of that: no less than the one that is shown instead.

    In single precision the difference may come out as zero.
    """
    return xp.maximum(1 - head_share, share)


class ErrorClasses(Likelihood):
    """One record of an entity is free of errors; the others have none, one or many.

    Parameters
    ----------
    class_share : shape ``(3,)``; how common the classes are.
    """

    arrays = ("class_share",)

    def __init__(self, class_share: Any = (0.3, 0.4, 0.3)) -> None:
        self.class_share = np.asarray(class_share, float) if isinstance(class_share, tuple) else class_share

    def pair_terms(
        self, parameters: Parameters, first_value: Int[np.ndarray, " fields_and_one"]
    ) -> tuple[Float[np.ndarray, " value"], Float[np.ndarray, " field"]]:
        """Return bounds of what each field adds to the log odds of a pair."""
        share, miss = parameters.value_share, np.asarray(parameters.distortion, float)
        of_class = self.at(parameters).class_share
        ends = zip(first_value, first_value[1:], strict=False)
        other = np.array([1 - share[first:last].max(initial=0) for first, last in ends])
        once = of_class[1] / (len(miss) * np.maximum(other, np.finfo(float).eps)) + of_class[2] * miss
        often = miss * of_class[2] ** (1 / len(miss))
        return -np.log(share), np.log(np.maximum(once, often))

    def draw_pairs(
        self, generator: np.random.Generator, number: int, parameters: Parameters,
        first_value: Int[np.ndarray, " fields_and_one"],
    ) -> tuple[Int[np.ndarray, "two field pair"], Float[np.ndarray, " pair"]]:  # fmt: skip
        """Draw pairs of records of one entity, most of them with the head, and all of as much weight."""
        head = draw_values(generator, number, parameters, first_value)
        one, other = (self._drawn(generator, head, parameters, first_value) for _ in range(2))
        # Of the pairs of an entity of s records 2 / s are with the head.
        size = np.arange(2, len(parameters.size_share) + 1)
        pairs = parameters.size_share[1:] * size * (size - 1)
        with_head = generator.random(number) * pairs.sum() < (pairs * 2 / size).sum()
        return np.stack([np.where(with_head, head, one), other]), np.ones(number)

    def _drawn(
        self, generator: np.random.Generator, head: Int[np.ndarray, "field record"], parameters: Parameters,
        first_value: Int[np.ndarray, " fields_and_one"],
    ) -> Int[np.ndarray, "field record"]:  # fmt: skip
        """Draw records given heads."""
        num_fields, number = head.shape
        of_class = self.at(parameters).class_share
        kind = generator.choice(len(of_class), number, p=of_class / of_class.sum())
        wrong = generator.integers(num_fields, size=number) == np.arange(num_fields)[:, None]
        value = draw_values(generator, number, parameters, first_value)
        another = draw_values(generator, number, parameters, first_value, but=head)
        many = generator.random(head.shape) < parameters.distortion[:, None]
        return np.where((kind == 1) & wrong, another, np.where((kind == 2) & many, value, head))

    def log_marginals(
        self,
        values: Int[Array, "member field component"],
        share: Float[Array, "member field component"],
        distortion: Float[Array, " field"],
        xp: Any,
    ) -> Float[Array, "subset component"]:
        """Sum over the head and the classes of the others."""
        given = self._given(values, share, distortion, xp)
        by_head, highest, total = _heads(given.whole, xp)
        number = np.maximum(members_of_subsets(len(values)).sum(1), 1)
        return highest + xp.log(total / number.astype(share.dtype)[:, None])

    def _given(self, values: Any, share: Any, distortion: Any, xp: Any) -> GivenHead:
        """Compare every record with every head: axes head, record and component."""
        own_class = xp.asarray(self.class_share).astype(share.dtype)
        given = given_head(
            values[None], values[:, None], share[None], share[:, None], distortion[:, None], own_class, xp, axis=2
        )
        apart = ~np.eye(len(values), dtype=bool)[..., None]
        return GivenHead(xp.where(apart, given.whole, 0), xp.where(apart, given.classes, 0))

    # ---- hyperparameters ----

    def priors(self, priors: Priors) -> Priors:
        """Return the priors, with Beta(2, 4) of the distortions where none is given."""
        given = priors.distortion
        single = isinstance(given, RareDistortion) and np.ndim(given.a) == np.ndim(given.b) == 0
        return dataclasses.replace(priors, distortion=_MANY) if single and given == RareDistortion() else priors

    def started(self, parameters: Parameters) -> Parameters:
        """Return the hyperparameters to start from."""
        distortion = np.full_like(parameters.distortion, _FIRST_DISTORTION)
        return parameters._replace(distortion=distortion, class_share=np.asarray(self.class_share))

    def at(self, parameters: Parameters) -> ErrorClasses:
        """Return the likelihood with these shares of classes; where there are none, it stays as it is."""
        return ErrorClasses(parameters.class_share) if len(parameters.class_share) else self

    def error_statistics(
        self, values: Int[np.ndarray, "member field component"], parameters: Parameters,
        partition: Float[np.ndarray, "partition component"],
    ) -> Float[np.ndarray, " statistic"]:  # fmt: skip
        """Return the expected number of records of each class, and of the distorted and true values of "many"."""
        share = np.append(parameters.value_share, 1)[values]
        given = self.at(parameters)._given(values, share, parameters.distortion, np)
        by_head, _, total = _heads(given.whole, np)
        weight = subset_probabilities(partition.astype(float), len(values))[:, None] * by_head / total[:, None]
        inside = members_of_subsets(len(values)).astype(float)
        heads = np.einsum("shc,si->hic", weight, inside)
        classes = heads * given.classes
        both = (values[:, None] >= 0) & (values[None] >= 0)
        same = both & (values[:, None] == values[None])
        miss = parameters.distortion[:, None]
        by_chance = np.where(same, miss / ((1 - miss) / share[:, None] + miss), both)
        distorted = np.einsum("hic,hifc->f", classes[2], by_chance)
        true = np.einsum("hic,hifc->f", classes[2], both - by_chance)
        return np.concatenate([classes.sum(axis=(1, 2, 3)), distorted, true])

    def learned(
        self, parameters: Parameters, statistics: Float[np.ndarray, " statistic"], prior: Float[np.ndarray, "field 2"]
    ) -> Parameters:
        """Return the shares of the classes, and the distortions of records with many errors."""
        number, of_many = statistics[:3] + CLASS_PRIOR, statistics[3:].reshape(2, -1).T + prior
        return parameters._replace(
            class_share=number / number.sum(), distortion=of_many[:, 0] / of_many.sum(axis=1)
        )

    def log_prior(self, parameters: Parameters) -> float:
        """Return the log density of the logits of the shares of the classes."""
        return float(CLASS_PRIOR @ np.log(parameters.class_share))


def _heads(whole: Any, xp: Any) -> tuple[Any, Any, Any]:
    """Return the weight of each head in each subset, relative to the best; the logarithm of that one; and the sum."""
    num_records = len(whole)
    total = xp.zeros((1, *whole[:, 0].shape), whole.dtype)
    for record in range(num_records):
        total = xp.concatenate([total, total + whole[:, record]])
    inside = members_of_subsets(num_records).astype(bool)
    inside[0, 0] = True  # the empty set has the likelihood one of a record alone
    masked = xp.where(inside[..., None], total, -math.inf)
    highest = masked.max(1)
    weight = xp.exp(masked - highest[:, None])
    return weight, highest, weight.sum(1)
