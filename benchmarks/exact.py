"""Accuracy against a Dirichlet posterior without Monte Carlo error."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.models.truth import Ranked


def exact_accuracy(truth: Any, ranked: np.ndarray) -> np.ndarray:
    """Return the probability that the most plausible class is among the predicted ones, by quadrature.

    Parameters
    ----------
    truth : with exact probabilities (`DirichletTruth`).
    ranked : class codes, shape ``(item, position)``; -1 after the end of a list.

    Returns
    -------
    float64, shape ``(item,)``.
    """
    probability, entries = truth.exact(Ranked(1)), truth.entries
    cell = entries.item * truth.num_classes + entries.class_
    predicted = np.arange(truth.num_units)[:, None] * truth.num_classes + ranked
    place = np.minimum(np.searchsorted(cell, predicted), len(cell) - 1)
    leads = np.where(cell[place] == predicted, probability.probability[place], probability.unnamed[:, None])
    return np.where(ranked >= 0, leads, 0.0).sum(axis=1)
