r"""Two latent classes behind verdicts, right and wrong, with error rates of each judge for each system, by EM.

.. math:: P(\text{right}) = \pi_s, \quad P(v_j = 1 \mid \text{right}) = a_{js}, \quad
          P(v_j = 0 \mid \text{wrong}) = b_{js}

of system s and judge j, independently given the class. Ten pseudo-verdicts at the judge's rate over all systems are
added to those of each, so that a bias to one system is learned where its verdicts show it. Gold labels are known
classes.

References
----------
Dawid and Skene (1979), Maximum likelihood estimation of observer error-rates using the EM algorithm, JRSS C 28.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from consilience.arrays import Float
from consilience.data.verdicts import Verdicts
from consilience.errors import UnsupportedRequest
from consilience.notes import Remedy

_SWEEPS, _PSEUDO_VERDICTS = 25, 10


def probability_of_right(verdicts: Verdicts) -> Float[np.ndarray, "system item"]:
    """Return how probably each output is right, given the verdicts on it; its own gold label informs rates alone.

    Parameters
    ----------
    verdicts : right or wrong, by two judges or more.

    Raises
    ------
    UnsupportedRequest : there is one judge, or a verdict is between right and wrong.

    Examples
    --------
    >>> item, annotator = [0, 0, 0, 1, 1, 1, 2, 2, 2], [0, 1, 2] * 3
    >>> verdicts = Verdicts.from_codes(item, [0] * 9, annotator, [1, 1, 1, 0, 0, 0, 1, 1, 0])
    >>> probability_of_right(verdicts).round(1).tolist()
    [[0.8, 0.2, 0.7]]
    """
    systems, items, judges = verdicts.num_systems, verdicts.num_items, verdicts.num_annotators
    said = verdicts.label == 1
    if judges < 2 or not np.isin(verdicts.label, (0, 1)).all():
        text = "{anchor} needs two judges or more, who say right or wrong; leave it out"
        raise UnsupportedRequest(text, Remedy("anchor", "latent-class"))
    output, cell = verdicts.output, verdicts.system.astype(np.int64) * judges + verdicts.annotator

    def rate(agrees: np.ndarray, of: np.ndarray) -> np.ndarray:
        hits, cases = (np.bincount(cell, each, systems * judges).reshape(systems, judges) for each in (agrees * of, of))
        pooled = (hits.sum(axis=0) + 1) / (cases.sum(axis=0) + 2)
        return ((hits + _PSEUDO_VERDICTS * pooled) / (cases + _PSEUDO_VERDICTS)).ravel()

    gold = np.full(systems * items, np.nan) if verdicts.gold is None else np.ravel(verdicts.gold)
    number = np.maximum(np.bincount(output, minlength=systems * items), 1)
    right = 0.1 + 0.8 * np.bincount(output, said, systems * items) / number
    for _ in range(_SWEEPS):
        known = np.where(np.isnan(gold), right, gold)
        a, b = rate(said, known[output]), rate(~said, 1 - known[output])
        prevalence = (known.reshape(systems, items).sum(axis=1) + 1) / (items + 2)
        evidence = np.where(said, np.log(a / (1 - b))[cell], np.log((1 - a) / b)[cell])
        evidence = np.bincount(output, evidence, systems * items)
        right = special.expit(special.logit(np.repeat(prevalence, items)) + evidence)
    return np.asarray(right.reshape(systems, items))
