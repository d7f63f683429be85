"""What inference ends with: distributions in closed form, draws, or an estimate. Members ask it and never ask which.

| form | is | of |
|---|---|---|
| `Closed` | independent distributions of the sites | exact posteriors and coordinate ascent |
| `Draws` | stored draws, by chain | Gibbs sampling, NUTS, SVI |
| `Estimate` | one value of each site | EM and point estimates |

Each has ``hidden``: probabilities of discrete latent variables that inference ended with, and what else belongs to the
outcome and is no site. The attribute of a site gives the parameters of its distribution, its draws of all chains, or
its value; that of a hidden quantity gives it.

Each form says what a file holds of it: ``stored`` arrays, and a ``text`` with the names and classes of what they make.
Nothing that a file holds is executed.
"""

from __future__ import annotations

import dataclasses
import importlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, NamedTuple

import jax
import numpy as np
import numpyro.distributions as dist
from scipy import special

from consilience.arrays import Array, Float, Key
from consilience.errors import UnsupportedRequest
from consilience.models.intervals import LEVEL, ends

Quantity = str | Callable[[Mapping[str, Any]], Any]

PARAMETERS: dict[type, tuple[str, ...]] = {
    dist.Dirichlet: ("concentration",),
    dist.Beta: ("concentration1", "concentration0"),
    dist.Gamma: ("concentration", "rate"),
    dist.Normal: ("loc", "scale"),
}
"""Parameters of the distributions of NumPyro that hand-derived updates know, in the order of their last axis."""

OWN = "consilience.models."
"""Where the classes of records in a file may come from."""

_AXES = re.compile(r"""["']([^"']*)["']""")


class Interval(NamedTuple):
    """Mean, standard deviation and the central interval of a quantity; all have its shape, float64.

    Those of an estimate are NaN but for the mean.
    """

    mean: Float[np.ndarray, "*shape"]
    sd: Float[np.ndarray, "*shape"]
    lower: Float[np.ndarray, "*shape"]
    upper: Float[np.ndarray, "*shape"]

    def columns(self) -> dict[str, np.ndarray]:
        """Return ``mean, lower, upper`` as columns of a table."""
        return {"mean": self.mean, "lower": self.lower, "upper": self.upper}


class Factor(ABC):
    """A distribution in closed form that NumPyro does not have; a frozen record of its parameters.

    Such as Dirichlet distributions of different lengths, or one of several sites together.
    """

    @abstractmethod
    def sample(self, key: Key, shape: tuple[int, ...]) -> Any:
        """Return draws ``(*shape, …)``, made by JAX."""

    @abstractmethod
    def summary(self, level: float) -> Any:
        """Return the `Interval` of each number; of several sites together, a dict of them."""

    def value(self, site: str) -> Any:
        """Return what the attribute of a site gives; the record itself where nothing else is said."""
        return self


class Posterior(ABC):
    """Base of the three forms.

    Attributes
    ----------
    form : which of the three.
    hidden : by name, what belongs to the outcome and is no site.
    num_chains : of stored draws; 1 of the others.
    """

    form: ClassVar[Literal["closed", "draws", "estimate"]]
    hidden: Mapping[str, Any]
    num_chains: int = 1

    @property
    @abstractmethod
    def sites(self) -> tuple[str, ...]:
        """Names of the sites."""

    @abstractmethod
    def draws(self, number: int | None = None, *, key: Key | None = None) -> dict[str, Array]:
        """Return draws of the sites, ``(draw, …)``.

        Parameters
        ----------
        number, key : how many draws to make of distributions, and from which key; stored draws come as they are, and an
            estimate is repeated.
        """

    @abstractmethod
    def summary(self, quantity: Quantity, *, level: float = LEVEL, where: Any = ...) -> Interval:
        """Return mean, standard deviation and central interval.

        Parameters
        ----------
        quantity : a site, or a function of draws by site, ``(draw, …)``, that returns draws ``(draw, …)``.
        level : probability of the interval.
        where : index of the part of a site that is wanted, such as codes of annotators; all by default.
        """

    @abstractmethod
    def value(self, site: str) -> Any:
        """Return the parameters of the distribution of a site, its draws ``(draw, …)`` or its value."""

    @property
    @abstractmethod
    def stored(self) -> Mapping[str, Any]:
        """What a file holds: arrays by site, or of a closed form by ``SITE.PARAMETER``; without what is hidden."""

    @property
    def text(self) -> dict[str, Any]:
        """What says in a file which posterior the arrays make: the form and the sites."""
        return {"form": self.form, "sites": list(self.sites)}

    @classmethod
    def restored(cls, text: Mapping[str, Any], arrays: Mapping[str, Any], hidden: Mapping[str, Any]) -> Posterior:
        """Return the posterior of this form that a text and arrays were made of.

        Raises
        ------
        KeyError, TypeError, ValueError, AttributeError, ImportError : they are not those of a posterior.
        """
        return cls({site: arrays[site] for site in text["sites"]}, hidden)  # type: ignore[call-arg]

    @abstractmethod
    def on_host(self) -> Posterior:
        """Return the posterior with NumPy arrays, which any program may read in a precision of its own.

        A float64 array of JAX cannot be used where JAX's floats are float32; one of NumPy is rounded silently.
        """

    def axes(self, name: str, ndim: int, dims: Mapping[str, tuple[str, ...]]) -> list[str] | None:
        """Return the axes that a stored array must have; None where that varies, or nobody foresaw them.

        Parameters
        ----------
        name, ndim : of the array.
        dims : the dimensions of each site.
        """
        return list(dims[name]) if name in dims else None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "hidden":
            raise AttributeError(name)
        if name in self.hidden:
            return self.hidden[name]
        if name in self.sites:
            return self.value(name)
        known = ", ".join((*self.sites, *self.hidden))
        raise AttributeError(f"the posterior has no '{name}'; it has {known}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join((*self.sites, *self.hidden))})"


class Closed(Posterior):
    """Independent distributions of the sites.

    Parameters
    ----------
    factors : by site; NumPyro's Dirichlet, Beta, Gamma or Normal, of any batch shape, or a `Factor`. One of several
        sites together has their names joined by commas, and returns dicts.
    hidden : see `Posterior`.
    """

    form = "closed"

    def __init__(self, factors: Mapping[str, dist.Distribution | Factor], hidden: Mapping[str, Any] = {}) -> None:  # noqa: B006
        self.factors, self.hidden = dict(factors), dict(hidden)

    @property
    def sites(self) -> tuple[str, ...]:
        """Names of the sites."""
        return tuple(site for names in self.factors for site in names.split(","))

    def draws(self, number: int | None = None, *, key: Key | None = None) -> dict[str, Array]:
        """Return independent draws; a thousand from a fixed key where nothing is said."""
        number, key = 1000 if number is None else number, jax.random.key(0) if key is None else key
        drawn: dict[str, Array] = {}
        for own, (names, factor) in zip(jax.random.split(key, len(self.factors)), self.factors.items(), strict=True):
            values = factor.sample(own, (number,))
            drawn |= values if "," in names else {names: values}
        return drawn

    def summary(self, quantity: Quantity, *, level: float = LEVEL, where: Any = ...) -> Interval:
        """Return it in closed form for a site, and by a thousand draws for a function."""
        if callable(quantity):
            return _of_draws(quantity(self.draws()), level)
        for names, factor in self.factors.items():
            if quantity in names.split(","):
                if not isinstance(factor, Factor):
                    return _of_factor(factor, level, where)
                found: Any = factor.summary(level)
                found = found[quantity] if "," in names else found
                return Interval(*(part[where] for part in found))
        raise KeyError(quantity)

    def value(self, site: str) -> Any:
        """Return concentrations ``(…, k)``; of a Beta or Gamma distribution both parameters in the last axis."""
        for names, factor in self.factors.items():
            if site in names.split(","):
                return factor.value(site) if isinstance(factor, Factor) else parameters(factor)
        raise KeyError(site)

    @property
    def stored(self) -> dict[str, Any]:
        """The parameters of each factor."""
        factors = self.factors.items()
        return {f"{sites}.{name}": getattr(factor, name) for sites, factor in factors for name in _fields(type(factor))}

    @property
    def text(self) -> dict[str, Any]:
        """The form, and the class of each factor: a family of NumPyro by its name, or where that of a record is."""
        kinds = {sites: type(factor) for sites, factor in self.factors.items()}
        places = {
            sites: kind.__name__ if kind in PARAMETERS else f"{kind.__module__}:{kind.__name__}"
            for sites, kind in kinds.items()
        }
        return {"form": self.form, "factors": places}

    @classmethod
    def restored(cls, text: Mapping[str, Any], arrays: Mapping[str, Any], hidden: Mapping[str, Any]) -> Posterior:
        """Return the posterior of the stored parameters."""
        return cls({sites: _factor(place, sites, arrays) for sites, place in text["factors"].items()}, hidden)

    def axes(self, name: str, ndim: int, dims: Mapping[str, tuple[str, ...]]) -> list[str] | None:
        """Return those of the site, or of a record those in the annotation of its field."""
        site, _, parameter = name.rpartition(".")
        if isinstance(self.factors[site], Factor):
            return _declared(type(self.factors[site]), parameter)
        return super().axes(site, ndim, dims)

    def on_host(self) -> Closed:
        """Return the distributions with NumPy arrays for parameters."""
        return Closed(_numpy(self.factors), _numpy(self.hidden))


class Draws(Posterior):
    """Stored draws.

    Parameters
    ----------
    chains : by site, ``(chain, draw, …)``.
    hidden : see `Posterior`.
    """

    form = "draws"

    def __init__(self, chains: Mapping[str, np.ndarray], hidden: Mapping[str, Any] = {}) -> None:  # noqa: B006
        self.chains, self.hidden = dict(chains), dict(hidden)
        self.num_chains = next((len(stored) for stored in self.chains.values()), 1)

    @property
    def sites(self) -> tuple[str, ...]:
        """Names of the sites."""
        return tuple(self.chains)

    def draws(self, number: int | None = None, *, key: Key | None = None) -> dict[str, Array]:
        """Return all draws of all chains, one chain after another."""
        return {site: self.value(site) for site in self.chains}

    def summary(self, quantity: Quantity, *, level: float = LEVEL, where: Any = ...) -> Interval:
        """Return it of all draws."""
        if callable(quantity):
            return _of_draws(quantity(self.draws()), level)
        chosen = where if isinstance(where, tuple) else (where,)
        return _of_draws(self.value(quantity)[(slice(None), *chosen)], level)

    def value(self, site: str) -> Any:
        """Return the draws of all chains, ``(draw, …)``."""
        stored = self.chains[site]
        return stored.reshape(stored.shape[0] * stored.shape[1], *stored.shape[2:])

    @property
    def stored(self) -> Mapping[str, Any]:
        """The draws of each chain."""
        return self.chains

    def axes(self, name: str, ndim: int, dims: Mapping[str, tuple[str, ...]]) -> list[str] | None:
        """Return them with those of chains and draws; ArviZ too takes draws of another shape than was foreseen."""
        of_site = super().axes(name, ndim, dims)
        return ["chain", "draw", *of_site] if of_site is not None and ndim == 2 + len(of_site) else None

    def on_host(self) -> Draws:
        """Return the draws as NumPy arrays."""
        return Draws(_numpy(self.chains), _numpy(self.hidden))


class Estimate(Posterior):
    """One value of each site.

    Parameters
    ----------
    values : by site.
    hidden : see `Posterior`.
    """

    form = "estimate"

    def __init__(self, values: Mapping[str, Any], hidden: Mapping[str, Any] = {}) -> None:  # noqa: B006
        self.values, self.hidden = dict(values), dict(hidden)

    @property
    def sites(self) -> tuple[str, ...]:
        """Names of the sites."""
        return tuple(self.values)

    def draws(self, number: int | None = None, *, key: Key | None = None) -> dict[str, Array]:
        """Return the estimate, as often as asked for."""
        return {site: np.broadcast_to(value, (number or 1, *np.shape(value))) for site, value in self.values.items()}

    def summary(self, quantity: Quantity, *, level: float = LEVEL, where: Any = ...) -> Interval:
        """Return the estimate as the mean; nothing is known of its uncertainty."""
        mean = np.asarray(quantity(self.draws())[0] if callable(quantity) else self.values[quantity][where], float)
        unknown = np.full(mean.shape, np.nan)
        return Interval(mean, unknown, unknown, unknown)

    def value(self, site: str) -> Any:
        """Return the value."""
        return self.values[site]

    @property
    def stored(self) -> Mapping[str, Any]:
        """The values."""
        return self.values

    def on_host(self) -> Estimate:
        """Return the values as NumPy arrays."""
        return Estimate(_numpy(self.values), _numpy(self.hidden))


FORMS: dict[str, type[Posterior]] = {kind.form: kind for kind in (Closed, Draws, Estimate)}
"""The three forms by name."""


def parameters(factor: Any) -> Float[np.ndarray, "*batch parameter"]:
    """Return the parameters of a distribution of NumPyro, in the last axis."""
    names = next(names for family, names in PARAMETERS.items() if isinstance(factor, family))
    found = [np.asarray(getattr(factor, name)) for name in names]
    return found[0] if len(found) == 1 else np.stack(np.broadcast_arrays(*found), axis=-1)


def _fields(kind: type) -> tuple[str, ...]:
    """Return the names of the parameters of a factor."""
    if kind in PARAMETERS:
        return PARAMETERS[kind]
    if issubclass(kind, Factor) and dataclasses.is_dataclass(kind) and kind.__module__.startswith(OWN):
        return tuple(field.name for field in dataclasses.fields(kind))
    known = ", ".join(family.__name__ for family in PARAMETERS)
    raise UnsupportedRequest(f"{kind.__name__} cannot be saved; a factor is one of {known}, or a record of the library")


def _factor(place: str, sites: str, arrays: Mapping[str, np.ndarray]) -> Any:
    """Return a factor from the place of its class and its stored parameters."""
    module, _, name = place.rpartition(":")
    if module and not module.startswith(OWN):
        raise ValueError(f"{place} is no record of the library")
    kind: Any = getattr(importlib.import_module(module), name) if module else _FAMILIES[name]
    if module and not (isinstance(kind, type) and issubclass(kind, Factor)):
        raise ValueError(f"{place} is no distribution")
    values = {field: arrays[f"{sites}.{field}"] for field in _fields(kind)}
    return kind(**{field: value if value.ndim else value.item() for field, value in values.items()})


_FAMILIES = {family.__name__: family for family in PARAMETERS}


def _declared(kind: type, name: str) -> list[str] | None:
    """Return the axes in the annotation of a field, such as ``Float[Array, "item class"]``; None where it varies."""
    annotation = kind.__annotations__.get(name, "")
    match = _AXES.search(getattr(annotation, "__forward_arg__", str(annotation)))
    if match is None or re.search(r"[*#.]", match[1]):
        return None
    return match[1].split()


def beta_of_moments(
    mean: Float[np.ndarray, "*shape"], variance: Float[np.ndarray, "*shape"], level: float = LEVEL
) -> Interval:
    """Return the summary of the Beta distribution with this mean and variance; a point where there is no variance."""
    size = np.divide(mean * (1 - mean), variance, out=np.ones(mean.shape), where=variance > 0) - 1
    return beta_interval(mean * size, (1 - mean) * size, level, mean)


def _of_factor(factor: Any, level: float, where: Any) -> Interval:
    """Return the summary of NumPyro's distributions by SciPy's; the shares of a Dirichlet vector are Beta variables."""
    own = parameters(factor)[where].astype(float)
    if isinstance(factor, dist.Dirichlet):
        return beta_interval(own, own.sum(axis=-1, keepdims=True) - own, level)
    if isinstance(factor, dist.Beta):
        return beta_interval(own[..., 0], own[..., 1], level)
    from scipy import stats  # as long to import as JAX

    known: Any = stats.norm(own[..., 0], own[..., 1])
    if isinstance(factor, dist.Gamma):
        known = stats.gamma(own[..., 0], scale=1 / own[..., 1])
    return Interval(known.mean(), known.std(), *known.interval(level))


def beta_interval(a: np.ndarray, b: np.ndarray, level: float = LEVEL, mean: np.ndarray | None = None) -> Interval:
    """Return the summary of Beta distributions; of one that is a point the point."""
    mean = a / (a + b) if mean is None else mean
    spread = (a > 0) & (b > 0)
    usable = [np.where(spread, values, 1.0) for values in (a, b)]
    lower, upper = (np.where(spread, special.betaincinv(*usable, end), mean) for end in ends(level))
    return Interval(mean, np.sqrt(np.where(spread, mean * (1 - mean) / (a + b + 1), 0.0)), lower, upper)


def _of_draws(draws: Any, level: float) -> Interval:
    draws = np.asarray(draws)
    lower, upper = np.quantile(draws, ends(level), axis=0)
    mean = draws.mean(axis=0, dtype=float)
    return Interval(mean, draws.std(axis=0, ddof=1, dtype=float) if len(draws) > 1 else mean * np.nan, lower, upper)


def _numpy(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values with NumPy arrays in the place of JAX's, in distributions and records too."""

    def one(value: Any) -> Any:
        if isinstance(value, dist.Distribution):
            return jax.tree.map(np.asarray, value)
        if isinstance(value, Factor) and dataclasses.is_dataclass(value):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
            return dataclasses.replace(value, **_numpy(fields))
        return np.asarray(value) if isinstance(value, jax.Array) else value

    return {name: one(value) for name, value in values.items()}
