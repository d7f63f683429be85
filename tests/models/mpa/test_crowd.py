"""How a crowd with given profiles chooses among candidates, against loops."""

import jax
import numpy as np
import pytest

import consilience as cs
from consilience.data import Annotations
from consilience.errors import UnsupportedRequest
from consilience.models.mpa import crowd
from consilience.models.mpa.candidates import candidates_of
from tests.models.mpa.mentions import mentions_of

ROWS = [
    ("m1", "a", "DN"), ("m1", "b", "DN"), ("m2", "a", "DO(m1)"), ("m2", "b", "DN"), ("m3", "a", "DO(m1)"),
    ("m3", "b", "DO(m2)"), ("m3", "c", "DN"), ("m4", "c", "DO(m3)"), ("m4", "b", "DO(m2)"), ("m4", "a", "DN"),
    ("m5", "a", "NR"), ("m5", "b", "DO(m4)"),
]  # fmt: skip


def mentions():
    return mentions_of(ROWS)


def annotations():
    random = np.random.default_rng(0)
    return Annotations.from_codes(*random.integers(0, [[8], [4], [3]], (3, 40)), num_items=8)


def profiles_of(found, num_draws=2):
    random = np.random.default_rng(1)
    shape = num_draws, *found.tables.yes.shape
    return crowd.Profiles(*np.float32(random.uniform(0.2, 0.9, (2, *shape))), None)


def chosen(profiles, found, draw, annotator, pair):
    """Return the candidates of the item of a pair, and how probably the annotator names each if the pair is true."""
    own = np.flatnonzero(found.item == found.item[pair])
    class_ = found.tables.pair_class[own]
    yes = np.where(
        own == pair,
        profiles.sensitivity[draw, annotator, class_], 1 - profiles.specificity[draw, annotator, class_],
    )  # fmt: skip
    return own, yes / yes.sum()


DATA = [(mentions, "observed"), (annotations, "observed"), (annotations, "closed")]


@pytest.mark.parametrize(("make", "option"), DATA)
def test_agreement_is_that_of_loops(make, option):
    data = make()
    found = candidates_of(data, option)
    kinds, profiles = crowd.kinds_of(found), profiles_of(found)
    share = np.bincount(data.annotator, minlength=data.num_annotators) / data.num_annotations
    made = crowd.CandidateCrowd(profiles, 2, found, data)
    pairs = share[:, None] * share * (1 - np.eye(len(share)))
    for pair in range(len(found.item)):
        for draw in range(2):
            by = np.array([chosen(profiles, found, draw, j, pair)[1] for j in range(len(share))])
            expected = np.sum(pairs * (by @ by.T)) / pairs.sum()
            assert made.agreement[draw, kinds.of_pair[pair]] == pytest.approx(expected, rel=1e-5)


def test_mentions_with_as_many_candidates_of_each_class_are_of_one_kind():
    found = candidates_of(mentions())
    kinds = crowd.kinds_of(found)
    kind = {(found.item[pair], found.labels[found.label[pair]]): kinds.of_pair[pair] for pair in range(len(found.item))}
    assert kind[2, "DO(m1)"] == kind[2, "DO(m2)"] == kind[3, "DO(m3)"]
    assert kind[2, "DN"] == kind[3, "DN"] != kind[2, "DO(m1)"]
    assert kind[1, "DN"] != kind[2, "DN"]
    assert len(kinds.true_class) == 1 + 2 + 2 + 2


@pytest.mark.parametrize(("make", "option"), DATA)
def test_annotators_choose_in_these_proportions(make, option):
    data = make()
    found = candidates_of(data, option)
    profiles = profiles_of(found)
    annotate = crowd.CandidateCrowd(profiles, 2, found, data).annotate
    first = np.searchsorted(found.item, np.arange(found.num_items))
    random, repeats = np.random.default_rng(2), 2000
    given = np.array([annotate(random, 1, found.label[first]) for _ in range(repeats)])
    item = data.mention if make is mentions else data.item
    for row in range(data.num_annotations):
        own, probability = chosen(profiles, found, 1, data.annotator[row], first[item[row]])
        frequency = (given[:, row, None] == found.label[own]).mean(0)
        assert (np.abs(frequency - probability) <= 5 * np.sqrt(probability * (1 - probability) / repeats) + 1e-9).all()


def test_the_gain_of_another_label_is_that_of_loops():
    fitted = cs.fit("mpa", mentions(), coreference="links", draws=9)
    truth, found = fitted.truth, fitted.truth.candidates
    share = np.bincount(fitted.data.annotator) / fitted.data.num_annotations
    drawn = [[np.exp(np.asarray(part)) for part in crowd._log_yes(truth.crowd.profiles, draw)] for draw in range(9)]
    gain = truth.crowd.gain(truth)
    for item in range(found.num_items):
        own = np.flatnonzero(found.item == item)
        class_, probability = found.tables.pair_class[own], truth.probability[own]
        joint = np.zeros((len(own), len(own)))
        for true in range(len(own)):
            for if_true, if_false in drawn:
                yes = np.where(np.arange(len(own)) == true, if_true[:, class_], if_false[:, class_])
                joint[true] += share @ (yes / yes.sum(1, keepdims=True)) / 9
            joint[true] *= probability[true]
        assert gain[item] == pytest.approx(joint.max(0).sum() - probability.max(), abs=2e-6)
    table = cs.next_labels(fitted, 2)
    assert (table["gain"].diff().dropna() <= 0).all()


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
@pytest.mark.parametrize("method", ["cavi", "gibbs"])
def test_agreement_of_a_fit_of_mentions(method):
    data = mentions()
    more = {} if method == "cavi" else {"chains": 2, "warmup": 20}
    fitted = cs.fit("mpa", data, coreference="links", method=method, draws=40, **more)
    found = cs.agreement(fitted, num_predictive=20)
    assert found.num_items == 5
    assert found.observed == cs.agreement(data).value
    assert 0 < found.value < 1
    assert found.items[0] == pytest.approx(1)  # one candidate


@pytest.mark.slow
def test_a_simulated_crowd_agrees_as_it_does():
    data, _ = cs.models.member("mpa").simulate(
        jax.random.key(1), num_items=200, num_annotators=10, num_labels=4, annotations_per_item=6
    )
    found = cs.agreement(cs.fit("mpa", data, candidates="closed", draws=30), num_predictive=0)
    assert found.observed == pytest.approx(found.value, abs=0.08)


def test_what_cannot_be_said_is_refused(monkeypatch):
    assert not crowd.several_annotators(candidates_of(Annotations.from_codes([0, 1], [0, 0], [0, 1])))
    monkeypatch.setattr(crowd, "_MOST_NUMBERS", 5)
    found = candidates_of(mentions())
    with pytest.raises(UnsupportedRequest, match="too many to say"):
        _ = crowd.CandidateCrowd(profiles_of(found), 2, found, mentions()).agreement
