"""Do the intervals and probabilities of a leaderboard hold? Part of the benchmark `leaderboard`.

**Shared**: two classes; annotators of one unknown accuracy, Beta(4, 2), label every item; three systems copy their
majority with a probability of their own and guess otherwise, so that the annotators alone tell all that there is. The
posterior is computed on a grid and handed to `consilience.compare` as draws. **Independent**: plausibilities with a
Dirichlet posterior; systems are functions of the annotations. **Few**: scores that are known, of 8 to 200 items.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import consilience as cs
from benchmarks.recording import Kept, Recording, grouped
from consilience.data import Annotations, Predictions
from consilience.models.truth import LabelDraws

SHARED = ((20, 3, 400), (100, 3, 400), (300, 3, 200), (300, 5, 200))
"""Items, annotators, sets."""

INDEPENDENT = (0.92, 0.78, 0.68)
"""Certainties."""

FEW = ((8, 0.6, 0.5), (20, 0.6, 0.5), (8, 0.9, 0.8), (20, 0.9, 0.8), (50, 0.9, 0.8), (8, 0.98, 0.95), (20, 0.98, 0.95),
       (50, 0.98, 0.95), (200, 0.98, 0.95))  # fmt: skip
"""Items, and the accuracies of two systems."""

_GRID = np.linspace(0.005, 0.995, 199)
_BINS = np.array([0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0001])
_DRAWS = 600


def predictions(codes: np.ndarray, num_classes: int) -> Predictions:
    """Return a system that names one class an item."""
    return Predictions.from_lists([[str(code)] for code in codes], classes=[str(code) for code in range(num_classes)])


def judged(comparison: cs.Comparison, population: np.ndarray) -> dict[str, Any]:
    """Return whether the intervals of systems and of the first difference hold, and what is said of the best."""
    table = comparison.table.set_index("system").loc[list(comparison.systems)]
    low, high = table["lower"].to_numpy(), table["upper"].to_numpy()
    found = {"held": float(((low <= population) & (population <= high)).mean()), "width": float((high - low).mean())}
    if len(population) > 1:
        row = comparison.pairs.set_index(["a", "b"])
        first, second = comparison.systems[:2]
        a, b = (first, second) if (first, second) in row.index else (second, first)
        true = population[0] - population[1] if a == first else population[1] - population[0]
        found["difference held"] = bool(row.loc[(a, b), "lower"] <= true <= row.loc[(a, b), "upper"])
        found["p_best"] = table["p_best"].round(4).tolist()
        found["best"] = (population == population.max()).tolist()
    return found


# ---- annotators of one unknown accuracy ----


def shared_set(num_items: int, num_annotators: int, seed: int) -> dict[str, Any]:
    """Simulate one set, and compare three systems."""
    random = np.random.default_rng([1, num_items, num_annotators, seed])
    accuracy, truth = random.beta(4, 2), random.integers(0, 2, num_items)
    right = random.random((num_items, num_annotators)) < accuracy
    ones = np.where(right, truth[:, None], 1 - truth[:, None]).sum(axis=1)
    majority = (2 * ones > num_annotators).astype(int)
    copies = random.uniform(0.6, 1, 3)
    guesses = random.integers(0, 2, (3, num_items))
    named = np.where(random.random((3, num_items)) < copies[:, None], majority, guesses)
    at_least = range((num_annotators + 1) // 2, num_annotators + 1)
    of_majority = sum(
        math.comb(num_annotators, k) * accuracy**k * (1 - accuracy) ** (num_annotators - k) for k in at_least
    )
    population = copies * of_majority + (1 - copies) / 2
    # The posterior on the grid: sum_i log(a^s b^(R-s) + b^s a^(R-s)), b = 1 - a.
    log, log_not = np.log(_GRID), np.log(1 - _GRID)
    other = num_annotators - ones
    each = np.logaddexp(np.outer(ones, log) + np.outer(other, log_not), np.outer(other, log) + np.outer(ones, log_not))
    weight = each.sum(axis=0) + 3 * log + log_not
    weight = np.exp(weight - weight.max())
    drawn = random.choice(len(_GRID), _DRAWS, p=weight / weight.sum())
    one = 1 / (1 + np.exp(-np.outer(2 * ones - num_annotators, log - log_not)))[:, drawn]
    labels = (random.random(one.shape) < one).astype(int)
    systems = {f"system {k}": predictions(codes, 2) for k, codes in enumerate(named)}
    return judged(cs.compare(LabelDraws(labels.T, 2), systems, provenance="annotations", seed=seed), population)


# ---- independent plausibilities ----


def independent_set(certainty: float, seed: int, num_items: int = 200) -> dict[str, Any]:
    """Simulate three raters an item whose class shares are Dirichlet, and systems made of their labels.

    The concentration of the classes is found by bisection so that the mean certainty is about what is asked for.
    """
    random = np.random.default_rng([2, round(100 * certainty), seed])
    concentration, raters = {0.92: (0.15, 5), 0.78: (0.7, 5), 0.68: (1.5, 5)}[certainty]
    shares = random.dirichlet(np.full(3, concentration), num_items)
    counts = np.array([random.multinomial(raters, own) for own in shares])
    fit = cs.fit("dirichlet", Annotations.from_counts(counts, labels=list("012")), alpha=concentration, seed=seed)
    quality = random.uniform(0.6, 1, 4)
    top = counts + random.random(counts.shape) / 2
    named = np.where(random.random((4, num_items)) < quality[:, None], top.argmax(axis=1),
                     random.integers(0, 3, (4, num_items)))  # fmt: skip
    population = quality * _vote_accuracy(concentration, raters) + (1 - quality) / 3
    systems = {f"system {k}": predictions(codes, 3) for k, codes in enumerate(named)}
    comparison = cs.compare(fit, systems, provenance="annotations", seed=seed, exact=False)
    return judged(comparison, population) | {"certainty": cs.certainty(fit).value}


_VOTES: dict[tuple[float, int], float] = {}


def _vote_accuracy(concentration: float, raters: int) -> float:
    """Return how often the vote is the class with the largest share, in the population."""
    if (concentration, raters) not in _VOTES:
        random = np.random.default_rng(0)
        shares = random.dirichlet(np.full(3, concentration), 400_000)
        counts = random.multinomial(raters, shares)
        vote = (counts + random.random(counts.shape) / 2).argmax(axis=1)
        _VOTES[concentration, raters] = float((vote == shares.argmax(axis=1)).mean())
    return _VOTES[concentration, raters]


# ---- known scores, few items ----


def few_set(num_items: int, accuracies: tuple[float, float], seed: int) -> dict[str, Any]:
    """Simulate two systems that go together on seven items of ten, against a truth that is known."""
    random = np.random.default_rng([3, num_items, round(100 * accuracies[0]), seed])
    common = random.random(num_items)
    other = np.where(random.random(num_items) < 0.7, common, random.random(num_items))
    right = np.stack([common < accuracies[0], other < accuracies[1]]).astype(int)
    systems = {f"system {k}": predictions(1 - own, 2) for k, own in enumerate(right)}
    truth = LabelDraws(np.zeros((1, num_items), int), 2)
    return judged(cs.compare(truth, systems, provenance="annotations", seed=seed), np.array(accuracies))


# ---- all of it ----


def measure_sums(kept: Kept, share: float = 1.0) -> None:
    """Measure what is not kept: all sets, or the first share of them."""
    for num_items, num_annotators, sets in SHARED:
        for seed in range(round(share * sets)):
            key = (num_items, num_annotators, seed)
            kept.row("shared", key, lambda key=key: {"items": key[0], "annotators": key[1], **shared_set(*key)})
    for certainty in INDEPENDENT:
        for seed in range(round(share * 100)):
            key = (certainty, seed)
            kept.row("independent", key, lambda key=key: {"of": key[0], **independent_set(*key)})
    for num_items, *accuracies in FEW:
        for seed in range(round(share * 400)):
            key = (num_items, accuracies[0], seed)
            kept.row("few", key, lambda key=key, own=tuple(accuracies): {
                "items": key[0], "accuracies": f"{own[0]}, {own[1]}", **few_set(key[0], own, key[2])
            })  # fmt: skip


def coverage(rows: dict[tuple[Any, ...], dict[str, Any]], names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return how often intervals hold, by setting."""
    found = []
    for values, own in grouped(list(rows.values()), names).items():
        row = dict(zip(names, values, strict=True)) | {"sets": len(own)}
        columns = {"interval holds": "held", "width": "width", "difference holds": "difference held"}
        found.append(row | {title: np.mean([one[name] for one in own]) for title, name in columns.items()})
    return found


def best_as_said(rows: dict[tuple[Any, ...], dict[str, Any]], names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return how often a system was the best, by what was said of it; bins of at least 16 cases."""
    found = []
    for values, own in grouped(list(rows.values()), names).items():
        said = np.array([one for row in own for one in row["p_best"]])
        best = np.array([one for row in own for one in row["best"]])
        for low, high in zip(_BINS[:-1], _BINS[1:], strict=True):
            inside = (said >= low) & (said < high)
            if inside.sum() > 15:
                found.append(dict(zip(names, values, strict=True)) | {
                    "cases": int(inside.sum()), "P(best) said": said[inside].mean(), "was best": best[inside].mean()
                })  # fmt: skip
    return found


def tell_sums(record: Recording, kept: Kept) -> None:
    """Record the tables."""
    record.say("Annotators of one unknown accuracy; systems made of their labels; nominal 95 % intervals.")
    record.table("shared", coverage(kept.rows("shared"), ("items", "annotators")))
    record.table("best", best_as_said(kept.rows("shared"), ("items", "annotators")))
    record.say("Plausibilities with a Dirichlet posterior, 200 items, four systems made of the labels.")
    record.table("independent", coverage(kept.rows("independent"), ("of",)))
    record.say("Scores that are known, 0 or 1, of few items.")
    record.table("few", coverage(kept.rows("few"), ("items", "accuracies")))
