"""The sites of a member, and the one place where data, settings and priors become what everything else reads.

A `Site` declares what a variable of the model is: over which units it is repeated, what one draw looks like, and of
which distribution the hand-derived updates need its prior to be. `Resolved` holds checked data, settings and priors.
`fit`, `check` and `simulate` make one with `resolve`; densities, kernels, truths and tables read it.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpyro import handlers

from consilience.arrays import Float
from consilience.errors import InvalidPrior, NotConjugate, UnsupportedRequest
from consilience.models.keys import any_key
from consilience.models.posterior import parameters
from consilience.models.settings import Settings


@dataclass(frozen=True)
class Site:
    """A variable of the model.

    Parameters
    ----------
    name : of the site, in the NumPyro model and in ArviZ.
    plates : dimensions over which it is repeated, by the words of the house (``"annotator"``, ``"class"``).
    event : dimensions of one draw.
    family : distribution that the closed-form updates need its prior to be: Dirichlet, Beta, Gamma or Normal; None
        where there is no prior, or any will do.
    prior_plates : of ``plates``, those along which the prior may differ; along the others it is the same for all.
    prior : name of the field of the priors, where it is not that of the site.
    context : settings that a prior that is a function gets after the data.
    given : sites on whose values the prior depends: it is then always a function of the data and of these values.
    """

    name: str
    plates: tuple[str, ...] = ()
    event: tuple[str, ...] = ()
    family: type[dist.Distribution] | None = None
    prior_plates: tuple[str, ...] = ()
    prior: str = ""
    context: tuple[str, ...] = ()
    given: tuple[str, ...] = ()

    @property
    def dims(self) -> tuple[str, ...]:
        """All dimensions of a draw, plates first."""
        return (*self.plates, *self.event)


class Sites:
    """The sites of a member, by name, with what concerns several of them.

    Parameters
    ----------
    sites : in the order of the model.
    canonical : ``canonical(samples, resolved)`` -> samples, which maps mirror modes to one in draws ``(chain, draw,
        …)`` by site (of CAVI and EM: one chain of one draw); None where the prior already does.
    summarised : ``summarised(samples, resolved)`` -> what summaries and diagnostics are about in the place of the
        sites, where these have labels that may be exchanged or are labels themselves; draws ``(chain, draw, …)``.
    hidden : by name, the dimensions of what posteriors hold beside the sites, such as ``{"votes": ("entry",)}``: a
        saved fit in which they are others is refused.
    used : ``used(resolved)`` -> the sites with priors that the model has under its settings; None where these are all.
        A function of a module, so that fits can be pickled.
    """

    def __init__(
        self,
        *sites: Site,
        canonical: Callable[[Mapping[str, Any], Resolved], dict[str, Any]] | None = None,
        summarised: Callable[[Mapping[str, Any], Resolved], dict[str, Any]] | None = None,
        hidden: Mapping[str, tuple[str, ...]] = {},  # noqa: B006
        used: Callable[[Resolved], Iterable[Site]] | None = None,
    ) -> None:
        self._by_name = {site.name: site for site in sites}
        self.canonical, self.summarised, self.hidden, self.used = canonical, summarised, hidden, used

    def __iter__(self) -> Iterator[Site]:
        return iter(self._by_name.values())

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def __getitem__(self, name: str) -> Site:
        return self._by_name[name]

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """The dimensions of each site, for ArviZ."""
        return {site.name: site.dims for site in self}


def learned(prior: Callable[..., dist.Distribution]) -> Callable[..., dist.Distribution]:
    """Declare that a prior, a function of the data, is set from what is observed; see `Resolved.learned_priors`."""
    prior.is_learned = True  # type: ignore[attr-defined]
    return prior


@dataclass(frozen=True, eq=False)
class Resolved:
    """Data, settings and priors of one fit, checked against each other. A PyTree.

    Each prior is made into a distribution once, when it is first asked for: on the host in float64, inside of a
    compiled program in its own precision.

    Parameters
    ----------
    data : the contract, or what a member's engine made of it on the host.
    settings : the member's; those that stand for priors are gone.
    given : the record of priors as the user gave it, the member's defaults filled in; None of a member without priors,
        and of a saved fit whose file could not hold them.
    sites : of the member.
    """

    data: Any
    settings: Any
    given: Any
    sites: Sites
    _found: dict[str, Any] = field(default_factory=dict, repr=False)

    def prior(self, site: str, *values: Any) -> dist.Distribution:
        """Return the prior of a site.

        Parameters
        ----------
        site : its name.
        values : of the sites on which it depends.

        Raises
        ------
        InvalidPrior : it is no distribution, or one of another shape.
        UnsupportedRequest : the fit was loaded from a file that knows its priors in words only.
        """
        declared = self.sites[site]
        if declared.given:
            return _checked(self._made(declared, *values), declared, self.size)
        known = self._known(declared)
        if known is None:  # once more in the open, where the density sees the sites that it draws
            return _checked(self._made(declared), declared, self.size)
        return known

    @property
    def idle_priors(self) -> set[str]:
        """Names of the priors that no site of the model has under its settings."""
        if self.sites.used is None:
            return set()
        every, used = ({site.prior or site.name for site in sites} for sites in (self.sites, self.sites.used(self)))
        return every - used

    @property
    def learned_priors(self) -> set[str]:
        """Names of the priors that are set from the very data whose likelihood they are multiplied with."""
        given = getattr(self.given, "__dict__", {})
        return {name for name, prior in given.items() if getattr(prior, "is_learned", False)}

    def concentration(self, site: str) -> Float[np.ndarray, "*plate parameter"]:
        """Return the parameters of the prior of a site that closed-form updates read, float64, on the host.

        Returns
        -------
        Of a Dirichlet prior its concentrations, of a Beta or Gamma prior its two parameters in the last axis; the axes
        before are the ``prior_plates`` of the site.

        Raises
        ------
        NotConjugate : the prior is of another family, or has parameters that are themselves unknown.
        """
        declared, own = self.sites[site], self._own(self.sites[site])
        assert declared.family is not None
        plates = tuple(self.size(dimension) for dimension in declared.prior_plates)
        if hasattr(own, "numbers"):
            # NumPyro's distributions take a third of a second to compile, longer than a million records to link.
            numbers = own.numbers(self.data, *self._context(declared))
            return np.broadcast_to(numbers, (*plates, numbers.shape[-1]))
        prior: Any = self._known(declared)
        if prior is None:
            raise NotConjugate(
                f"site '{site}': the updates need a {declared.family.__name__} prior of known parameters; this one "
                "draws its own"
            )
        while isinstance(prior, dist.ExpandedDistribution | dist.Independent):
            prior = prior.base_dist
        if not isinstance(prior, declared.family):
            raise NotConjugate(
                f"site '{site}': the updates need a {declared.family.__name__} prior, not {type(prior).__name__}"
            )
        numbers = parameters(prior).astype(float)
        return np.broadcast_to(numbers, (*plates, numbers.shape[-1]))

    def settle(self) -> None:
        """Call the functions that learn priors from data, and those of the user's own, before a program is compiled.

        Those that draw parameters of their own, or depend on other sites, are left to the density.
        """
        for site in self.sites:
            own = getattr(self.given, site.prior or site.name, None)
            of_the_library = getattr(own, "__module__", type(own).__module__).startswith("consilience.")
            ready = isinstance(own, dist.Distribution) or (of_the_library and not getattr(own, "is_learned", False))
            if callable(own) and not ready and not site.given:
                # Nothing says of which shape the weights of a link of the user's own are: those the density checks.
                with contextlib.suppress(KeyError):
                    self._known(site)

    def size(self, dimension: str) -> int:
        """Return how many units there are of a dimension: what the settings decide, else what the data hold."""
        sizes = self.settings.sizes(self.data)
        for name in (dimension, *({"class": ("label",)}.get(dimension, ()))):
            if name in sizes:
                return int(sizes[name])
        if (known := self.data.size_of(dimension)) is not None:
            return int(known)
        raise KeyError(f"nothing says how many units of '{dimension}' there are")

    def replace(self, **changes: Any) -> Resolved:
        """Return a copy with other data, settings or priors; what was made of the priors is made anew."""
        return dataclasses.replace(self, **{"_found": {}, **changes})

    def _own(self, site: Site) -> Any:
        """Return the prior of a site as it was given."""
        if self.given is None:
            raise UnsupportedRequest(
                f"the prior of site '{site.name}' is not known: the fit was loaded from a file, which cannot hold it"
            )
        return getattr(self.given, site.prior or site.name)

    def _context(self, site: Site) -> tuple[Any, ...]:
        return tuple(getattr(self.settings, name) for name in site.context)

    def _made(self, site: Site, *values: Any) -> Any:
        """Return the prior as it was given, or as its function makes it."""
        own = self._own(site)
        if isinstance(own, dist.Distribution):
            return own
        if not callable(own):
            raise InvalidPrior(
                f"the prior of site '{site.name}' is {type(own).__name__}; "
                "give a NumPyro distribution or a function of the data that returns one"
            )
        with contextlib.nullcontext() if _tracing() else jax.enable_x64(True):
            return own(self.data, *self._context(site), *values)

    def _known(self, site: Site) -> Any:
        """Return the prior; None where it draws parameters of its own, so that units learn together."""
        if site.name in self._found:
            return self._found[site.name]
        with handlers.block(), handlers.trace() as drawn, handlers.seed(rng_seed=any_key()):
            made = self._made(site)
        if drawn:
            return None
        found = _checked(made, site, self.size)
        # A tracer must not outlive its program or its `vmap`, of which this may be a constant.
        if _tracing() or any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(found)):
            return found
        # A distribution of the user's own may not survive as leaves.
        is_known = type(found).__module__.startswith("numpyro.")
        self._found[site.name] = jax.tree.map(np.asarray, found) if is_known else found
        return self._found[site.name]


def resolve(
    name: str, priors: Any, settings_class: type[Settings], sites: Sites, data: Any, given: Any,
    options: Mapping[str, Any],
) -> Resolved:  # fmt: skip
    """Check settings and priors, and put them beside the data.

    Parameters
    ----------
    name, priors, settings_class, sites : of the member; ``priors`` is the class of its priors, or None.
    data : the contract.
    given : priors of the user, or None for the member's.
    options : settings of the user, shorthands for priors among them.

    Raises
    ------
    UnknownName : there is no such setting.
    UnsupportedRequest : a value is not allowed, priors are of another class, or a prior is given twice.
    """
    settings = settings_class.checked(options, name)
    short = settings.shorthands()
    if given is not None and priors is None:
        raise UnsupportedRequest(f"'{name}' has no priors to replace; leave out priors=")
    if given is not None and not isinstance(given, priors):
        expected = f"{priors.__module__}.{priors.__qualname__}"
        raise UnsupportedRequest(f"priors is {type(given).__name__}; '{name}' takes {expected}")
    if short and given is not None:
        raise UnsupportedRequest(f"the prior is given twice, by {next(iter(short))} and priors; give one of them")
    if len({target for target, _ in short.values()}) < len(short):
        raise UnsupportedRequest(
            f"{' and '.join(short)} set the same prior of '{name}'; give one of them, or priors="
        )
    if given is None and priors is not None:
        given = priors(**dict(short.values()))
    return Resolved(data, settings.without_shorthands(), given, sites)


def _checked(found: Any, site: Site, size: Callable[[str], int]) -> Any:
    """Return a prior; raise `InvalidPrior` where it is no distribution, or where one draw of it has another shape."""
    if not isinstance(found, dist.Distribution):
        raise InvalidPrior(
            f"the prior of site '{site.name}' is {type(found).__name__}; "
            "give a NumPyro distribution or a function of the data that returns one"
        )
    event = tuple(size(dimension) for dimension in site.event)
    if found.event_shape != event:
        raise InvalidPrior(
            f"the prior of site '{site.name}' has event shape {found.event_shape}, expected {event}"
            + ("; use .to_event(1) if its last batch axis is one draw" if not found.event_shape else "")
        )
    plates = tuple(size(dimension) for dimension in site.prior_plates)
    if not site.given and found.batch_shape not in ((), plates):
        expected = f"expected () or {plates}, one distribution for each {' and '.join(site.prior_plates)}"
        raise InvalidPrior(
            f"the prior of site '{site.name}' has batch shape {found.batch_shape}, "
            + (expected if plates else "expected ()")
        )
    return found


def _tracing() -> bool:
    """Return whether JAX is tracing: whatever it makes is then a tracer."""
    return isinstance(jnp.zeros(()), jax.core.Tracer)


# ---- PyTree: data and parameters of priors are leaves; settings, functions and a user's own distributions are static


class _Static:
    """What a compiled program is bound to; equal for equal settings and equal priors."""

    def __init__(self, resolved: Resolved) -> None:
        self.settings, self.given, self.sites = resolved.settings, resolved.given, resolved.sites
        self.key = (self.settings, _identity(self.given), id(self.sites))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Static) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def _identity(value: Any) -> Hashable:
    """Reduce a prior to something hashable by value: two records with equal distributions are the same prior."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return type(value), tuple(_identity(getattr(value, own.name)) for own in dataclasses.fields(value))
    leaves, structure = jax.tree.flatten(value)
    return structure, tuple(_leaf_identity(leaf) for leaf in leaves)


def _leaf_identity(leaf: Any) -> Hashable:
    if isinstance(leaf, (np.ndarray, jax.Array)):
        values = np.asarray(leaf)
        return values.dtype.str, values.shape, values.tobytes()
    return type(leaf), leaf


def _flatten(resolved: Resolved) -> tuple[tuple[Any, dict[str, Any]], _Static]:
    # A distribution of the user's own may not survive as leaves; a program makes it anew.
    found = {site: prior for site, prior in resolved._found.items() if type(prior).__module__.startswith("numpyro.")}
    return (resolved.data, found), _Static(resolved)


def _unflatten(static: _Static, children: tuple[Any, dict[str, Any]]) -> Resolved:
    return Resolved(children[0], static.settings, static.given, static.sites, dict(children[1]))


jax.tree_util.register_pytree_node(Resolved, _flatten, _unflatten)
