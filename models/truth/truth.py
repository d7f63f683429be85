"""What every truth can be asked: kinds, questions, and the draws of the answers.

A truth is what a member's `truth` returns and all that an evaluation ever sees of a fit: draws of something that nobody
observed. Of which kind it is says `Truth.kind`, a value. It answers questions, by draws (`Truth.blocks`), and where
there is one in closed form (`Truth.exact`); a question that it does not know raises `UnsupportedRequest` in its own
words.

| question | answer | kinds |
|---|---|---|
| `Ranked` | the leading classes | classes |
| `Mass` | how the mass falls on groups of classes | classes |
| `Shares` | the plausibilities themselves | classes, where the truth is made of them |
| `Agreement` | how often two annotators would agree | classes |
| `Clusters` | who is together | partition, chains |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np

from consilience.arrays import Float, Int
from consilience.data.codes import object_array
from consilience.errors import UnsupportedRequest


@dataclass(frozen=True)
class Kind:
    """What a truth is: a value that knows nobody. Each room keeps one table keyed by the names of kinds.

    Parameters
    ----------
    name : what the contracts of systems of this kind bear too.
    unit : what is listed.
    metric : the default metric.
    joint : whether units are scored together, as in a partition, or each alone.
    """

    name: str
    unit: str
    metric: str
    joint: bool


CLASSES = Kind("classes", "item", "top-1", False)
PARTITION = Kind("partition", "record", "pairwise-f1", True)
CHAINS = Kind("chains", "mention", "conll", True)
VIEWS = Kind("views", "item", "pairwise-f1", True)

KINDS = (CLASSES, PARTITION, CHAINS, VIEWS)
"""All kinds."""


@dataclass(frozen=True)
class Ranked:
    """Which classes lead: int32 codes ``(unit, draw, depth)``, best first, -1 when the classes are used up."""

    depth: int = 1


@dataclass(frozen=True, eq=False)
class Mass:
    """The plausibility of each group, ``(unit, draw, group)``; ``group`` maps class to group."""

    group: Int[np.ndarray, " class"]
    num_groups: int


@dataclass(frozen=True)
class Shares:
    """The plausibilities of the named classes; the values of a block are `Plausibilities`."""


@dataclass(frozen=True)
class Agreement:
    """The probability that two annotations of a unit agree, ``(unit, draw)``."""


@dataclass(frozen=True)
class Clusters:
    """Who is together, ``(draw, unit)``: equal numbers, and -1 for a mention that refers to nothing."""


Question = Ranked | Mass | Shares | Agreement | Clusters


class Block(NamedTuple):
    """Draws of an answer.

    Parameters
    ----------
    units, draws : which ones; they never go beyond what is real.
    values : of kinds whose units are scored alone ``(padded unit, draw, …)``, all draws, and blocks of one pass have
        one shape, so that code compiled for one serves all; of joint kinds ``(draw, unit)``, all units.
    """

    units: slice
    draws: slice
    values: Any

    @property
    def num_units(self) -> int:
        """How many units of the block are real."""
        return int(self.units.stop - self.units.start)

    @property
    def real(self) -> np.ndarray:
        """The values of real units, of a kind whose units are scored alone."""
        return np.asarray(self.values)[: self.num_units]


class Marginals(NamedTuple):
    """The distribution of an answer, unit by unit, as a ragged table.

    Parameters
    ----------
    first : int64, shape ``(unit + 1,)``; where the entries of each unit start.
    code : int32, shape ``(entry,)``; of the class or group, increasing within a unit.
    probability : float64, shape ``(entry,)``.
    unnamed : float64, shape ``(unit,)``; of each code that is not among the entries of the unit.
    """

    first: Int[np.ndarray, " boundary"]
    code: Int[np.ndarray, " entry"]
    probability: Float[np.ndarray, " entry"]
    unnamed: Float[np.ndarray, " unit"]

    @classmethod
    def dense(cls, probability: Float[np.ndarray, "unit code"]) -> Marginals:
        """Return the table that names every code of every unit."""
        units, codes = probability.shape
        code = np.tile(np.arange(codes, dtype=np.int32), units)
        return cls(np.arange(units + 1) * codes, code, probability.ravel(), np.zeros(units))

    @property
    def unit(self) -> Int[np.ndarray, " entry"]:
        """Unit of each entry, int64; made anew at each call."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))


class Truth(ABC):
    """Draws of something that nobody observed; the same at every pass.

    Attributes
    ----------
    kind : what it is.
    num_units, num_draws : sizes.
    num_chains : that the draws come from, one after another; 1 where draws are independent.
    ids : dimension name -> the user's ids in code order; those that are not known are absent.
    independent_items : whether units share no parameters, so that those of one tell nothing of another.
    systems : names of the kinds as which systems are scored against it.
    signal : of a crowd, whether its annotators agree beyond chance; see `consilience.models.crowd.gate`.
    probabilities_at : of a crowd, makes the probabilities of the labels, were the dependence z standard deviations from
        what it is taken to be; None where it is taken for known.
    dependence : of a crowd, how much the errors of one item's annotators are taken to hang together; see
        `consilience.models.crowd.dependence`.
    beliefs : what was believed before any data, in words, by what it is of: of models whose priors do not say it.
    """

    kind: ClassVar[Kind]
    num_units: int
    num_draws: int
    num_chains: int = 1
    ids: Mapping[str, Any] = MappingProxyType({})
    independent_items: bool = False
    systems: tuple[str, ...] = ()
    probabilities_at: Callable[[float], Marginals] | None = None
    signal: Any = None
    dependence: Any = None
    beliefs: Mapping[str, str] = MappingProxyType({})

    @abstractmethod
    def blocks(self, question: Question) -> Iterator[Block]:
        """Yield draws of the answer.

        Raises
        ------
        UnsupportedRequest : this truth does not know the question.
        """

    @abstractmethod
    def answers(self, question: Question) -> bool:
        """Return whether `blocks` would answer; nothing is computed."""

    @abstractmethod
    def estimate(self) -> Int[np.ndarray, " unit"]:
        """Return what to show: the most probable class of each unit, or the cluster."""

    @abstractmethod
    def read_as(self, kind: str, **which: Any) -> Truth:
        """Return the same draws as another kind; a kind reads as itself.

        Raises
        ------
        UnsupportedRequest : the draws are nothing of the kind.
        """

    def exact(self, question: Question) -> Marginals | None:
        """Return the distribution of the answer in closed form, or None where there is none."""
        return None

    def standard(self) -> Truth | None:
        """Return what standard practice takes for the truth, one draw; None where there is no such thing."""
        return None

    def bound_to(self, data: Any) -> Truth:
        """Say which data this is a truth of: its ids are theirs, but for those that the truth brings itself."""
        own = {dimension: ids for dimension, ids in self.ids.items() if ids is not None}
        self.ids = {**data.ids, **own}
        return self

    def names(self, dimension: str | None = None, number: int | None = None) -> np.ndarray:
        """Return the ids of a dimension, or codes as texts; those of the units by default."""
        ids = self.ids.get(dimension or self.kind.unit)
        return object_array(map(str, range(self.num_units if number is None else number))) if ids is None else ids


READINGS: dict[tuple[str, str], Callable[[Any], Truth]] = {}
"""How a truth of one kind is read as another, by the names of both; where the other kind is at home it says so."""


def truth_of(fit: Any) -> Truth:
    """Return the truth of a fit; a truth is returned as it is.

    Raises
    ------
    UnsupportedRequest : there is none.
    """
    found = fit if isinstance(fit, Truth) else getattr(fit, "truth", None)
    if not isinstance(found, Truth):
        raise UnsupportedRequest(f"a fit is expected, as fit returns it; this is {type(fit).__name__}")
    return found


def block_numbers(backend: str | None = None) -> int:
    """Return how many numbers one block of units may hold.

    2^18 in float32 are 1 MiB, and some twenty such arrays live at once, which a CPU still finds in its cache: larger
    blocks were slower there and cost memory. An NVIDIA H200 takes a third to a half of the time with 2^22, and
    hardly less with 2^26.
    """
    return 1 << 18 if (backend or jax.default_backend()) == "cpu" else 1 << 22
