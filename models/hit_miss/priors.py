r"""What hit-miss believes before any record: how values and distortions are spread, and which partitions are likely.

Three priors of the partition of N records into k entities:

- "labels", that of the paper: every record has one of N labels, and all labellings are as likely. Of a partition these
  are N! / (N - k)!, in proportion to 1 / (N - k)!, where N - k is the number of *links*: a chain of three records has
  two. So another link is the less likely the more there are, whichever records it joins.
- "partitions": every partition is as likely.
- "entities": a Poisson number m of entities whose sizes have the shares μ, both unknown,

  .. math:: p(\Pi, N) = \frac{e^{-m}}{N!} \prod_C m\, |C|!\, \mu_{|C|} .

The last is a product over clusters, and so is "partitions", which is m = 1 and μ_s = 1 / s! but for a constant. That is
how both are enumerated, and "labels" too: what couples its components is the number of links alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from consilience.arrays import Float
from consilience.models.block_linkage import priors as of_linkage
from consilience.models.block_linkage.priors import Hyperprior, check_concentration
from consilience.models.sites import Resolved

PARTITION_PRIORS = ("labels", "partitions", "entities")
"""Of the partition; see the module."""


@dataclass(frozen=True, kw_only=True)
class Priors(of_linkage.Priors):
    """Priors of the hyperparameters.

    Parameters
    ----------
    distortion : b, of how often a field of a record is distorted; Beta(1, 9) by default. Batch shape ``()``, or
        ``(field,)`` for a prior per field.
    value_share : concentration of a symmetric Dirichlet distribution of the values of each field; 1 by default.
    size_share, intensity : μ and m, where the prior of the partition is "entities"; see
        `consilience.models.block_linkage.Priors`.

    Raises
    ------
    InvalidPrior : the concentration is no positive number.
    """

    value_share: Any = 1.0

    def __post_init__(self) -> None:
        check_concentration(self.value_share)


def equal_sizes(largest: int) -> Float[np.ndarray, " size"]:
    """Return the μ under which, with m = 1, every partition into clusters of up to so many records is as likely.

    A cluster of s records has the weight m s! μ_s: c^s for μ_s = c^s / s!, and every partition of N records c^N. Any c
    would do; with this one, that of Stirling's formula, single precision holds all of them.
    """
    size = np.arange(1, largest + 1)
    return np.asarray(np.cumprod(max(1.0, largest / np.e) / size))


def hyperpriors(resolved: Resolved) -> Hyperprior:
    """Return the parameters of the conjugate priors; where the partition has none, those of sizes are neutral.

    Raises
    ------
    NotConjugate : a prior that is used is not a Beta, a Dirichlet or a Gamma distribution.
    """
    if resolved.settings.prior == "entities":
        return Hyperprior.of(resolved)
    used = Priors(distortion=resolved.given.distortion, value_share=resolved.given.value_share)
    return Hyperprior.of(resolved.replace(given=used))
