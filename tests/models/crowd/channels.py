"""Channels by loops and by enumeration: what a label says, which outcomes it has, and the exact posterior.

A row states its member a second time, in the plainest way: the tests compare all that `models/crowd` does with these.
"""

import functools
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpyro.distributions as dist
from scipy.special import digamma, gammaln, logsumexp

from consilience.data import Annotations
from consilience.models import dawid_skene, mace, one_coin
from consilience.models.beta_priors import BetaPrior

TREE = {
    "prevalence": np.array([1.5, 0.7, 2.0]),
    "confusion": np.array([[3.0, 1.0, 0.5], [1.0, 2.5, 1.5], [0.6, 1.2, 2.0]]),
    "competence": np.array([1.5, 0.8]), "guess": np.array([2.0, 0.7, 1.1]), "accuracy": np.array([2.5, 1.2]),
}  # fmt: skip
"""Concentrations that tell labels apart, so that every transposition shows; of two labels, the first ones."""


class Row(NamedTuple):
    """A member, stated again.

    Parameters
    ----------
    module : with ``MODEL`` and ``Priors``.
    hidden : name of the probabilities of the labels.
    says : ``says(x, j, t, l, K)`` -> probability that annotator j says l of class t, x the tree.
    outcomes : ``outcomes(add, x, j, l, q, w)``: add to each simplex what a label of weight w makes one expect.
    annotator : ``annotator(prior, counts)`` -> log evidence of what an annotator said ``(class, label)``, and the means
        of her variables and of their squares.
    """

    module: Any
    hidden: str
    says: Callable
    outcomes: Callable
    annotator: Callable

    @property
    def sites(self):
        return tuple(site.name for site in self.module.MODEL.sites)

    def tree(self, num_labels):
        """Return the concentrations of the prior."""
        cut = {site: TREE[site] for site in self.sites}
        size = {"competence": 2, "accuracy": 2}
        return {
            site: own[(slice(None, size.get(site, num_labels)),) * own.ndim] for site, own in cut.items()
        }  # fmt: skip

    def priors(self, num_labels=3):
        found = {
            site: BetaPrior(*own) if len(own) == 2 and site in ("competence", "accuracy") else dist.Dirichlet(own)
            for site, own in self.tree(num_labels).items()
        }
        return self.module.Priors(**found)


# ---- what a label says, and which outcomes it has


def _outcomes_of_dawid_skene(add, x, j, label, q, weight):
    add["confusion"][j, :, label] += weight * q


def _outcomes_of_mace(add, x, j, label, q, weight):
    k, g = x["competence"][j, 0], x["competence"][j, 1] * x["guess"][j, label]
    known = q[label] * k / (k + g)
    add["competence"][j] += weight * np.array([known, 1 - known])
    add["guess"][j, label] += weight * (1 - known)


def _outcomes_of_one_coin(add, x, j, label, q, weight):
    add["accuracy"][j] += weight * np.array([q[label], 1 - q[label]])


def log_beta(concentration):
    return gammaln(concentration).sum(-1) - gammaln(concentration.sum(-1))


def moments(concentration):
    """Return the means of Dirichlet variables and of their squares."""
    total = concentration.sum(-1, keepdims=True)
    mean = concentration / total
    return mean, mean * (concentration + 1) / (total + 1)


def _annotator_of_dawid_skene(prior, counts):
    own = prior["confusion"] + counts
    return (log_beta(own) - log_beta(prior["confusion"])).sum(), {"confusion": moments(own)}


def _annotator_of_one_coin(prior, counts):
    right = np.trace(counts)
    own = prior["accuracy"] + np.array([right, counts.sum() - right])
    wrong = (counts.sum() - right) * np.log(len(counts) - 1)
    mean, square = moments(own)
    return log_beta(own) - log_beta(prior["accuracy"]) - wrong, {"accuracy": (mean[0], square[0])}


def _annotator_of_mace(prior, counts):
    """Sum over how many of the right labels were known, label by label."""
    right, given, found, log_weight = np.diag(counts).astype(int), counts.sum(axis=0), [], []
    for known in itertools.product(*(range(number + 1) for number in right)):
        guessed, chosen = given - known, np.array(known)
        competence = prior["competence"] + np.array([chosen.sum(), guessed.sum()])
        guess = prior["guess"] + guessed
        ways = gammaln(right + 1) - gammaln(chosen + 1) - gammaln(right - chosen + 1)
        log_weight.append(
            ways.sum() + log_beta(competence) - log_beta(prior["competence"]) + log_beta(guess)
            - log_beta(prior["guess"])
        )  # fmt: skip
        found.append([*(own[:1] for own in moments(competence)), *moments(guess)])
    total = logsumexp(log_weight)
    weight = np.exp(np.array(log_weight) - total)
    mean, square, habit, of_habit = (
        np.tensordot(weight, np.array(part), 1) for part in zip(*found, strict=True)
    )
    return total, {"competence": (mean[0], square[0]), "guess": (habit, of_habit)}


CHANNELS = {
    "dawid-skene": Row(
        dawid_skene, "responsibility", lambda x, who, true, label, number: x["confusion"][who, true, label],
        _outcomes_of_dawid_skene, _annotator_of_dawid_skene,
    ),
    "mace": Row(
        mace, "probability",
        lambda x, who, true, label, number: (
            x["competence"][who, 0] * (true == label) + x["competence"][who, 1] * x["guess"][who, label]
        ),
        _outcomes_of_mace, _annotator_of_mace,
    ),
    "one-coin": Row(
        one_coin, "probability",
        lambda x, who, true, label, number: (
            x["accuracy"][who, 0] if true == label else x["accuracy"][who, 1] / (number - 1)
        ),
        _outcomes_of_one_coin, _annotator_of_one_coin,
    ),
}  # fmt: skip


# ---- data

SIZES = {"num_items": 6, "num_annotators": 4, "num_labels": 3}


def random_table(seed=0, number=12, **more):
    random = np.random.default_rng(seed)
    return Annotations.from_codes(*(random.integers(0, size, number) for size in SIZES.values()), **SIZES, **more)


def noise(seed, num_items=12, num_annotators=3, num_labels=2):
    """Return labels that say nothing: those of the specification."""
    random = np.random.default_rng(seed)
    random.integers(0, num_labels, num_items)
    item, annotator = np.indices((num_items, num_annotators)).reshape(2, -1)
    return Annotations.from_codes(item, annotator, random.integers(0, num_labels, len(item)), num_labels=num_labels)


# ---- loops


def sweep_by_loops(row, x, data, allowed=None):
    """Return the labels' probabilities, log normalisers, and expected outcomes; ``x`` are weights, not logarithms."""
    number = data.num_labels
    q, log_z = np.zeros((data.num_items, number)), np.zeros(data.num_items)
    for item in range(data.num_items):
        product = np.array(x.get("prevalence", np.full(number, 1 / number)))
        product = product * (1 if allowed is None else allowed[item])
        for n in np.flatnonzero(data.item == item):
            said = [row.says(x, data.annotator[n], t, data.label[n], number) for t in range(number)]
            product = product * np.array(said) ** data.weight[n]
        log_z[item], q[item] = np.log(product.sum()), product / product.sum()
    add = {site: np.zeros(values.shape) for site, values in x.items()}
    if "prevalence" in x:
        add["prevalence"] += q.sum(axis=0)
    for i, j, label, weight in zip(data.item, data.annotator, data.label, data.weight, strict=True):
        row.outcomes(add, x, j, label, q[i], weight)
    return q, log_z, add


def weights_of(tree):
    """Return the exponentials of expected logarithms."""
    return {site: np.exp(digamma(own) - digamma(own.sum(-1, keepdims=True))) for site, own in tree.items()}


def divergence(posterior, prior):
    """Return the Kullback-Leibler divergence of Dirichlet distributions, all together."""
    expected = digamma(posterior) - digamma(posterior.sum(-1, keepdims=True))
    return np.sum(log_beta(prior) - log_beta(posterior) + ((posterior - prior) * expected).sum(-1))


# ---- enumeration


class Exact(NamedTuple):
    """The exact posterior: log evidence, probabilities of labels, means and mean squares of variables by site."""

    log_evidence: float
    label: np.ndarray
    means: dict
    squares: dict


def enumerated(row, data, prior, allowed=lambda label: True):
    """Sum over all labels of all items, parameters integrated out.

    Parameters
    ----------
    prior : concentrations by site; without a prevalence all labels that are allowed are equally probable.
    allowed : which labels there may be.
    """
    number = data.num_labels
    of_annotator = functools.cache(lambda counts: row.annotator(prior, np.array(counts).reshape(number, number)))
    every = [np.array(label) for label in itertools.product(range(number), repeat=data.num_items)]
    possible = [label for label in every if allowed(label)]
    log_weight, found = [], []
    for label in possible:
        counts = np.zeros((data.num_annotators, number, number))
        np.add.at(counts, (data.annotator, label[data.item], data.label), data.weight)
        each = [of_annotator(tuple(own.ravel())) for own in counts]
        total = sum(one for one, _ in each) - ("prevalence" not in prior) * np.log(len(possible))
        parts = {site: tuple(np.stack(side) for side in zip(*(own[site] for _, own in each), strict=True))
                 for site in each[0][1]}  # fmt: skip
        if "prevalence" in prior:
            own = prior["prevalence"] + np.bincount(label, minlength=number)
            total += log_beta(own) - log_beta(prior["prevalence"])
            parts["prevalence"] = moments(own)
        log_weight.append(total)
        found.append(parts)
    log_evidence = logsumexp(log_weight)
    weight = np.exp(np.array(log_weight) - log_evidence)
    certain = np.stack([weight @ (np.array(possible) == t) for t in range(number)], axis=1)
    mean, square = (
        {site: np.tensordot(weight, np.stack([one[site][side] for one in found]), 1) for site in found[0]}
        for side in (0, 1)
    )
    return Exact(float(log_evidence), certain, mean, square)
