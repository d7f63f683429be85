"""Tables of a fit of the mention-pair model."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from consilience.models.mpa.candidates import Candidates, class_names
from consilience.models.mpa.cavi import Posterior

__all__ = ["ambiguous", "annotators", "candidates", "hyperparameters", "labels"]

_INTERVAL = (0.025, 0.975)


def labels(posterior: Any, data: Any, truth: Any) -> dict[str, np.ndarray]:
    """Table of the label of each item and its probability among the item's candidates."""
    return truth.leading()


def candidates(posterior: Any, data: Any, truth: Any) -> dict[str, np.ndarray]:
    """Table of all candidates: the probability that each is true by itself, and that it is the one; votes for it."""
    return _of_pairs(truth, np.arange(len(truth.phi)))


def ambiguous(posterior: Any, data: Any, truth: Any) -> dict[str, np.ndarray]:
    """Table of the items with two or more candidates that are more probably true than not, the most even first.

    All their candidates are listed, the most probable first, with the names of those who chose them.
    """
    pairs, phi = truth.candidates, truth.phi
    several = np.bincount(pairs.item, phi > 0.5, pairs.num_items) > 1
    found = np.flatnonzero(several[pairs.item])
    order = found[np.lexsort((-phi[found], pairs.item[found]))]
    first = np.searchsorted(pairs.item[order], np.unique(pairs.item[order]))
    lead = np.zeros(pairs.num_items)
    lead[pairs.item[order][first]] = phi[order][first] - phi[order][first + 1]
    order = order[np.lexsort((-phi[order], pairs.item[order], lead[pairs.item[order]]))]
    return {**_of_pairs(truth, order), "chosen_by": _choosers(pairs, data, order)}


def _of_pairs(truth: Any, chosen: np.ndarray) -> dict[str, np.ndarray]:
    pairs = truth.candidates
    return {
        "item": pairs.item[chosen], "label": pairs.label[chosen], "phi": truth.phi[chosen],
        "probability": truth.probability[chosen], "votes": pairs.votes[chosen],
    }  # fmt: skip


def _choosers(pairs: Candidates, data: Any, chosen: np.ndarray) -> np.ndarray:
    """Return who chose each pair, as text."""
    tables = pairs.tables
    order = np.argsort(tables.chosen_pair, kind="stable")
    annotator = tables.chosen_cell[order] // len(tables.classes)
    names = annotator.astype(str) if data.annotators is None else np.asarray(data.annotators)[annotator].astype(str)
    first = np.searchsorted(tables.chosen_pair[order], [chosen, chosen + 1])
    return np.array([", ".join(names[start:stop]) for start, stop in first.T], object)


def annotators(posterior: Any, data: Any, truth: Any) -> dict[str, np.ndarray]:
    """Table of the profile of each annotator in each class on which they decided, with 95 % intervals."""
    tables = truth.candidates.tables
    decisions = tables.yes + tables.no
    annotator, position = np.nonzero(decisions)
    class_ = tables.classes[position]
    columns: dict[str, np.ndarray] = {"annotator": annotator, "class": class_names(data)[class_]}
    for site in ("sensitivity", "specificity"):
        if isinstance(posterior, Posterior):
            summary = _of_beta(getattr(posterior, site)[annotator, class_])
        else:
            summary = _of_draws(np.asarray(posterior[site])[:, annotator, class_])
        columns |= dict(zip((site, f"{site}_lower", f"{site}_upper"), summary, strict=True))
    return {**columns, "decisions": decisions[annotator, position]}


def hyperparameters(posterior: Any, data: Any, truth: Any) -> dict[str, np.ndarray]:
    """Table of the Beta priors of the profiles in each class, as they were given or learned; empty after sampling."""
    names, rows = class_names(data), []
    if isinstance(posterior, Posterior):
        of_sites = (posterior.sensitivity_prior, posterior.specificity_prior)
        rows = [np.asarray(own, float)[truth.candidates.tables.classes] for own in of_sites]
    classes = names[truth.candidates.tables.classes] if rows else names[:0]
    a, b = np.concatenate([np.zeros((0, 2)), *rows]).T
    sites = np.repeat(np.array(["sensitivity", "specificity"], object), len(classes))
    return {"site": sites, "class": np.tile(classes, 2), "a": a, "b": b, "mean": a / (a + b)}


def _of_beta(parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a, b = np.asarray(parameters, float).T
    lower, upper = (special.betaincinv(a, b, level) for level in _INTERVAL)
    return a / (a + b), lower, upper


def _of_draws(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    lower, upper = np.quantile(draws, _INTERVAL, axis=0)
    return draws.mean(0, dtype=float), lower, upper
