r"""Parallel tempering, whatever the model: swaps, the ladder, log evidence, round trips.

Replicas of one state stand on rungs :math:`1 = b_0 > b_1 > \ldots > b_{T-1}`; that of rung t targets the prior times
:math:`\exp(b_t L)`, where L is the log likelihood, or any part of the log density that is to be let off. All functions
are of NumPy arrays whose first axis is the rung (after the draw, of a history), with any further axes of ladders that
know nothing of each other, such as ladders of several documents.

References
----------
Geyer (1991), Markov chain Monte Carlo maximum likelihood. Syed, Bouchard-Côté, Deligiannidis & Doucet (2022),
Non-reversible parallel tempering, JRSS B 84, for the ladder. Xie, Lewis, Fan, Kuo & Chen (2011), Improving marginal
likelihood estimation for Bayesian phylogenetic model selection, Systematic Biology 60, for stepping stones.
"""

from __future__ import annotations

import numpy as np

from consilience.arrays import Float, Int

FIRST_RUNGS, MOST_RUNGS = 12, 32
"""Of a ladder that adapts."""

_LEAST_RATE = 0.15
_LEAST_REJECTION = 1e-3  # so that rungs between which every swap is taken stay apart


def geometric_ladder(rungs: int, least: float = 0.03, last: float = 0.0) -> Float[np.ndarray, " rung"]:
    """Return exponents from 1 down to ``least`` in equal ratios, and the last one.

    Parameters
    ----------
    rungs : how many exponents; one is no tempering.
    least : of the exponents in equal ratios.
    last : of the last rung; 0 is the prior.

    Examples
    --------
    >>> geometric_ladder(4, 0.25)
    array([1.  , 0.5 , 0.25, 0.  ])
    """
    return np.ones(1) if rungs == 1 else np.append(np.geomspace(1.0, least, rungs - 1), last)


def swapped(
    uniform: Float[np.ndarray, "step ..."], exponent: Float[np.ndarray, "rung ..."],
    log_likelihood: Float[np.ndarray, "rung ..."],
) -> tuple[Int[np.ndarray, "rung ..."], Float[np.ndarray, "step ..."]]:  # fmt: skip
    """Offer the states of rungs t and t + 1 to each other, for t = 0, 1, … in turn.

    Parameters
    ----------
    uniform : random numbers in [0, 1), one for each pair of neighbours.
    exponent : of the rungs, falling; of the shape of the log likelihood, or ``(rung,)``.
    log_likelihood : of the state on each rung.

    Returns
    -------
    the rung on which the state that is now on each rung stood before, and the probability with which each pair was
    swapped.
    """
    exponent = _like(exponent, log_likelihood)
    # What comes down the ladder stands on a rung when it is offered to the next one.
    step, value = exponent[:-1] - exponent[1:], np.asarray(log_likelihood, float)
    order, probability = np.empty(value.shape, int), np.empty((len(value) - 1, *value.shape[1:]))
    carried, place = value[0], np.zeros(value.shape[1:], int)
    for rung in range(len(value) - 1):
        probability[rung] = np.exp(np.minimum(step[rung] * (value[rung + 1] - carried), 0.0))
        taken = uniform[rung] < probability[rung]
        order[rung], place = np.where(taken, rung + 1, place), np.where(taken, place, rung + 1)
        carried = np.where(taken, carried, value[rung + 1])
    order[-1] = place
    return order, probability


def rungs_wanted(swap_rate: Float[np.ndarray, "step ..."], most: int = MOST_RUNGS) -> int:
    """Return with how many rungs the lowest rate would be .15 or more, were all rates of a ladder equal.

    Never fewer than there are, nor more than half as many again: rates near zero tell little of how far rungs are
    apart.
    """
    rungs = len(swap_rate) + 1
    if rungs == 1 or np.min(swap_rate) >= _LEAST_RATE:
        return rungs
    needed = np.max(np.sum(1 - swap_rate, axis=0)) / (1 - _LEAST_RATE)
    return int(min(most, max(rungs, min(np.ceil(needed) + 1, rungs * 1.5))))


def adapted(
    exponent: Float[np.ndarray, "rung ..."], swap_rate: Float[np.ndarray, "step ..."], rungs: int | None = None
) -> Float[np.ndarray, "rung ..."]:
    """Return exponents between whose neighbours as many swaps would be refused: equal rates for all.

    The cumulative rejection rate, taken to be linear between rungs, is cut in equal parts (Syed et al. 2022, section
    5.1). The first and the last exponent stay.

    Parameters
    ----------
    exponent : of the rungs, falling.
    swap_rate : mean probability of swaps of neighbours.
    rungs : how many exponents to return; as many as there are by default.

    Examples
    --------
    >>> adapted(np.array([1.0, 0.5, 0.0]), np.array([0.1, 0.7])).round(3)
    array([1.   , 0.667, 0.   ])
    """
    rungs = len(exponent) if rungs is None else rungs
    if len(exponent) == 1:
        return exponent
    exponent = np.broadcast_to(_like(exponent, swap_rate), (len(exponent), *np.shape(swap_rate)[1:]))
    refused = np.cumsum(np.maximum(1 - swap_rate, _LEAST_REJECTION), axis=0)
    refused = np.concatenate([np.zeros_like(refused[:1]), refused])
    found = np.empty((rungs, *exponent.shape[1:]))
    for place in np.ndindex(exponent.shape[1:]):
        of_one = (slice(None), *place)
        total = refused[of_one]
        found[of_one] = np.interp(np.linspace(0, total[-1], rungs), total, exponent[of_one])
    found[0], found[-1] = exponent[0], exponent[-1]
    return found


def stepping_stones(
    exponent: Float[np.ndarray, "rung ..."], log_likelihood: Float[np.ndarray, "draw rung ..."], batches: int = 20
) -> tuple[Float[np.ndarray, " ..."], Float[np.ndarray, " ..."]]:
    r"""Return the log evidence relative to the last rung, and its standard error.

    :math:`\sum_t \log \mathrm{mean}_s \exp((b_t - b_{t+1}) L_{s,t+1})` (Xie et al. 2011); where the last exponent is 0
    this is the log evidence. What a draw adds to the logarithm of a mean is to first order its share of the mean. Sums
    of that over the rungs, which swaps make dependent, are averaged in batches of successive draws, and the error is
    that of the batches.

    Parameters
    ----------
    exponent : of the rungs, falling.
    log_likelihood : of the state of each rung, draw after draw, by one ladder.
    batches : how many, of equal length; draws that are left over are in none.
    """
    step = -np.diff(_like(exponent, log_likelihood[0]), axis=0)
    logs = step * log_likelihood[:, 1:]
    most = logs.max(axis=0)
    share = np.exp(logs - most)
    mean = share.mean(axis=0)
    value = (most + np.log(mean)).sum(axis=0)
    return value, batch_error((share / mean).sum(axis=1), batches)


def batch_error(values: Float[np.ndarray, "draw ..."], batches: int = 20) -> Float[np.ndarray, " ..."]:
    """Return the standard error of a mean over successive draws, from batches of these; infinite where they are fewer.

    Parameters
    ----------
    values : of the draws.
    batches : how many, of equal length; draws that are left over are in none.

    Examples
    --------
    >>> float(batch_error(np.arange(100.0)).round(2))
    6.61
    """
    length = len(values) // batches
    if not length:
        return np.full(values.shape[1:], np.inf)
    batch = values[: length * batches].reshape(batches, length, *values.shape[1:]).mean(axis=1)
    return np.asarray(batch.std(axis=0, ddof=1) / np.sqrt(batches))


def round_trips(replica: Int[np.ndarray, "draw rung ..."]) -> Int[np.ndarray, " ..."]:
    """Count how often a replica went from the first rung to the last one and back.

    Parameters
    ----------
    replica : which replica stood on each rung, draw after draw.

    Examples
    --------
    >>> int(round_trips(np.array([[0, 1], [1, 0], [0, 1], [1, 0]])))
    2
    """
    further = replica.shape[2:]
    if replica.shape[1] < 2:
        return np.zeros(further, int)
    at_first, at_last = 1, 2
    last_end, trips = np.zeros(replica.shape[1:], int), np.zeros(further, int)
    for now in replica:
        first, last = now[:1], now[-1:]
        trips += (np.take_along_axis(last_end, first, axis=0) == at_last)[0]
        np.put_along_axis(last_end, first, at_first, axis=0)
        # What never was on the first rung goes from the last one to it in half a trip.
        begun = np.take_along_axis(last_end, last, axis=0)
        np.put_along_axis(last_end, last, np.where(begun > 0, at_last, 0), axis=0)
    return trips


def _like(values: np.ndarray, array: np.ndarray) -> np.ndarray:
    """Return values of the first axis with as many axes as an array has."""
    values = np.asarray(values)
    return values.reshape(*values.shape, *(1,) * (np.ndim(array) - values.ndim))
