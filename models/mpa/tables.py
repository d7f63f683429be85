"""Tables of a fit of the mention-pair model."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.models.interface import Column, Table
from consilience.models.label_tables import leading_labels
from consilience.models.mpa.candidates import Candidates, labelled
from consilience.models.posterior import Posterior
from consilience.models.sites import Resolved


def candidates(posterior: Posterior, resolved: Resolved, truth: Any) -> dict[str, np.ndarray]:
    """Return all candidates: the probability that each is true by itself, and that it is the one; votes for it."""
    return _of_pairs(truth, np.arange(len(truth.phi)))


def ambiguous(posterior: Posterior, resolved: Resolved, truth: Any) -> dict[str, np.ndarray]:
    """Return the items with two or more candidates that are more probably true than not, the most even first.

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
    return {**_of_pairs(truth, order), "chosen_by": _choosers(pairs, resolved.data, order)}


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


def annotators(posterior: Posterior, resolved: Resolved, truth: Any) -> dict[str, np.ndarray]:
    """Return the profile of each annotator in each class on which they decided, with 95 % intervals."""
    tables = truth.candidates.tables
    decisions = tables.yes + tables.no
    annotator, position = np.nonzero(decisions)
    class_ = tables.classes[position]
    columns: dict[str, np.ndarray] = {"annotator": annotator, "class": labelled(resolved.data).classes[class_]}
    for site in ("sensitivity", "specificity"):
        if site not in posterior.sites:                     # of a partition: no label is judged by itself
            nothing = np.full(len(annotator), np.nan)
            columns |= dict.fromkeys((site, f"{site}_lower", f"{site}_upper"), nothing)
            continue
        found = posterior.summary(site, where=(annotator, class_))
        columns |= {site: found.mean, f"{site}_lower": found.lower, f"{site}_upper": found.upper}
    return {**columns, "decisions": decisions[annotator, position]}


def hyperparameters(posterior: Posterior, resolved: Resolved, truth: Any) -> dict[str, np.ndarray]:
    """Return the Beta priors of the profiles in each class, as they were given or learned; empty after sampling."""
    names, known = labelled(resolved.data).classes, posterior.hidden
    of_sites = [known[name] for name in ("sensitivity_prior", "specificity_prior") if name in known]
    rows = [np.asarray(own, float)[truth.candidates.tables.classes] for own in of_sites]
    classes = names[truth.candidates.tables.classes] if rows else names[:0]
    a, b = np.concatenate([np.zeros((0, 2)), *rows]).T
    sites = np.repeat(np.array(["sensitivity", "specificity"], object), len(classes))
    return {"site": sites, "class": np.tile(classes, 2), "a": a, "b": b, "mean": a / (a + b)}


_CANDIDATE = (
    Column("item", "item"), Column("label", "class"), Column("phi", help="probability of being true by itself"),
    Column("probability", help="of being the one that is true"), Column("votes", help="annotators who chose it"),
)  # fmt: skip

TABLES = (
    Table(
        name="labels", help="The label of each item and its probability among the item's candidates.",
        make=leading_labels,
        columns=(
            Column("item", "item"), Column("label", "class"), Column("probability", help="of the label"),
            Column("certainty", help="the same"),
        ),
    ),
    Table(
        name="candidates", help="All candidates: how probably each is true by itself, and the one.", make=candidates,
        columns=_CANDIDATE,
    ),
    Table(
        name="annotators", help="The profile of each annotator in each class on which she decided.", make=annotators,
        columns=(
            Column("annotator", "annotator"), Column("class", help="of the candidates"),
            Column("sensitivity", help="probability of choosing a candidate that is true"),
            Column("sensitivity_lower", help="end of its central 95 % interval"),
            Column("sensitivity_upper", help="its other end"),
            Column("specificity", help="probability of not choosing one that is false"),
            Column("specificity_lower", help="end of its central 95 % interval"),
            Column("specificity_upper", help="its other end"), Column("decisions", help="how many there were"),
        ),
    ),
    Table(
        name="ambiguous", help="Items with several candidates that are more probably true than not.", make=ambiguous,
        columns=(
            *_CANDIDATE, Column("chosen_by", help="their names"),
        ),
    ),
    Table(
        name="hyperparameters", help="The Beta priors of the profiles, as they were given or learned.",
        make=hyperparameters,
        columns=(
            Column("site", help="sensitivity or specificity"), Column("class", help="of the candidates"),
            Column("a", help="pseudo-count for"), Column("b", help="pseudo-count against"),
            Column("mean", help="of the prior"),
        ),
    ),
)  # fmt: skip
