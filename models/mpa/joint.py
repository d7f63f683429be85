r"""One label per item where an annotation is a choice among the candidates, and not a decision on each of them.

The mention-pair model counts an annotation once for the candidate that it names and once against each other one, as if
these were decisions of their own. The odds of the candidates then say more than the annotations do, and one label per
item is surer than it should be: of 29,103 simulated mentions, labels of probability .982 were right 90.5 % of the time.

Here the annotators' sensitivities are those of the model, but given that t is the one true candidate of an item,
annotator j chooses it with probability :math:`\alpha_{j z_t}`, and else one of the others. These errors may be popular:
which candidates they fall on is a Dirichlet draw that all annotators of the item share. With :math:`v_m` the votes for
m, V those for all others than t, and k the number of these,

.. math::

    P(t) \propto \frac{\pi_{z_t}}{1 - \pi_{z_t}}
    \prod_{n : \text{chose } t} \alpha_{j_n z_t} \prod_{n : \text{did not}} (1 - \alpha_{j_n z_t})
    \frac{\Gamma(k a)}{\Gamma(k a + V)} \prod_{m \ne t} \frac{\Gamma(a + v_m)}{\Gamma(a)} .

The concentration a is the one that makes the annotations most probable; where it is infinite the errors are equally
likely, and the last factors are :math:`k^{-V}`. The simulations of Paun et al. (2018, section 3.1.2) have a = ∞
("uniform") and a = 1 ("sparse").
"""

from __future__ import annotations

import numpy as np
from scipy import special

from consilience.arrays import Array, Float
from consilience.models.mpa.candidates import Candidates, Tables
from consilience.models.mpa.gibbs import LogBeta
from consilience.models.mpa.updates import log_odds

_CONCENTRATIONS = (0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 5.0, 10.0, 30.0, np.inf)


def joint_log_weight(
    prevalence: LogBeta, sensitivity: LogBeta, errors: Float[Array, " pair"], tables: Tables
) -> Float[Array, " pair"]:
    """Return the logarithm of the right side above, given the parameters of all classes.

    Parameters
    ----------
    errors : as `log_errors` returns it.
    """
    prior = (prevalence.one - prevalence.rest)[tables.classes]
    yes, no = sensitivity.one[:, tables.classes], sensitivity.rest[:, tables.classes]
    return log_odds(prior, yes, no, tables) + errors


def log_errors(candidates: Candidates, concentration: float) -> Float[np.ndarray, " pair"]:
    """Return the log probability that the errors fall on the candidates that they fell on, if each pair is true.

    Parameters
    ----------
    concentration : a; may be infinite.
    """
    item, votes = candidates.item, candidates.votes
    others = np.bincount(item, minlength=candidates.num_items)[item] - 1
    wrong = np.bincount(item, votes, candidates.num_items)[item] - votes
    if np.isinf(concentration):
        return -wrong * np.log(np.maximum(others, 1))
    popular = special.gammaln(votes + concentration) - special.gammaln(concentration)
    of_others = np.bincount(item, popular, candidates.num_items)[item] - popular
    whole = np.maximum(others, 1) * concentration
    return np.where(others > 0, special.gammaln(whole) - special.gammaln(whole + wrong) + of_others, 0.0)


def likeliest_concentration(candidates: Candidates, weight: Float[np.ndarray, " pair"]) -> float:
    """Return the concentration, of thirteen between 0.1 and infinity, that makes the annotations most probable.

    Parameters
    ----------
    weight : `joint_log_weight` without errors, at estimates of the parameters.
    """
    first = np.searchsorted(candidates.item, np.arange(candidates.num_items))

    def evidence(concentration: float) -> float:
        whole = np.asarray(weight, float) + log_errors(candidates, concentration)
        return float(np.logaddexp.reduceat(whole, first).sum())

    return max(_CONCENTRATIONS, key=evidence)
