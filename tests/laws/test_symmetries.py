"""The symmetries that every member has over every contract that it takes, from what the contracts declare."""

import itertools
import pickle
import subprocess
import sys

import numpy as np
import pytest

import consilience as cs
from consilience import models
from consilience.data import Annotations, Constraints, Mentions, Rankings, Ratings, Records
from consilience.errors import UnsupportedRequest
from consilience.models.truth.truth import Mass

pytestmark = [
    pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning"),
    pytest.mark.filterwarnings("ignore::consilience.errors.InputWarning"),
]

_ITEMS = [f"i{number}" for number in range(8)]
_SIZE = dict(zip(_ITEMS, [1.0, 1.2, 1.4, 1.6, 8.0, 8.2, 8.4, 8.6], strict=True))
_AGE = dict(zip(_ITEMS, [2.0, 9.0, 2.4, 9.2, 2.2, 9.4, 2.6, 9.6], strict=True))


def crowd():
    """Three annotators who mostly agree on five items of three classes; the last class is not seen."""
    said = {"a": "ppq", "b": "qqq", "c": "rr-", "d": "rpr", "e": "p-p"}
    rows = [(item, who, label) for item, labels in said.items() for who, label in zip("xyz", labels, strict=True)]
    return list(zip(*[row for row in rows if row[2] != "-"], strict=True))


def annotations():
    item, annotator, label = crowd()
    return cs.read_annotations({"item": item, "annotator": annotator, "label": label}, labels=["p", "q", "r", "never"])


def ratings():
    item, annotator, label = crowd()
    offset = {"x": 0.1, "y": -0.2, "z": 0.15}
    rating = ["pqr".index(one) - 1 + offset[who] for who, one in zip(annotator, label, strict=True)]
    return cs.read_ratings({"item": item, "annotator": annotator, "rating": rating})


def rankings():
    """The first choice is the crowd's label, and the next class in a circle comes second."""
    item, annotator, label = crowd()
    second = ["pqr"["qrp".index(one)] for one in label]
    columns = {"item": [*item, *item], "annotator": [*annotator, *annotator], "class": [*label, *second]}
    return cs.read_rankings({**columns, "rank": [1] * len(item) + [2] * len(item)})


def mentions():
    said = {"m1": ("DN", "DN", "DN"), "m2": ("DO(m1)", "DO(m1)", "DN"), "m3": ("NR", "NR", "NR"),
            "m4": ("DO(m2)", "DN", "DO(m2)"), "m5": ("DN", "DN", "DO(m4)")}  # fmt: skip
    rows = [(name, who, one) for name, labels in said.items() for who, one in zip("xyz", labels, strict=True)]
    columns = zip(*rows, strict=True)
    return cs.read_mentions(dict(zip(("mention_id", "annotator_id", "annotation"), columns, strict=True)))


def records():
    return cs.read_records(
        {
            "left": {"id": ["r1", "r2", "r3", "r4"], "name": ["vogt", "born", "lang", "noll"],
                     "year": ["1951", "1960", "1947", "1972"], "street": ["elm", "oak", "fir", "yew"]},
            "right": {"id": ["s1", "s2", "s3", "s4"], "name": ["vogt", "born", "witt", "kern"],
                      "year": ["1951", "1960", "1980", "1981"], "street": ["elm", "oak", "lime", "box"]},
        }
    )  # fmt: skip


def constraints():
    """Experts x and y judge by size, w and z by age."""
    pairs = list(itertools.combinations(_ITEMS, 2))
    table = {"expert": [], "item_a": [], "item_b": [], "answer": []}
    for expert, value in (("w", _AGE), ("x", _SIZE), ("y", _SIZE), ("z", _AGE)):
        answers = [abs(value[a] - value[b]) < 3 for a, b in pairs]
        for column, values in zip(table, ([expert] * len(pairs), *zip(*pairs, strict=True), answers), strict=True):
            table[column] += values
    table["answer"] = ["together" if one else "apart" for one in table["answer"]]
    features = {"item": _ITEMS, "size": list(_SIZE.values()), "age": list(_AGE.values())}
    return cs.read_constraints(table, features=features)


DATA = {
    Annotations: annotations, Ratings: ratings, Rankings: rankings, Mentions: mentions, Records: records,
    Constraints: constraints,
}  # fmt: skip
OPTIONS = {
    "dirichlet": {"reliability": 1.5}, "prirn": {"reliability": 8.0}, "normal-inverse-gamma": {"threshold": 0.0},
    "plackett-luce": {"reliability": 2.0, "chains": 2, "warmup": 200},
    "dirichlet-entity": {"support": "dense"},  # an anchored support looks at earlier records only
    "hit-miss": {"chains": 1, "warmup": 200}, "expert-views": {"clusters": 2, "draws": 200},
    "mpa": {"coreference": "links"},  # of whole chains the order of mentions counts
}  # fmt: skip
SUBJECTS = [
    (name, contract) for name in models.names() for contract in models.place(name).takes
]
ONE_REPORT = {
    Annotations: lambda: cs.read_annotations({"item": ["a"], "annotator": ["x"], "label": ["p"]}, labels=["p", "q"]),
    Ratings: lambda: cs.read_ratings({"item": ["a"], "annotator": ["x"], "rating": [1.5]}),
    Rankings: lambda: cs.read_rankings({"item": ["a"], "annotator": ["x"], "class": ["p"], "rank": [1]}),
    Mentions: lambda: cs.read_mentions({"mention_id": ["m"], "annotator_id": ["x"], "annotation": ["DN"]}),
    Records: lambda: cs.read_records({"id": ["r"], "name": ["vogt"], "year": ["1951"]}),
    Constraints: lambda: cs.read_constraints(
        {"expert": ["x"], "item_a": ["i"], "item_b": ["j"], "answer": ["apart"]},
        features={"item": ["i", "j"], "size": [1.0, 2.0]},
    ),
}


class Subject:
    """A member and data of one of its contracts; fits are made once."""

    def __init__(self, name, contract):
        self.member = models.member(name)
        (self.contract,) = (one for one in DATA if one.__name__ == contract)
        self.data = DATA[self.contract]()
        self.fits = {}

    def fit(self, what, data):
        if what not in self.fits:
            options = {"draws": 1000, "seed": 1, **OPTIONS.get(self.member.name, {})}
            self.fits[what] = cs.fit(self.member, data, **options)
        return self.fits[what]

    @property
    def plain(self):
        return self.fit("plain", self.data)


@pytest.fixture(scope="module", params=SUBJECTS, ids="-".join)
def subject(request):
    return Subject(*request.param)


def answers(fitted):
    """Return what a fit says, as probabilities by the users' own ids: of classes, of pairs, or of common views."""
    for name, ends in (("pairs", ("record_a", "record_b")), ("same_view", ("expert_a", "expert_b"))):
        if name in fitted.member.table_names:
            table = fitted.table(name)
            pairs = (frozenset(pair) for pair in zip(*(table[end] for end in ends), strict=True))
            return dict(zip(pairs, table["probability"], strict=True))
    truth = fitted.truth
    blocks = truth.blocks(Mass(np.arange(truth.num_classes), truth.num_classes))
    mass = np.concatenate([block.real.mean(axis=1) for block in blocks])
    items, classes = truth.names(), truth.names("class", truth.num_classes)
    return {(item, name): mass[i, c] for i, item in enumerate(items) for c, name in enumerate(classes)}


def error(fitted):
    """Return five Monte Carlo errors of a difference of probabilities; of a chain's draws one in four counts."""
    number = fitted.truth.num_draws / (4 if fitted.method == "gibbs" else 1)
    return 1e-6 + 5 * np.sqrt(2 * 0.25 / number) if number > 1 else 1e-6


def largest_difference(one, other):
    return max((abs(one.get(key, 0.0) - other.get(key, 0.0)) for key in one.keys() | other.keys()), default=0.0)


def rename_all(data):
    """Give all things other codes, and reports another order, at once."""
    random = np.random.default_rng(5)
    for dimension, names in data.ids.items():
        # The classes of mentions are fixed, and those of annotations are their labels.
        if dimension != "class" or isinstance(data, Rankings):
            data = data.renamed(dimension, random.permutation(len(names)))
    return data.reordered(random.permutation(data.size_of(data.rows)))


def with_wrong_ids(found):
    """Return answers of which three units have got each other's: the data tell these apart, so that this shows."""
    units = sorted({unit for key in found for unit in (key if isinstance(key, frozenset) else key[:1])})
    after = dict(zip(units, [units[1], units[2], units[0], *units[3:]], strict=True))
    return {
        frozenset(map(after.get, key)) if isinstance(key, frozenset) else (after[key[0]], *key[1:]): value
        for key, value in found.items()
    }


def exact_answers(fitted):
    """Return certainties in closed form by item, where there are any."""
    try:
        table = cs.certainty(fitted, exact=True).table
    except UnsupportedRequest:
        return {}
    return dict(zip(table["item"], table["certainty"], strict=True))


def test_codes_and_the_order_of_reports_do_not_matter(subject):
    plain, other = subject.plain, subject.fit("renamed", rename_all(subject.data))
    found = answers(plain)
    assert largest_difference(found, answers(other)) < error(plain)
    assert largest_difference(found, with_wrong_ids(found)) > error(plain)
    if plain.method == "exact":
        exact, again = exact_answers(plain), exact_answers(other)
        assert exact.keys() == again.keys()
        assert largest_difference(exact, again) < 1e-10


@pytest.mark.filterwarnings("ignore:annotators rate higher or lower than others")  # as surely as there are more ratings
def test_every_report_twice_can_be_fitted(subject):
    fitted = subject.fit("twice", subject.data.repeated(2))
    found = answers(fitted)
    assert all(0 <= value <= 1 + 1e-6 for value in found.values())
    if subject.contract is not Records:  # whose copies are further records
        assert found.keys() >= answers(subject.plain).keys()


def test_one_report_can_be_fitted(subject):
    fitted = subject.fit("one report", ONE_REPORT[subject.contract]())
    assert all(0 <= value <= 1 + 1e-6 for value in answers(fitted).values())
    for name in fitted.member.table_names:
        fitted.table(name)


@pytest.mark.parametrize("contract", DATA)
def test_pickled_data_are_a_pytree_in_another_process(contract, tmp_path):
    (tmp_path / "data.pickle").write_bytes(pickle.dumps(DATA[contract]()))
    text = "import pickle, jax; data = pickle.load(open('data.pickle', 'rb')); assert len(jax.tree.leaves(data)) > 2"
    subprocess.run([sys.executable, "-c", text], check=True, cwd=tmp_path)


def test_data_of_another_contract_are_refused(subject):
    taken = subject.member.takes
    other = next(contract for contract in DATA if contract not in taken)
    with pytest.raises(UnsupportedRequest, match=f"'{subject.member.name}' takes .*; this is {other.__name__}"):
        cs.fit(subject.member, DATA[other]())
