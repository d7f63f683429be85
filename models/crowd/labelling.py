r"""Mirror modes: which true class bears which name (`canonical`).

Where the prior does not tell the classes apart, renaming the true classes leaves the density as it is, so that the
posterior has C! mirror modes, and chains that start at random end in any of them. The labelling of a draw is the
permutation s with the largest trace,

.. math:: \sum_j n_j \sum_t \Theta_{j\, s(t)\, t},

n_j being how much annotator j annotated: annotators taken together are right as often as possible. What is left is the
posterior under a prior that excludes all other labellings. A chain that stays in one mode is renamed as a whole by
this, and one that jumps between modes is put together again.

Nothing is renamed

* by less than rounding errors: the identity is preferred;
* where the prior tells the classes apart, as `Diagonal` does, or gold labels do: another name is another density there,
  and where most draws of a chain would be renamed a warning says so;
* of CAVI and EM, which start from vote shares, where every class has the name of its label, and never leave their mode.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np
from scipy.optimize import linear_sum_assignment

from consilience.arrays import Array, Float, Int
from consilience.errors import DiagnosticWarning, NotConjugate
from consilience.models.crowd.agreement import annotation_counts
from consilience.models.sites import Resolved

# Gains below this many times the spacing of floats are rounding errors of sums over annotators.
_ROUNDING = 100


def canonical(samples: Mapping[str, Array], resolved: Resolved) -> dict[str, Array]:
    """Rename the true classes of every draw so that annotators are right as often as possible.

    Parameters
    ----------
    samples : ``prevalence`` ``(chain, draw, class)`` and ``confusion`` ``(chain, draw, annotator, class, label)``.
    resolved : of the fit.
    """
    if "responsibility" in samples:  # of coordinate ascent and EM
        return dict(samples)
    data = resolved.data
    has_gold = resolved.settings.gold == "use" and np.any(np.asarray(data.gold) >= 0)
    prevalence, confusion = (np.asarray(samples[site]) for site in ("prevalence", "confusion"))
    agreement = np.einsum("cdjtl,j->cdtl", confusion, annotation_counts(data).astype(confusion.dtype))
    source = best_names(agreement.reshape(-1, *agreement.shape[2:])).reshape(prevalence.shape)
    if has_gold or not knows_no_class(resolved):
        _warn(source)
        return dict(samples)
    return {
        **samples,
        "prevalence": np.take_along_axis(prevalence, source, axis=2),
        "confusion": np.take_along_axis(confusion, source[:, :, None, :, None], axis=3),
    }


def knows_no_class(resolved: Resolved) -> bool:
    """Return whether the prior is known to stay as it is when the true classes are renamed."""
    try:
        prevalence, confusion = resolved.concentration("prevalence"), resolved.concentration("confusion")
    except NotConjugate:
        return False
    return bool(np.all(prevalence == prevalence[0]) and np.all(confusion == confusion[0]))


def _warn(source: Int[np.ndarray, "chain draw label"]) -> None:
    """Say that chains are in different modes, or all in another one, where renaming would change the density."""
    renamed = (source != np.arange(source.shape[-1])).any(axis=-1).mean(axis=1) > 0.5
    if renamed.any():
        warnings.warn(
            f"in {int(renamed.sum())} of {len(renamed)} chains annotators would be right more often if the classes had "
            "other names; the prior, or gold labels, tell the classes apart, so that none was renamed: look at the "
            "data, or start elsewhere",
            DiagnosticWarning, stacklevel=2,
        )  # fmt: skip


def best_names(agreement: Float[np.ndarray, "draw class label"]) -> Int[np.ndarray, "draw label"]:
    """Return which class is to have the name of each label: the largest sum, and the identity where it is as large."""
    num_draws, num_labels, _ = agreement.shape
    identity = np.arange(num_labels)
    source = np.tile(identity, (num_draws, 1))
    own = agreement[:, identity, identity].sum(axis=1)
    least = own + _ROUNDING * np.finfo(agreement.dtype).eps * agreement.sum(axis=(1, 2))
    # Where every class is called by its own name most often, no other names can be better.
    for draw in np.flatnonzero((agreement.argmax(axis=1) != identity).any(axis=1)):
        class_, label = linear_sum_assignment(agreement[draw], maximize=True)
        if agreement[draw, class_, label].sum() > least[draw]:
            source[draw, label] = class_
    return source
