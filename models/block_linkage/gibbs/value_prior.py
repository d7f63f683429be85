"""How unequal the values of a field are thought to be before any record, where the user does not say.

Names follow Zipf's law and months do not; one Dirichlet prior for both is wrong for one of them. With too small a
concentration a value that two records show is thought to be rarer than it is, they are linked less often for want of
another value, and over all pairs that costs entities: on simulated names about two of 1,500. The concentration of a
field is therefore that under which its values are most probable (empirical Bayes; Minka 2000, Estimating a Dirichlet
distribution). Links are not known then, and records of one entity count as several.
"""

from __future__ import annotations

import numpy as np
from scipy import optimize, special

from consilience.arrays import Float, Int

_SMALLEST, _LARGEST = 0.05, 100.0


def most_probable_concentration(
    value: Int[np.ndarray, "field record"], first_value: Int[np.ndarray, " field_and_one"]
) -> Float[np.ndarray, " value"]:
    """Return the concentration of the symmetric Dirichlet distribution of each field, repeated for its values.

    Parameters
    ----------
    value : codes within each field, -1 where missing.
    first_value : where the values of each field begin among those of all.

    Returns
    -------
    From .05 to 100, which is next to saying that all values are equally common.
    """
    num_values = np.diff(first_value)
    concentration = [
        _of_counts(np.bincount(codes[codes >= 0], minlength=number))
        for codes, number in zip(value, num_values, strict=True)
    ]
    return np.repeat(concentration, num_values)


def _of_counts(number: Int[np.ndarray, " value"]) -> float:
    """Return the concentration under which a Dirichlet-multinomial distribution makes counts most probable."""
    if not number.any():
        return 1.0  # nothing is shown, and nothing is asked
    times, values = np.unique(number, return_counts=True)  # many values are as common as others

    def loss(log_concentration: float) -> float:
        each = np.exp(log_concentration)
        total = each * len(number)
        of_values = values @ (special.gammaln(times + each) - special.gammaln(each))
        return float(special.gammaln(total + number.sum()) - special.gammaln(total) - of_values)

    return float(np.exp(optimize.minimize_scalar(loss, bounds=np.log([_SMALLEST, _LARGEST]), method="bounded").x))
