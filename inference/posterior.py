"""Draws as users know them: ArviZ objects, a table of summaries, and what is poor about them in words.

This is the only file that knows ArviZ, and the only one that knows its two lines apart: an ``InferenceData`` before
version 1, an ``xarray.DataTree`` since. They share the way to index, ``tree["posterior"]["theta"]``.
"""

from __future__ import annotations

import importlib.metadata
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import ArrayLike

from consilience.errors import TooLarge, UnsupportedRequest
from consilience.inference.generic import GenericRun
from consilience.inference.limits import MOST_NUMBERS
from consilience.inference.pareto import pareto_shape
from consilience.inference.results import Result
from consilience.models import diagnostics
from consilience.models.interface import Model
from consilience.models.sites import Resolved
from consilience.notes import Level, Note, Remedy

_FEWEST_WEIGHTS = 25
MOST_R_HAT, LEAST_ESS = 1.01, 400
"""What Vehtari et al. (2021) ask of draws; beyond them a fit says so."""

POOR_R_HAT, POOR_ESS = 1.05, 100
"""Beyond these a fit is poor."""

# Of 400 independent draws 7 % (two chains) to 11 % (four) of quantities have an R-hat above 1.01, of 800 under 1 %, and
# of 100 more than a third, so that it tells nothing. A larger share than this is no chance.
_FEW = 1 / 8

_MOST_LOOKED_AT = 1000

MOST_K_HAT = 0.7
"""Beyond this an approximation cannot stand in for the posterior (Vehtari et al. 2024)."""


def to_arviz(
    groups: Mapping[str, Mapping[str, ArrayLike]],
    *,
    dims: Mapping[str, Sequence[str]] | None = None,
    coords: Mapping[str, ArrayLike] | None = None,
    attrs: Mapping[str, Any] | None = None,
) -> Any:
    """Build an ArviZ object of the installed line.

    Parameters
    ----------
    groups : by group (``posterior``, ``sample_stats``) the arrays by name, shape ``(chain, draw, ...)``.
    dims : by array, the names of the dimensions after chain and draw. A dimension without a name gets ArviZ's,
        ``{array}_dim_{i}``.
    coords : by dimension, the user's ids; a dimension without them is numbered.
    attrs : what was run, set on the root. What NetCDF cannot hold is set as text.

    Returns
    -------
    an ``arviz.InferenceData`` before ArviZ 1, an ``xarray.DataTree`` since.
    """
    tree = _tree({group: _dataset(arrays, dims or {}, coords or {}) for group, arrays in groups.items()})
    tree.attrs = {name: _attribute(value) for name, value in (attrs or {}).items()}
    return tree


def named_dims(
    member: Model, samples: Mapping[str, np.ndarray], coords: Mapping[str, Any]
) -> dict[str, tuple[str, ...]]:
    """Return the dimensions that have names: a site whose shape the member did not foresee keeps ArviZ's names."""
    dims, sizes = member.sites.dims, {name: len(ids) for name, ids in coords.items()}

    def foreseen(names: tuple[str, ...], shape: tuple[int, ...]) -> bool:
        return len(names) == len(shape) and tuple(map(sizes.get, names, shape)) == shape

    shapes = {site: values.shape[2:] for site, values in samples.items() if site in dims}
    return {site: dims[site] for site, shape in shapes.items() if foreseen(dims[site], shape)}


def item_log_likelihoods(member: Model, resolved: Resolved, samples: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the log probability of each item's data in each draw, ``(chain, draw, item)``.

    Raises
    ------
    TooLarge : so many numbers would not fit.
    UnsupportedRequest : the member knows no log likelihood of one item.
    """
    evaluate = None if member.simulation is None else member.simulation.log_likelihood
    if evaluate is None:
        raise UnsupportedRequest(f"'{member.name}' knows no log likelihood of one item")
    shape = next(iter(samples.values())).shape[:2]
    number = math.prod(shape) * resolved.size("item")
    if number > MOST_NUMBERS:
        raise TooLarge(f"log likelihoods of all items and draws would be {number:,} numbers; keep fewer draws")
    draws = {site: values.reshape(-1, *values.shape[2:]) for site, values in samples.items()}
    found = jax.jit(lambda draws: jax.lax.map(lambda one: evaluate(one, resolved), draws))(draws)
    return np.asarray(found).reshape(*shape, -1)


def summarise(
    samples: Mapping[str, ArrayLike],
    *,
    dims: Mapping[str, Sequence[str]] | None = None,
    coords: Mapping[str, ArrayLike] | None = None,
    interval: float = 0.95,
) -> Any:
    """Summarise draws, one row for each scalar quantity.

    Parameters
    ----------
    samples : draws by name, shape ``(chain, draw, ...)``.
    dims, coords : as for `to_arviz`; they name the rows, as in ``mean[item=a]``.
    interval : probability of the equal-tailed interval.

    Returns
    -------
    ``pandas.DataFrame`` with columns ``quantity, mean, sd, lower, upper, r_hat, ess_bulk, ess_tail, mcse``. R-hat is
    NaN for one chain: nothing can be said about the agreement of chains.

    Notes
    -----
    R-hat, the effective sample sizes and the Monte Carlo error of the mean are those of Vehtari et al. (2021), equal to
    ArviZ's; see `consilience.models.diagnostics`.
    """
    import pandas

    tables = [
        pandas.DataFrame(
            {"quantity": list(map(str, _quantities(name, np.shape(values)[2:], (dims or {}).get(name), coords or {})))}
            | _statistics(np.asarray(values), interval)
        )
        for name, values in samples.items()
    ]
    columns = ["quantity", "mean", "sd", "lower", "upper", "r_hat", "ess_bulk", "ess_tail", "mcse"]
    return pandas.concat(tables, ignore_index=True) if tables else pandas.DataFrame(columns=columns)


def k_hat(log_weights: ArrayLike) -> float:
    """Return the Pareto shape of importance weights: above 0.7, the proposal cannot stand in for the target.

    Parameters
    ----------
    log_weights : log of target density over proposal density, one a draw, any shape.

    Returns
    -------
    the shape; infinite where a weight is; NaN for fewer than 25 draws, whose tail cannot be fitted; 0 for weights
    that are all equal, which have no tail.

    References
    ----------
    Vehtari, Simpson, Gelman, Yao & Gabry (2024), Pareto Smoothed Importance Sampling, JMLR 25.
    """
    weights = np.array(log_weights, np.float64).ravel()
    if np.isnan(weights).any() or np.isposinf(weights).any():
        return float("inf")
    if len(weights) < _FEWEST_WEIGHTS:
        return float("nan")
    if np.ptp(weights) == 0:
        return 0.0
    # A draw of density zero has weight zero; any very small weight says the same, and arithmetic survives it.
    weights = np.maximum(weights - weights.max(), -1e6)
    return pareto_shape(weights)


class Worst(NamedTuple):
    """The worst diagnostics of draws, of the quantities that look worst.

    Parameters
    ----------
    number, looked_at : how many quantities there are, and of how many the diagnostics were computed.
    draws : how many there are, of all chains.
    r_hat, disagreeing, where : the largest R-hat, how many have one above 1.01, and which quantity has the largest; NaN
        of one chain.
    size, short, fewest : the smallest effective sample size, of the bulk or the tails, how many have fewer than 400
        effective draws, and which quantity has the fewest; NaN of too few draws.
    """

    number: int
    looked_at: int
    draws: int
    r_hat: float
    disagreeing: int
    where: Quantity
    size: float
    short: int
    fewest: Quantity

    @property
    def quantities(self) -> str:
        """Of what the numbers are, in words."""
        if self.looked_at == self.number:
            return f"{self.number} quantities"
        return f"{self.looked_at:,} quantities, of {self.number:,} the worst by a first look"


def worst_diagnostics(
    samples: Mapping[str, ArrayLike],
    *,
    dims: Mapping[str, Sequence[str]] | None = None,
    coords: Mapping[str, ArrayLike] | None = None,
) -> Worst | None:
    """Return the worst diagnostics of draws.

    Parameters
    ----------
    samples, dims, coords : as for `summarise`.

    Returns
    -------
    those of the 1,000 quantities that look worst by `consilience.models.diagnostics.first_look`: half of them by R-hat,
    half by effective sample size; None where there is no quantity.
    """
    draws = {name: np.asarray(values) for name, values in samples.items()}
    flat = {name: values.reshape(*values.shape[:2], -1) for name, values in draws.items() if values.size}
    ends = np.cumsum([0, *(values.shape[2] for values in flat.values())])
    number = int(ends[-1])
    if not number:
        return None
    chosen = np.arange(number)
    if number > _MOST_LOOKED_AT:
        r_hat, size = (np.concatenate(parts) for parts in zip(*map(diagnostics.first_look, flat.values()), strict=True))
        # Places in both orders: what is among the worst in either is looked at. NaN is last.
        places = [np.argsort(np.argsort(values, kind="stable")) for values in (-r_hat, size)]
        chosen = np.sort(np.argsort(np.minimum(*places), kind="stable")[:_MOST_LOOKED_AT])
    parts = [
        diagnostics.convergence(values[:, :, chosen[(chosen >= first) & (chosen < end)] - first])
        for values, first, end in zip(flat.values(), ends, ends[1:], strict=False)
    ]
    r_hat = np.concatenate([part.r_hat for part in parts])
    size = np.concatenate([np.minimum(part.ess_bulk, part.ess_tail) for part in parts])

    def name_of(place: int) -> Quantity:
        site = int(np.searchsorted(ends, chosen[place], side="right")) - 1
        name = list(flat)[site]
        names = _quantities(name, draws[name].shape[2:], (dims or {}).get(name), coords or {})
        return next(itertools.islice(names, chosen[place] - ends[site], None))

    largest, fewest = (int(np.argmax(np.nan_to_num(values, nan=-np.inf))) for values in (r_hat, -size))
    return Worst(
        number, len(chosen), max(int(np.prod(values.shape[:2])) for values in flat.values()),
        float(r_hat[largest]), int((r_hat > MOST_R_HAT).sum()), name_of(largest),
        float(size[fewest]), int((size < LEAST_ESS).sum()), name_of(fewest),
    )  # fmt: skip


def poor_diagnostics(worst: Worst | None, run: GenericRun | None = None, *, least: float = POOR_ESS) -> list[Note]:
    """Say in plain words what is poor about a fit, and what is not as good as it could be.

    Parameters
    ----------
    worst : of the draws; ``None`` of a posterior without draws.
    run : the run behind it; ``None`` for draws from a closed form.
    least : with fewer effective draws a fit is poor.

    Returns
    -------
    one error a problem; a note where R-hat is at most 1.05, or effective draws are ``least`` or more; of such R-hats a
    warning where more quantities have them than by chance; empty when there is none.
    """
    if worst is None:
        return _ending(run)
    texts = [*_divergences(run), *_single_chain(run), *_too_few_draws(run), *_far_guide(run)]
    return [*_ending(run), *(Note(Level.error, text) for text in texts), *_of_draws(worst, least)]


def _of_draws(worst: Worst, least: float) -> list[Note]:
    notes = []
    if worst.disagreeing:
        many = worst.draws >= LEAST_ESS and worst.disagreeing > max(1, _FEW * worst.looked_at)
        level = Level.error if worst.r_hat > POOR_R_HAT else Level.warning if many else Level.note
        digits = next((digits for digits in (2, 3, 4) if round(worst.r_hat, digits) > MOST_R_HAT), 5)
        little = " a little" if level is Level.note else ""
        text = (
            f"the runs of the sampler differ{little}: R-hat, 1 where they agree, is above {MOST_R_HAT} "
            f"for {worst.disagreeing} of {worst.quantities} (worst: {worst.where.words}, "
            f"{worst.r_hat:.{digits}f}); run longer"
        )
        notes.append(Note(level, f"{text}, or look for several modes" if level is Level.error else text))
    if worst.short:
        text = (
            f"few effective draws: fewer than {LEAST_ESS} for {worst.short} of {worst.quantities} (fewest: "
            f"{worst.fewest.words}, {int(worst.size)}); ask for more draws"
        )
        notes.append(Note(Level.error if worst.size < least else Level.note, text))
    return notes


def _ending(run: GenericRun | None) -> list[Note]:
    if run is None or run.result is Result.converged:
        return []
    if run.result is Result.max_steps:
        unsettled = f"the objective had not settled after {run.steps} steps; ask for more with {{max_steps}}"
        return [] if run.elbo is None else [Note(Level.error, unsettled, (Remedy("max_steps"),))]
    return [Note(Level.error, run.message)]


def _divergences(run: GenericRun | None) -> list[str]:
    count = 0 if run is None else int(np.sum(run.stats.get("diverging", 0)))
    if not count:
        return []
    return [
        f"{count} transitions diverged: parts of the posterior were not reached; "
        "raise target_accept, or change how the model is parameterised"
    ]


def _single_chain(run: GenericRun | None) -> list[str]:
    """R-hat needs chains to compare; what has a guide or an objective is no chain."""
    if run is None or run.elbo is not None or {len(draws) for draws in run.samples.values()} != {1}:
        return []
    return ["one chain alone cannot show whether it found all of the posterior, and has no R-hat; ask for several"]


def _too_few_draws(run: GenericRun | None) -> list[str]:
    if run is None or run.elbo is not None or not run.samples:
        return []
    fewest = min(draws.shape[1] for draws in run.samples.values())
    return [f"{fewest} draws a chain are too few for any diagnostics; ask for more"] if 0 < fewest < 4 else []


def _far_guide(run: GenericRun | None) -> list[str]:
    if run is None or run.k_hat is None or run.k_hat <= MOST_K_HAT:
        return []
    if np.isnan(run.k_hat):
        return [f"k-hat needs at least {_FEWEST_WEIGHTS} draws: how far the approximation is off is not known"]
    return [
        f"the variational approximation is far from the posterior: k-hat is {run.k_hat:.2f}, above {MOST_K_HAT}; "
        "do not trust its intervals, use a sampler"
    ]


def approximation_notes(k_hat: float | None, sampler: str) -> list[Note]:
    """Say in words what a k-hat of coordinate ascent means, where it is large.

    Independent factors for many annotators always have a large one: that is no fault of the run, and so none of
    `poor_diagnostics`.

    Parameters
    ----------
    k_hat : None where it was not computed.
    sampler : the method that samples the same model.
    """
    if k_hat is None or not k_hat > MOST_K_HAT:
        return []
    text = (
        f"k-hat is {k_hat:.2f}, above {MOST_K_HAT}: the intervals of the parameters are those of an approximation by "
        "independent factors; {method} samples the same model"
    )
    return [Note(Level.note, text, (Remedy("method", sampler),))]


def _arviz_major() -> int:
    return int(importlib.metadata.version("arviz").split(".")[0])


def _tree(datasets: Mapping[str, Any]) -> Any:
    if _arviz_major() == 0:
        from arviz import InferenceData

        return InferenceData(**datasets)
    from xarray import DataTree

    return DataTree.from_dict(dict(datasets))


def _dataset(
    arrays: Mapping[str, ArrayLike], dims: Mapping[str, Sequence[str]], coords: Mapping[str, ArrayLike]
) -> Any:
    import xarray

    variables = {
        name: (("chain", "draw", *_dims(name, np.ndim(values) - 2, dims.get(name))), np.asarray(values))
        for name, values in arrays.items()
    }
    sizes = {dim: size for names, values in variables.values() for dim, size in zip(names, values.shape, strict=True)}
    known = {dim: np.asarray(coords[dim]) if dim in coords else np.arange(size) for dim, size in sizes.items()}
    return xarray.Dataset(variables, known)


def _dims(name: str, number: int, given: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(given) if given is not None else tuple(f"{name}_dim_{i}" for i in range(number))


def _attribute(value: Any) -> Any:
    return value if isinstance(value, (str, int, float, np.ndarray)) and not isinstance(value, bool) else str(value)


class Quantity(NamedTuple):
    """A scalar of a site.

    Parameters
    ----------
    name : of the site.
    place : by dimension, which may have no name, the id of the scalar.
    """

    name: str
    place: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        """Write it as tables do, such as ``accuracy[annotator=ana]``."""
        place = ", ".join(f"{dim}={one}" if dim else one for dim, one in self.place)
        return f"{self.name}[{place}]" if place else self.name

    @property
    def words(self) -> str:
        """It for a reader, such as ``accuracy of annotator ana``; an entry is known by its id alone."""
        if self.name == "together":  # of pairs that have no ids
            return "whether a pair in most doubt is together"
        name = re.sub("^num_", "number of ", self.name).replace("_", " ")
        named = ((dim.replace("_", " "), one) for dim, one in self.place)
        place = ", ".join(f"{dim} {one}" if dim not in ("", "entry") else one for dim, one in named)
        return f"{name} of {place}" if place else name


def _quantities(
    name: str, shape: tuple[int, ...], dims: Sequence[str] | None, coords: Mapping[str, ArrayLike]
) -> Iterator[Quantity]:
    named = dims if dims is not None else [""] * len(shape)
    ids = [np.asarray(coords.get(dim, np.arange(size))).tolist() for dim, size in zip(named, shape, strict=True)]
    return (Quantity(name, tuple(zip(named, map(str, place), strict=True))) for place in itertools.product(*ids))


def _statistics(draws: np.ndarray, interval: float) -> dict[str, np.ndarray]:
    tail = (1 - interval) / 2
    usable = draws.shape[0] * draws.shape[1] > 1 and draws.size > 0
    nothing = np.full(draws.shape[2:], np.nan)
    checked = diagnostics.convergence(draws)
    lower, upper = np.quantile(draws, (tail, 1 - tail), axis=(0, 1)) if usable else (nothing, nothing)
    columns = {
        "mean": draws.mean(axis=(0, 1), dtype=np.float64) if draws.size else nothing,
        "sd": draws.std(axis=(0, 1), ddof=1, dtype=np.float64) if usable else nothing,
        "lower": lower,
        "upper": upper,
        "r_hat": checked.r_hat,
        "ess_bulk": checked.ess_bulk,
        "ess_tail": checked.ess_tail,
        "mcse": checked.mcse_mean,
    }
    return {name: np.asarray(values, np.float64).ravel() for name, values in columns.items()}
