"""Annotated mentions as a crowd would give them: the four scenarios of Paun et al. (2018), section 3.1.2 and Table 1.

The entities of a key say what each mention really goes back to: the nearest mention before it of the same entity, or
nothing (DN) where it is the first. Annotators choose among five labels, the right one and the errors that lie nearest:
DN, and the nearest mentions before it of other entities. An annotator has one of a few profiles, which say how often it
is right where a mention is old (DO) and where it is new (DN). Its errors go

* ``uniform``: to the wrong labels in equal parts;
* ``sparse``: to the wrong labels in proportions that are drawn for each mention, and that all its annotators share, so
  that some errors are popular.

The profiles are five that the paper prints (``synthetic``), or those that the user gives (``profiles``): the paper's
were estimated from players of Phrase Detectives and are not printed.

What the paper leaves open: a span that the key has twice is two mentions, and of mentions that begin at the same token
the longer comes first. The first mentions of a document have fewer labels to choose from, and the very first only one.
Annotators cross documents. The proportions of sparse errors are a draw from Dirichlet(1, …, 1).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from consilience.data.codes import as_numbers, compact, object_array
from consilience.data.conll import Chains, as_chains
from consilience.data.mentions import MENTION_TYPES, Mentions
from consilience.data.problems import Problems, check_option, warn_input
from consilience.data.tables import read_table
from consilience.errors import UnsupportedRequest

SCENARIOS = ("synthetic-uniform", "synthetic-sparse", "profiles-uniform", "profiles-sparse")

SYNTHETIC_PROFILES = ((0.8, 0.9), (0.7, 0.8), (0.4, 0.5), (0.3, 0.4), (0.2, 0.3))
"""Sensitivity in DO and in DN of two experts and three novices (Paun et al. 2018, section 3.1.2)."""

_NUM_ERRORS = 4     # labels to choose from, without the right one
_ROUNDS = 100       # of swaps between mentions: each place is then swapped about ten times
_DN, _DO = MENTION_TYPES.index("DN"), MENTION_TYPES.index("DO")


def simulate_mentions(
    key: Chains,
    scenario: str = "synthetic-uniform",
    *,
    profiles: Any = None,
    seed: int = 0,
    annotators_per_mention: int = 10,
    mentions_per_annotator: int = 20,
) -> Mentions:
    """Draw annotations of the mentions of a key.

    Parameters
    ----------
    key : Chains
        The true entities. Mentions that refer to nothing (entity -1) are left out with a warning, as the paper has
        none.
    scenario : str, default "synthetic-uniform"
        One of `SCENARIOS`.
    profiles : path, data frame or dict of columns, optional
        For the scenarios ``profiles-…``: sensitivity in DO and in DN, an array of shape ``(profile, 2)`` or a table
        (path, data frame or dict) with the columns DO and DN. Each annotator gets one of them at random.
    seed : int, default 0
        The same seed gives the same annotations.
    annotators_per_mention : int, default 10
        Each mention has so many different annotators.
    mentions_per_annotator : int, default 20
        Each annotator has so many different mentions. The last have one less where numbers do not divide, and of fewer
        mentions than this each annotator has all.

    Returns
    -------
    mentions
        With gold labels and positions, in the order of the documents; ``m1``, ``m2``, … annotated by ``a1``, ``a2``, …,
        and the documents of the key that have mentions.

    Raises
    ------
    UnknownName : there is no such scenario.
    InputError : the profiles are no table of numbers from 0 to 1.
    UnsupportedRequest : profiles are missing, or given where they have no part, or the key has no mentions.

    Examples
    --------
    >>> import consilience as cs
    >>> key = cs.Chains.from_spans(
    ...     document=[0, 0, 0], start=[0, 3, 5], end=[1, 3, 5], entity=[0, 0, 1], documents=["news"]
    ... )
    >>> mentions = cs.simulate_mentions(key, annotators_per_mention=2, mentions_per_annotator=3)
    >>> mentions
    Mentions(annotations=6, mentions=3, annotators=2, documents=1)
    >>> mentions.classes[mentions.gold_type].tolist()
    ['DN', 'DO', 'DN']
    """
    key = as_chains(key)
    check_option("scenario", scenario, SCENARIOS)
    if isinstance(seed, int) and seed < 0:
        raise UnsupportedRequest(f"seed is {seed}; give 0 or more")
    source, errors = scenario.split("-")
    sensitivity = _sensitivities(scenario, source, profiles)
    if min(annotators_per_mention, mentions_per_annotator) < 1:
        raise UnsupportedRequest("annotators_per_mention and mentions_per_annotator have to be 1 or more")
    text = _sorted_mentions(key)
    random = np.random.default_rng(seed)
    chosen = _choices(text.document, text.entity)
    annotator = _shared_out(len(text.entity), annotators_per_mention, mentions_per_annotator, random)
    num_annotators = int(annotator.max()) + 1
    profile = random.integers(len(sensitivity), size=num_annotators)
    mention, annotator = np.repeat(np.arange(len(annotator)), annotators_per_mention), annotator.ravel()
    gold_type = np.where(chosen.gold < 0, _DN, _DO).astype(np.int32)
    # Column 0 is DO and column 1 is DN.
    able = sensitivity[profile[annotator], (chosen.gold[mention] < 0).astype(int)]
    right = (random.random(len(mention)) < able) | (chosen.num_wrong[mention] == 0)
    shares = _shares(errors, chosen.num_wrong, random)
    wrong = _wrong_choice(shares, chosen, mention, random)
    antecedent = np.where(right, chosen.gold[mention], wrong).astype(np.int32)
    document, documents = compact(text.document, key.documents)
    return Mentions(
        mention=mention.astype(np.int32),
        annotator=annotator.astype(np.int32),
        type=np.where(antecedent < 0, _DN, _DO).astype(np.int32),
        antecedent=antecedent,
        gold_type=gold_type,
        gold_antecedent=chosen.gold.astype(np.int32),
        document=document,
        start=text.start,
        end=text.end,
        num_annotations=len(mention),
        num_mentions=len(text.entity),
        num_annotators=num_annotators,
        num_documents=len(documents),
        mentions=object_array(f"m{number}" for number in range(1, len(text.entity) + 1)),
        annotators=object_array(f"a{number}" for number in range(1, num_annotators + 1)),
        documents=documents,
    )


# ---- the text ----


class _Text(NamedTuple):
    """Mentions in the order of their documents, each array of shape ``(mention,)``."""

    document: np.ndarray
    start: np.ndarray
    end: np.ndarray
    entity: np.ndarray


def _sorted_mentions(key: Chains) -> _Text:
    columns = [np.asarray(values) for values in (key.document, key.start, key.end, key.entity)]
    refers = columns[3] >= 0
    if not refers.any():
        raise UnsupportedRequest("the key has no mentions that refer to something; give one that has")
    if not refers.all():
        warn_input(f"{(~refers).sum():,} mentions that refer to nothing were left out: the simulation has none")
    document, start, end, entity = (column[refers] for column in columns)
    # lexsort is stable: what is equal in all this stays in the order of the file.
    order = np.lexsort((entity, -end, start, document))
    return _Text(*(column[order] for column in (document, start, end, entity)))


class _Choices(NamedTuple):
    """What annotators choose from; antecedents are codes of mentions, and -1 stands for DN.

    Parameters
    ----------
    gold : shape ``(mention,)``; the right antecedent.
    wrong : shape ``(mention, error)``; the wrong ones, the first ``num_wrong`` of which there are.
    num_wrong : shape ``(mention,)``.
    """

    gold: np.ndarray
    wrong: np.ndarray
    num_wrong: np.ndarray


def _choices(document: np.ndarray, entity: np.ndarray) -> _Choices:
    """Find the right label of each mention, and the nearest wrong ones."""
    size = len(entity)
    gold = np.full(size, -1)
    order = np.argsort(entity, kind="stable")
    same = entity[order[1:]] == entity[order[:-1]]
    gold[order[1:][same]] = order[:-1][same]
    first = np.searchsorted(document, document)         # of the document
    begins = np.flatnonzero(np.append(True, entity[1:] != entity[:-1]))
    run = np.repeat(begins, np.diff(np.append(begins, size)))       # where mentions of one entity in a row begin
    nearest = np.empty((size, _NUM_ERRORS), np.int64)
    at = np.arange(size)
    for place in range(_NUM_ERRORS):
        at = np.maximum(at - 1, -1)
        # Before a row of mentions of one entity stands one of another.
        at = np.where((at >= 0) & (entity[at] == entity), run[at] - 1, at)
        nearest[:, place] = at = np.where(at >= first, at, -1)
    found = (nearest >= 0).sum(axis=1)
    # Where the right label is an antecedent, DN is an error in the place of the farthest.
    shifted = np.column_stack([np.full(size, -1), nearest[:, :-1]])
    old = gold >= 0
    return _Choices(
        gold, np.where(old[:, None], shifted, nearest), np.where(old, 1 + (shifted[:, 1:] >= 0).sum(axis=1), found)
    )


# ---- annotators ----


def _shared_out(num_mentions: int, per_mention: int, per_annotator: int, random: np.random.Generator) -> np.ndarray:
    """Give each mention different annotators at random, and each annotator equally many mentions.

    Annotators in turn are different ones for each mention. Then annotators of two mentions change places, at random,
    wherever both mentions keep different ones: the numbers stay as they are, and all ways to share out get equally
    probable.

    Returns
    -------
    codes of annotators, shape ``(mention, annotator of the mention)``, in the order of their first appearance.
    """
    num_annotators = max(-(-num_mentions * per_mention // per_annotator), per_mention)
    given = (np.arange(num_mentions * per_mention) % num_annotators).reshape(num_mentions, per_mention)
    half = num_mentions // 2
    for _ in range(_ROUNDS if half else 0):
        one, other = random.permutation(num_mentions)[: 2 * half].reshape(2, half)
        place, other_place = random.integers(per_mention, size=(2, half))
        mine, yours = given[one, place], given[other, other_place]
        free = ~(given[one] == yours[:, None]).any(axis=1) & ~(given[other] == mine[:, None]).any(axis=1)
        given[one[free], place[free]] = yours[free]
        given[other[free], other_place[free]] = mine[free]
    _, first, inverse = np.unique(given, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse].reshape(given.shape)


def _shares(errors: str, num_wrong: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Return what part of the errors on a mention goes to each wrong label, ``(mention, error)``."""
    shape = len(num_wrong), _NUM_ERRORS
    # Exponential variables divided by their sum are a draw from Dirichlet(1, …, 1).
    weight = random.standard_exponential(shape) if errors == "sparse" else np.ones(shape)
    weight *= np.arange(_NUM_ERRORS) < num_wrong[:, None]
    return weight / np.maximum(weight.sum(axis=1, keepdims=True), np.finfo(float).tiny)


def _wrong_choice(
    shares: np.ndarray, chosen: _Choices, mention: np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """Draw the error that each annotator would make, as an antecedent; anything where there is none."""
    below = shares.cumsum(axis=1)[mention]
    which = (random.random(len(mention))[:, None] >= below).sum(axis=1)
    # Parts that add up to a little less than one leave nothing beyond the last.
    return chosen.wrong[mention, np.clip(which, 0, np.maximum(chosen.num_wrong[mention] - 1, 0))]


# ---- profiles ----


def _sensitivities(scenario: str, source: str, profiles: Any) -> np.ndarray:
    """Return the profiles of a scenario, shape ``(profile, 2)``: sensitivity in DO and in DN."""
    if source == "synthetic":
        if profiles is not None:
            raise UnsupportedRequest(f"'{scenario}' has profiles of its own; use {' or '.join(SCENARIOS[2:])}")
        return np.array(SYNTHETIC_PROFILES)
    if profiles is None:
        raise UnsupportedRequest(f"'{scenario}' needs profiles: a table with the columns DO and DN")
    if isinstance(profiles, str | os.PathLike | Mapping) or hasattr(profiles, "columns"):
        table = read_table(profiles, _choose_columns)
        values = np.column_stack([table.numbers(name, what="a sensitivity") for name in ("DO", "DN")])
        for place, name in enumerate(("DO", "DN")):
            table.flag(table.empty(name), name, "the sensitivity is empty", "fill it in or delete the row")
            outside = (values[:, place] < 0) | (values[:, place] > 1)
            table.flag(outside, name, "a sensitivity from 0 to 1 is expected", "write the share of right labels")
        table.problems.raise_any()
        return values
    problems = Problems("the array of profiles")
    values = as_numbers(problems, profiles, "DO, DN")
    if values.ndim != 2 or values.shape[1] != 2 or not len(values):
        raise problems.fail(f"the shape is {values.shape}", "give one row for each profile, with DO and DN")
    for row, column in np.argwhere(~((values >= 0) & (values <= 1))).tolist():
        problems.add(
            "a sensitivity from 0 to 1 is expected", "give the share of right labels", row=f"row {row}",
            column=("DO", "DN")[column], value=values[row, column],
        )  # fmt: skip
    problems.raise_any()
    return values


def _choose_columns(names: list[str], problems: Problems) -> dict[str, int]:
    found = {name.upper(): position for position, name in enumerate(names)}
    for name in ("DO", "DN"):
        if name not in found:
            listed = ", ".join(map(repr, names))
            problems.add(f"there is no column '{name}'; the table has {listed}", "name it in the header", column=name)
    problems.raise_any()
    return {name: found[name] for name in ("DO", "DN")}
