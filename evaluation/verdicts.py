r"""Systems ranked by what judges say of their outputs, anchored on known answers where there are some.

Judges err together on hard items, and favour some systems: what they say is an opinion. With gold labels of some outputs
it is a control variate of `consilience.evaluation.anchoring`: p is the mean verdict of an output; or the probability that
it is right by the model of Dawid & Skene (1979) with two classes, each judge with rates of their own for each system,

.. math:: p = P(\text{right} \mid v), \quad P(v_j = 1 \mid \text{right}) = a_{js}, \quad
          P(v_j = 0 \mid \text{wrong}) = b_{js},

by EM, the gold labels known, where ten verdicts at the judge's rates over all systems are added to those of each.

References
----------
Dawid and Skene (1979), Maximum likelihood estimation of observer error-rates using the EM algorithm, JRSS C 28.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from consilience.arrays import Float
from consilience.data.problems import check_option
from consilience.data.verdicts import Verdicts
from consilience.errors import UnsupportedRequest
from consilience.evaluation.anchoring import REPLICATES, compare_anchored
from consilience.evaluation.comparison import Comparison
from consilience.evaluation.unit_sums import pseudo_scores, pseudo_weights, weighted_sums
from consilience.models.intervals import LEVEL
from consilience.notes import Remedy

_SWEEPS, _PSEUDO_VERDICTS = 25, 10


def compare_verdicts(
    verdicts: Verdicts, *, gold: str = "ignore", anchor: str = "verdicts", missing: str = "error", level: float = LEVEL,
    seed: int = 0,
) -> Comparison:  # fmt: skip
    """Rank systems by the share of their outputs that is right.

    Parameters
    ----------
    verdicts : of judges.
    gold : ``use`` anchors the shares on the gold labels, which are to be of a random sample of the outputs, or to have
        their ``gold_probability``; ``ignore`` has the shares as the judges see them, and says not who is best.
    anchor : what is made of the verdicts beside gold labels: their mean, or the ``latent-class`` probability.
    missing : ``drop`` compares on the items of which an output of every system was judged.
    level : of the intervals.
    seed : of the weights of items.

    Raises
    ------
    UnsupportedRequest : an output was not judged; there are no gold labels, or fewer than 20 of a system; or a latent
        class is asked for without them, or of verdicts by one judge, or between right and wrong.
    """
    check_option("gold", gold, ("ignore", "use"))
    check_option("anchor", anchor, ("verdicts", "latent-class"))
    check_option("missing", missing, ("error", "drop"))
    share, kept = _shares(verdicts, missing)
    systems, title = tuple(map(str, verdicts.systems)), "share of right outputs"
    if gold == "ignore":
        return _as_judged(share[:, kept], systems, title, verdicts.gold is not None, anchor, level, seed)
    if verdicts.gold is None:
        text = "the verdicts have no gold labels; give a column 'gold' for 20 items or more, or {gold}"
        raise UnsupportedRequest(text, Remedy("gold", "ignore"))
    known = ~np.isnan(verdicts.gold[:, kept])
    chance = None if verdicts.gold_probability is None else verdicts.gold_probability[:, kept]
    p = share if anchor == "verdicts" else latent_class(verdicts)
    return compare_anchored(
        verdicts.gold[:, kept], p[:, kept], known, systems=systems, title=title, probability=chance,
        points=share[:, kept].mean(axis=1), level=level, seed=seed,
    )  # fmt: skip


def _shares(verdicts: Verdicts, missing: str) -> tuple[Float[np.ndarray, "system item"], np.ndarray]:
    """Return the mean verdict of each output, and which items have one of every system."""
    output, shape = verdicts.system * verdicts.num_items + verdicts.item, (verdicts.num_systems, verdicts.num_items)
    said, number = (
        np.bincount(output, weight, shape[0] * shape[1]).reshape(shape) for weight in (verdicts.label, None)
    )
    kept = (number > 0).all(axis=0)
    if not kept.all() and missing == "error" or not kept.any():
        system, item = np.argwhere(number == 0)[0]
        first = f"that of {verdicts.systems[system]!r} on {verdicts.items[item]!r}"
        text = f"{(number == 0).sum():,} outputs were not judged, such as {first}; {{missing}} compares on the others"
        raise UnsupportedRequest(text, Remedy("missing", "drop"))
    return said / np.maximum(number, 1), kept


def _as_judged(
    share: np.ndarray, systems: tuple[str, ...], title: str, has_gold: bool, anchor: str, level: float, seed: int
) -> Comparison:
    if anchor != "verdicts":
        raise UnsupportedRequest("{anchor} stands beside gold labels; give {gold}, or leave it out",
                                 Remedy("anchor", anchor), Remedy("gold", "use"))  # fmt: skip
    total, weight = weighted_sums(share, seed, REPLICATES)
    extra = pseudo_weights(seed, REPLICATES)
    draws = (total + extra * pseudo_scores(seed, len(share), REPLICATES)) / (weight + extra)
    values = share.mean(axis=1)
    notes = ("no verdict tells how far judges err: intervals are of what they say, and the best system is not named",)
    return Comparison(
        systems=systems, title=f"{title} as the judges see it", values=values, draws=draws,
        truth_draws=np.repeat(values[:, None], 2, axis=1), item_draws=draws, points=None, num_items=share.shape[1],
        limits=(0.0, 1.0), level=level, ranks=False,
        notes=notes + (("there are gold labels, which were not used",) if has_gold else ()),
    )  # fmt: skip


def latent_class(verdicts: Verdicts) -> Float[np.ndarray, "system item"]:
    """Return how probably each output is right, from the verdicts on it, with rates that the gold labels inform.

    Raises
    ------
    UnsupportedRequest : there is one judge, or a verdict is between right and wrong.
    """
    said, right = verdicts.label == 1, verdicts.gold.ravel()
    if verdicts.num_annotators < 2 or not np.isin(verdicts.label, (0, 1)).all():
        text = "{anchor} needs two judges or more, who say right or wrong; leave it out"
        raise UnsupportedRequest(text, Remedy("anchor", "latent-class"))
    systems, items, judges = verdicts.num_systems, verdicts.num_items, verdicts.num_annotators
    output, cell = verdicts.system * items + verdicts.item, verdicts.system * judges + verdicts.annotator

    def rate(agrees: np.ndarray, of: np.ndarray) -> np.ndarray:
        """Return how often judges agree with a class, ``(system * judge,)``, drawn towards their rate of all."""
        hits, cases = (np.bincount(cell, each, systems * judges).reshape(systems, judges) for each in (agrees * of, of))
        pooled = (hits.sum(axis=0) + 1) / (cases.sum(axis=0) + 2)
        return ((hits + _PSEUDO_VERDICTS * pooled) / (cases + _PSEUDO_VERDICTS)).ravel()

    number = np.maximum(np.bincount(output, minlength=systems * items), 1)
    p = 0.1 + 0.8 * np.bincount(output, said, systems * items) / number
    for _ in range(_SWEEPS):
        known = np.where(np.isnan(right), p, right)
        a, b = rate(said, known[output]), rate(~said, 1 - known[output])
        share = (known.reshape(systems, items).sum(axis=1) + 1) / (items + 2)
        evidence = np.where(said, np.log(a / (1 - b))[cell], np.log((1 - a) / b)[cell])
        p = special.expit(special.logit(np.repeat(share, items)) + np.bincount(output, evidence, systems * items))
    return np.asarray(p.reshape(systems, items))
