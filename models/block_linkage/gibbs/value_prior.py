"""How unequal the values of a field are thought to be before any record, where the user does not say.

Names follow Zipf's law and months do not; one Dirichlet prior for both is wrong for one of them. With too small a
concentration a value that two records show is thought to be rarer than it is, they are linked less often for want of
another value, and over all pairs that costs entities: on simulated names about two of 1,500. The concentration of a
field is therefore that under which its values are most probable (empirical Bayes; Minka 2000, Estimating a Dirichlet
distribution). Links are not known then, and records of one entity count as several.
"""

from __future__ import annotations

import numpy as np

from consilience.arrays import Float, Int
from consilience.models.concentration import concentration_of

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
        concentration_of(np.bincount(codes[codes >= 0], minlength=number), _SMALLEST, _LARGEST)
        for codes, number in zip(value, num_values, strict=True)
    ]
    return np.repeat(concentration, num_values)
