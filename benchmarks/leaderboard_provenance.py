"""Coverage of the readings of a system: alone against the annotators, an own look by response model, and all of them.

Systems of known provenance are simulated: made from the labels, raters like the annotators, or such that know the truth
or guess it. A row of a table is one setting; the score that an interval has to hold is that in the population.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import pandas

import consilience as cs
from benchmarks.leaderboard_sums import predictions
from consilience.errors import ConsilienceWarning
from consilience.models.intervals import ends
from consilience.models.truth import Entries, LabelProbabilities
from consilience.models.truth.plausibilities import DirichletTruth

_CLASSES, _SYSTEMS, _SHARE_DRAWS = 3, 4, 300
_POPULATION = 200_000  # units by which the score of a system is found where it has no formula


@dataclass(frozen=True)
class Setting:
    """What is simulated.

    Parameters
    ----------
    system : "labels" (made from them), "raters", "knows" or "confused" (errors by class, and a constant system).
    units : how many a set has.
    concentration : of the plausibilities, five labels a unit; None where the truth is a label.
    prevalence, accuracy, annotators : of labels whose annotators are known.
    """

    system: str
    units: int
    concentration: float | None = None
    prevalence: tuple[float, ...] = ()
    accuracy: float = 0.0
    annotators: int = 5

    @property
    def name(self) -> str:
        """What a table calls it."""
        truth = f"Dirichlet({self.concentration})" if self.concentration else f"labels, {self.prevalence[0]:.2f}"
        return f"{self.system}, {truth}"


_LABELS = (((1 / 3,) * 3, 0.75, 3), ((0.7, 0.2, 0.1), 0.75, 3), ((0.9, 0.07, 0.03), 0.7, 2))
SETTINGS = (
    *(Setting(system, 200, concentration) for system in ("labels", "raters", "knows") for concentration in (0.15, 0.7)),
    *(Setting(system, 300, None, *crowd) for system in ("labels", "knows", "confused") for crowd in _LABELS),
)


def _labels(random: np.random.Generator, probability: np.ndarray, number: int) -> np.ndarray:
    drawn = random.random((len(probability), number, 1)) > probability.cumsum(axis=1)[:, None]
    return np.asarray(drawn.sum(axis=2).clip(0, probability.shape[1] - 1))


def _counts(labels: np.ndarray) -> np.ndarray:
    return np.asarray((labels[:, :, None] == np.arange(_CLASSES)).sum(axis=1))


def _units(setting: Setting, random: np.random.Generator, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return plausibilities or shares of the true label, the true class, and what the annotators make of it."""
    if setting.concentration is not None:
        shares = random.dirichlet(np.full(_CLASSES, setting.concentration), number)
        return shares, shares.argmax(axis=1), _counts(_labels(random, shares, setting.annotators))
    true = random.choice(_CLASSES, number, p=setting.prevalence)
    said = (number, setting.annotators)
    wrong = (true[:, None] + random.integers(1, _CLASSES, said)) % _CLASSES
    counts = _counts(np.where(random.random(said) < setting.accuracy, true[:, None], wrong))
    odds = np.log(setting.accuracy / (1 - setting.accuracy) * (_CLASSES - 1))
    log_weight = np.log(setting.prevalence) + counts * odds
    weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
    return np.eye(_CLASSES)[true], true, weight / weight.sum(axis=1, keepdims=True)


Predict = Callable[[np.random.Generator, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def _systems(setting: Setting, random: np.random.Generator) -> Iterator[Predict]:
    """Yield functions of plausibilities, true classes and what the annotators say: what a system predicts."""

    def knows_or(part: float, known: np.ndarray, other: np.ndarray, random: np.random.Generator) -> np.ndarray:
        return np.where(random.random(len(known)) < part, known, other)

    if setting.system == "raters":
        for number in random.permutation([1, 3, 7, 15]):
            yield lambda random, shares, true, seen, number=number: _highest(
                random, _counts(_labels(random, shares, int(number)))
            )
    elif setting.system == "confused":
        for _ in range(_SYSTEMS - 1):
            rows = random.dirichlet(np.ones(_CLASSES), _CLASSES) * 0.5 + np.diag(random.uniform(0.3, 3, _CLASSES))
            rows /= rows.sum(axis=1, keepdims=True)
            yield lambda random, shares, true, seen, rows=rows: _labels(random, rows[true], 1)[:, 0]
        yield lambda random, shares, true, seen: np.full(len(true), int(np.argmax(setting.prevalence)))
    else:
        highest = 1.0 if setting.system == "labels" else 0.95
        for part in random.choice([0.6, 0.7, 0.8, 0.9, highest], _SYSTEMS, replace=False):
            if setting.system == "labels":
                yield lambda random, shares, true, seen, part=part: knows_or(
                    part, _highest(random, seen), random.integers(0, _CLASSES, len(true)), random
                )
            else:
                yield lambda random, shares, true, seen, part=part: knows_or(
                    part, true, (true + random.integers(1, _CLASSES, len(true))) % _CLASSES, random
                )


def _highest(random: np.random.Generator, weight: np.ndarray) -> np.ndarray:
    return np.asarray((weight + 1e-6 * random.random(weight.shape)).argmax(axis=1))


def _truth(setting: Setting, seen: np.ndarray, seed: int) -> Any:
    if setting.concentration is None:
        return LabelProbabilities.dense(seen, key=jax.random.key(seed), num_draws=_SHARE_DRAWS)
    concentration = (seen + setting.concentration).ravel()
    entries = Entries.dense(*seen.shape)
    return DirichletTruth(entries, concentration, 0.0, key=jax.random.key(seed), num_draws=_SHARE_DRAWS)


def _one(setting: Setting, seed: int) -> pandas.DataFrame:
    """Return a row for each system of a set: which of its intervals hold, and whether it is taken for a copy."""
    random = np.random.default_rng([seed, 0])
    shares, true, seen = _units(setting, random, setting.units)
    many = _units(setting, random, _POPULATION // 10 if setting.system == "knows" else _POPULATION)
    systems = list(_systems(setting, random))
    codes = [predict(random, shares, true, seen) for predict in systems]
    said = {f"system {number}": predictions(own, _CLASSES) for number, own in enumerate(codes)}
    score = np.array([(predict(random, *many) == many[1]).mean() for predict in systems])
    truth = _truth(setting, seen, seed)
    unknown = cs.compare(truth, said, seed=seed)
    word = "annotations" if setting.system == "labels" else "independent"
    stated = cs.compare(truth, said, seed=seed, provenance=word)
    assert unknown.own_draws is not None
    forms = ["knows"] if len(unknown.own_draws) == 1 else ["ambiguity", "knows"]
    draws = {"alone": unknown.draws, **dict(zip(forms, unknown.own_draws, strict=True))}
    ends_of = {name: np.quantile(own, ends(), axis=1) for name, own in draws.items()}
    for name, found in (("as stated", stated), ("unknown", unknown)):
        table = found.table.set_index("system").loc[list(said)]
        ends_of[name] = table[["lower", "upper"]].to_numpy().T
    held = {name: (low <= score) & (score <= high) for name, (low, high) in ends_of.items()}
    bias = {f"{name} bias": own.mean(axis=1) - score for name, own in draws.items()}
    copy = np.array([word == "annotations" for word in unknown.provenance])
    return pandas.DataFrame({**held, **bias, "taken for a copy": copy})


def coverage(sets: int = 25, settings: tuple[Setting, ...] = SETTINGS, seed: int = 0) -> pandas.DataFrame:
    """Return, by setting, which share of intervals holds, biases, and how often a system is taken for a copy."""
    rows = []
    for setting in settings:
        every = pandas.concat([_one(setting, seed + number) for number in range(sets)])
        rows.append({"setting": setting.name, "sets": sets, **every.mean().to_dict()})
    return pandas.DataFrame(rows)


def worst_case(units: int = 2000, seed: int = 0) -> pandas.DataFrame:
    """Compare the truth and the majority of five ambiguous labels, by what is said of where they come from."""
    random, setting = np.random.default_rng(seed), Setting("labels", units, 0.7)
    _, true, seen = _units(setting, random, units)
    truth = _truth(setting, seen, seed)
    systems = {"truth": predictions(true, _CLASSES), "majority": predictions(_highest(random, seen), _CLASSES)}
    rows = []
    for words in ("annotations", "unknown", "mixed", {"truth": "independent", "majority": "annotations"}):
        table = cs.compare(truth, systems, provenance=words, seed=seed).table
        words = words if isinstance(words, str) else "stated"
        columns = ["system", "rank", "value", "lower", "upper", "p_best_lower", "p_best_upper"]
        rows += [{"provenance": words, **row} for row in table[columns].to_dict("records")]
    return pandas.DataFrame(rows)


def refits(sets: int = 100, model: str = "dawid-skene", seed: int = 1, **options: Any) -> dict[str, Any]:
    """Return coverage, width and bias of the own look by refits: 300 units, 10 annotators of which 3 label each."""
    units, annotators, random, held = 300, 10, np.random.default_rng(seed), []
    for number in range(sets):
        accuracy, prevalence = random.uniform(0.6, 0.9, annotators), random.dirichlet(np.full(_CLASSES, 4.0))
        wrong = (1 - accuracy)[:, None, None] / (_CLASSES - 1)
        rows = np.where(np.eye(_CLASSES, dtype=bool), accuracy[:, None, None], wrong)
        rows = np.stack([[random.dirichlet(20 * row) for row in one] for one in rows])
        true = random.choice(_CLASSES, units, p=prevalence)
        who = np.argsort(random.random((units, annotators)), axis=1)[:, :3]
        label = _labels(random, rows[who, true[:, None]].reshape(-1, _CLASSES), 1).ravel()
        part, guess = random.uniform(0.5, 0.95), random.dirichlet(np.full(_CLASSES, 2.0))
        said = np.where(random.random(units) < part, true, random.choice(_CLASSES, units, p=guess))
        score = part + (1 - part) * prevalence @ guess
        data = cs.Annotations.from_codes(
            np.repeat(np.arange(units), 3), who.ravel(), label, num_items=units, num_annotators=annotators,
            num_labels=_CLASSES,
        )  # fmt: skip
        fit = cs.fit(model, data, progress=False, seed=number, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConsilienceWarning)
            found = cs.compare(fit, {"one": predictions(said, _CLASSES)}, provenance="independent", seed=number)
        assert found.own_draws is not None
        assert found.own_values is not None
        low, high = np.quantile(found.own_draws[0, 0], ends())
        lower, upper = found.table.loc[0, ["lower", "upper"]]
        held.append((low <= score <= high, high - low, found.own_values[0, 0] - score, lower <= score <= upper))
    names = ("refit holds", "width", "bias", "interval holds")
    return {"model": model, "sets": sets, **dict(zip(names, np.mean(held, axis=0).tolist(), strict=True))}
