r"""Mirror modes of the mention-pair model, and which of them is meant.

Let true and false of one class exchange their names: :math:`\varphi \to 1 - \varphi`, :math:`\pi \to 1 - \pi`,
:math:`\alpha \to 1 - \beta`, :math:`\beta \to 1 - \alpha`. The likelihood stays as it is, and so does the prior where
it is the same from both sides, as the uniform one is. K classes then have :math:`2^K` modes of equal height. The one
that is meant has annotators who are better than chance: on the average over all decisions, Youden's index
:math:`\alpha + \beta - 1` is positive. Single annotators with a negative one are informative, and stay as they are.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from consilience.errors import DiagnosticWarning
from consilience.models.mpa.candidates import candidates_of, labelled
from consilience.models.mpa.priors import beta_mean, is_symmetric
from consilience.models.sites import Resolved


def canonical(samples: Mapping[str, np.ndarray], resolved: Resolved) -> dict[str, np.ndarray]:
    """Exchange true and false of each class whose annotators would be worse than chance, draw by draw.

    A class whose prior, or gold labels, tell true from false is left as it is, and named in a warning.

    Parameters
    ----------
    samples : draws of the model's sites ``(chain, draw, …)``, or of coordinate ascent its `Factors` with the same two
        leading axes.
    resolved : what was fitted.
    """
    data, settings, size = resolved.data, resolved.settings, resolved.size("class")
    found = candidates_of(data, settings.candidates, settings.gold)
    number = np.zeros((data.num_annotators, size))
    number[:, found.tables.classes] = found.tables.yes + found.tables.no
    own_axis = "log_odds" in samples
    mean = {site: beta_mean(samples[site]) if own_axis else samples[site] for site in ("sensitivity", "specificity")}
    worse = np.einsum("...jh,jh->...h", mean["sensitivity"] + mean["specificity"] - 1, number) < 0
    symmetric = is_symmetric(resolved)
    symmetric[found.tables.classes[found.tables.pair_class[found.tables.known != 0]]] = False
    _warn(worse, symmetric, labelled(data).classes)
    flip = worse & symmetric
    if not flip.any():
        return dict(samples)
    if own_axis:
        flipped = {site: values[..., ::-1] for site, values in samples.items() if site != "log_odds"}
        of_pair = flip[..., found.tables.classes][..., found.tables.pair_class]
        odds = np.where(of_pair, -samples["log_odds"], samples["log_odds"])
        learned = {
            site: np.where(flip[..., None], flipped[other], samples[site])
            for site, other in (("sensitivity_prior", "specificity_prior"), ("specificity_prior", "sensitivity_prior"))
        }
        return {**_exchange(samples, flipped, flip[..., None]), "log_odds": odds, **learned}
    return _exchange(samples, {site: 1 - values for site, values in samples.items()}, flip)


def _exchange(
    samples: Mapping[str, np.ndarray], flipped: Mapping[str, np.ndarray], flip: np.ndarray
) -> dict[str, np.ndarray]:
    """Take the complement of the prevalence, and of each profile the complement of the other one."""
    of_annotators = np.expand_dims(flip, 2)
    return {
        "prevalence": np.where(flip, flipped["prevalence"], samples["prevalence"]),
        "sensitivity": np.where(of_annotators, flipped["specificity"], samples["sensitivity"]),
        "specificity": np.where(of_annotators, flipped["sensitivity"], samples["specificity"]),
    }


def _warn(worse: np.ndarray, symmetric: np.ndarray, names: Any) -> None:
    """Name the classes whose annotators are worse than chance in most draws of some chain."""
    mostly = worse.mean(axis=1).max(axis=0) > 0.5
    if (mostly & symmetric).any():
        listed = ", ".join(str(name) for name in names[mostly & symmetric])
        warnings.warn(
            f"annotators came out worse than chance at {listed}: true and false were exchanged there, which the prior "
            "allows, and the result is what it is after that; look at whether it makes sense",
            DiagnosticWarning, stacklevel=2,
        )  # fmt: skip
    if (mostly & ~symmetric).any():
        listed = ", ".join(str(name) for name in names[mostly & ~symmetric])
        warnings.warn(
            f"annotators are worse than chance at {listed}; the prior or gold labels tell true from false, so that "
            "they were not exchanged: look at the data, or start elsewhere",
            DiagnosticWarning, stacklevel=2,
        )  # fmt: skip
