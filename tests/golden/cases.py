"""The data of the golden figures: one small set for each contract, from fixed seeds, and which member has which.

All data are made with NumPy and the public readers, so that no simulation of a member has a part in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import consilience as cs
from consilience.data import Chains

__all__ = ["CASES", "Case", "Study"]


@dataclass(frozen=True)
class Study:
    """Data of one kind, and what is asked of every fit of them.

    Parameters
    ----------
    kind : of the truth: classes, partition, chains or views.
    data : the contract.
    systems : what is evaluated and compared.
    metrics : by which.
    """

    kind: str
    data: Any
    systems: Mapping[str, Any]
    metrics: tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """One member's data and options.

    Parameters
    ----------
    study : function that makes the data.
    options : of the member.
    methods : those to run; all that the member lists where it is empty.
    by_method : further options of a method.
    """

    study: Callable[[], Study]
    options: Mapping[str, Any] = field(default_factory=dict)
    methods: tuple[str, ...] = ()
    by_method: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def _names(letter: str, number: int) -> list[str]:
    return [f"{letter}{code}" for code in range(number)]


def crowd(num_items: int = 24, num_annotators: int = 6, labels: tuple[str, ...] = ("a", "b", "c")) -> Study:
    """Make annotations by people of whom the last guesses, and two systems that name two labels an item."""
    random = np.random.default_rng(1)
    true = random.choice(len(labels), num_items, p=[0.5, 0.3, 0.2])
    rows: dict[str, list[str]] = {"item": [], "annotator": [], "label": []}
    for item in range(num_items):
        for annotator in sorted(random.choice(num_annotators, 4, replace=False)):
            right = random.random() < (0.3 if annotator == num_annotators - 1 else 0.85 - 0.08 * annotator)
            label = true[item] if right else random.integers(len(labels))
            for column, value in zip(rows, (f"i{item}", f"w{annotator}", labels[label]), strict=True):
                rows[column].append(value)
    data = cs.read_annotations(rows, labels=labels)
    return Study("classes", data, _systems(random, true, labels), ("top-1", "top-2", "set-2"))


def _systems(random: np.random.Generator, true: np.ndarray, labels: tuple[str, ...]) -> dict[str, Any]:
    """Rank the classes of every item with the true one first, more or less often."""
    systems = {}
    for name, skill in (("good", 0.8), ("poor", 0.4)):
        score = random.random((len(true), len(labels)))
        score[np.arange(len(true)), true] += random.random(len(true)) < skill
        item, label = np.indices(score.shape).reshape(2, -1)
        table = {"item": [f"i{code}" for code in item], "class": [labels[code] for code in label]}
        systems[name] = cs.read_predictions({**table, "score": score.ravel()}, classes=labels, name=name)
    return systems


def ratings() -> Study:
    """Make numbers about 20 items by four people."""
    random = np.random.default_rng(2)
    true = random.normal(0.3, 1.0, 20)
    item, annotator = np.indices((20, 4)).reshape(2, -1)
    rating = np.round(true[item] + random.normal(0, 0.7, len(item)), 3)
    rows = {"item": [f"i{code}" for code in item], "annotator": [f"w{code}" for code in annotator], "rating": rating}
    systems = {}
    for name, noise in (("good", 0.4), ("poor", 2.0)):
        guess = np.where(true + random.normal(0, noise, 20) > 0, "above", "below")
        systems[name] = cs.read_predictions(
            {"item": _names("i", 20), "class": guess}, classes=("below", "above"), name=name
        )
    return Study("classes", cs.read_ratings(rows), systems, ("top-1",))


def rankings() -> Study:
    """Make partial rankings with ties, of six classes by three people."""
    random = np.random.default_rng(3)
    classes = tuple("abcdef")
    true = random.integers(len(classes), size=14)
    rows: dict[str, list[Any]] = {"item": [], "annotator": [], "class": [], "rank": []}
    for item in range(len(true)):
        for annotator in range(3):
            score = random.random(len(classes))
            score[true[item]] += 0.5
            for rank, code in enumerate(np.argsort(-score)[: random.integers(1, 4)]):
                tied = max(1, rank) if random.random() < 0.3 else rank + 1
                for column, value in zip(rows, (f"i{item}", f"w{annotator}", classes[code], tied), strict=True):
                    rows[column].append(value)
    systems = _systems(random, true, classes)
    data = cs.read_rankings(rows, classes=classes)
    return Study("classes", data, systems, ("top-1", "top-3", "top-3-target-2", "set-2"))


def records() -> Study:
    """Make 36 records of two files with errors and gaps, and two partitions."""
    random = np.random.default_rng(4)
    sizes = (7, 6, 5, 4)
    entity = np.concatenate([np.arange(24), random.choice(24, 12, replace=False)])
    true = np.stack([random.integers(size, size=24) for size in sizes], axis=1)[entity]
    wrong = random.random(true.shape) < 0.08
    true = np.where(wrong, np.stack([random.integers(size, size=36) for size in sizes], axis=1), true)
    texts = np.array([[f"{name}{code}" for name, code in zip("pqrs", row, strict=True)] for row in true], object)
    texts[random.random(true.shape) < 0.04] = ""
    files = {}
    for name, chosen in (("one", slice(0, 24)), ("two", slice(24, 36))):
        columns = {f"field_{number}": texts[chosen, number].tolist() for number in range(len(sizes))}
        files[name] = {"id": _names("r", 36)[chosen], "entity": entity[chosen].astype(str).tolist(), **columns}
    systems = {}
    for name, share in (("good", 0.15), ("poor", 0.5)):
        guess = np.where(random.random(36) < share, random.integers(24, size=36), entity)
        systems[name] = cs.read_partition({"record": _names("r", 36), "entity": guess.astype(str)}, name=name)
    data = cs.read_records(files, id="id", entity="entity")
    metrics = ("pairwise-f1", "b3-f1", "cluster-f1", "merge-moves", "variation-of-information")
    return Study("partition", data, systems, metrics)


def few_records() -> Study:
    """Make nine records, few enough for methods that follow gradients and sum over all links."""
    fields = {"first": list("aabbccdde"), "second": list("xxyyzzxwx"), "third": list("kkllmmnno")}
    names = _names("r", 9)
    data = cs.read_records({"id": names, "entity": list("001122334"), **fields}, id="id", entity="entity")
    systems = {
        "good": cs.read_partition({"record": names, "entity": list("001122344")}, name="good"),
        "poor": cs.read_partition({"record": names, "entity": list("010122344")}, name="poor"),
    }
    return Study("partition", data, systems, ("pairwise-f1", "b3-f1"))


def constraints() -> Study:
    """Make the answers of four experts, of whom each pair has a view of its own, and two features a view."""
    random = np.random.default_rng(5)
    num_items = 14
    cluster = np.stack([np.arange(num_items) % 2, np.arange(num_items) // 7])
    features: dict[str, Any] = {"item": _names("i", num_items)}
    for view in range(2):
        for number in range(2):
            values = 2.0 * cluster[view] + random.normal(0, 0.6, num_items)
            features[f"feature_{view}{number}"] = np.round(values, 3)
    rows: dict[str, list[str]] = {"expert": [], "item_a": [], "item_b": [], "answer": []}
    for expert in range(4):
        for _ in range(30):
            a, b = sorted(random.choice(num_items, 2, replace=False))
            together = (cluster[expert // 2, a] == cluster[expert // 2, b]) == (random.random() < 0.9)
            answer = "together" if together else "apart"
            for column, value in zip(rows, (f"e{expert}", f"i{a}", f"i{b}", answer), strict=True):
                rows[column].append(value)
    systems = {
        name: cs.read_partition({"record": _names("i", num_items), "entity": codes.astype(str)}, name=name)
        for name, codes in zip(("first", "second"), cluster, strict=True)
    }
    return Study("views", cs.read_constraints(rows, features=features), systems, ("pairwise-f1", "b3-f1", "nmi"))


def mentions() -> Study:
    """Make the annotations of 16 mentions of two documents by five people, and the chains of two systems."""
    random = np.random.default_rng(6)
    entity = np.array([0, 1, 0, 2, 0, 1, -1, 2, 3, 4, 3, 3, 5, 4, -1, 5])
    rows: dict[str, list[Any]] = {
        name: [] for name in ("document_id", "mention_id", "start", "end", "annotator_id", "annotation")
    }
    for mention in range(16):
        document = mention // 8
        earlier = np.arange(8 * document, mention)
        own = earlier[entity[earlier] == entity[mention]]
        right = "NR" if entity[mention] < 0 else f"DO(m{own[-1]})" if len(own) else "DN"
        wrong = ["DN", "NR", *(f"DO(m{other})" for other in earlier)]
        for annotator in range(5):
            label = right if random.random() < 0.9 - 0.12 * annotator else wrong[random.integers(len(wrong))]
            place = 3 * (mention % 8)
            row = (f"d{document}", f"m{mention}", place, place + 1, f"w{annotator}", label)
            for column, value in zip(rows, row, strict=True):
                rows[column].append(value)
    start = 3 * (np.arange(16) % 8)
    systems = {}
    for name, share in (("good", 0.1), ("poor", 0.4)):
        guess = np.where(random.random(16) < share, 8 + np.arange(16), entity)
        guess = np.where(guess < 0, -1, guess + 30 * (np.arange(16) // 8))
        systems[name] = Chains.from_spans(np.arange(16) // 8, start, start + 1, guess, documents=["d0", "d1"])
    return Study("chains", cs.read_mentions(rows), systems, ("conll", "muc", "b3", "ceafe", "lea", "blanc"))


_GRADIENTS = ("nuts", "svi")

CASES: dict[str, dict[str, Case]] = {
    "dirichlet": {"annotations": Case(crowd, {"reliability": 1.5, "alpha": 1.3})},
    "normal-inverse-gamma": {"ratings": Case(ratings, {"threshold": 0.0})},
    "majority-vote": {
        "annotations": Case(crowd), "shares": Case(crowd, {"uncertainty": "shares"}), "mentions": Case(mentions),
    },
    "dawid-skene": {
        "annotations": Case(crowd), "flat": Case(crowd, {"diagonal": 1.0, "dependence": 0.0}, ("cavi", "gibbs")),
    },
    "mace": {
        "annotations": Case(crowd),
        "published": Case(crowd, {"prevalence": "uniform", "dependence": 0.0}, ("cavi", "gibbs", "em")),
    },
    "one-coin": {"annotations": Case(crowd)},
    "glad": {"annotations": Case(crowd)},
    "mpa": {
        "annotations": Case(crowd), "mentions": Case(mentions, {"coreference": "links"}, ("cavi", "gibbs")),
        "joint": Case(crowd, {"decisions": "joint"}, ("cavi", "gibbs")),
        "learned": Case(crowd, {"hyperparameters": "learned"}, ("cavi",)),
    },
    "irn": {"rankings": Case(rankings)},
    "prirn": {"rankings": Case(rankings, {"reliability": 8.0})},
    "plackett-luce": {
        "rankings": Case(rankings, {"reliability": 2.0}),
        "power": Case(rankings, {"reliability": 2.0, "tempering": "power"}, ("nuts",)),
    },
    "block-linkage": {
        "records": Case(records, methods=("em", "gibbs")),
        "across": Case(records, {"restriction": "across"}, ("em",)),
        "dirichlet-multinomial": Case(records, {"likelihood": "dirichlet-multinomial"}, ("em",)),
        "error-classes": Case(records, {"likelihood": "error-classes"}, ("em", "gibbs")),
        "few": Case(few_records, methods=("nuts",)),
    },
    "dirichlet-entity": {
        "records": Case(records, methods=("cavi",)),
        "dense": Case(few_records, {"support": "dense"}, ("cavi",)),
        "few": Case(few_records, methods=_GRADIENTS),
    },
    "hit-miss": {
        "records": Case(records, methods=("gibbs",)),
        "entities": Case(records, {"prior": "entities"}, ("gibbs",)),
        "few": Case(few_records, methods=("nuts",)),
    },
    "expert-views": {
        "constraints": Case(
            constraints, {"clusters": 2, "views": 2}, by_method={
                "cavi": {"restarts": 3}, "gibbs": {"restarts": 3}, "nuts": {"cluster": "pair"},
                "svi": {"cluster": "pair"},
            },
        ),
        "symmetric": Case(constraints, {"clusters": 2, "views": 2, "experts": "symmetric", "restarts": 3}, ("cavi",)),
    },
}  # fmt: skip
"""By member, then by name of the case."""
