"""The simulation of Paun et al. (2018): what annotators choose from, and how they choose."""

import time

import numpy as np
import pandas
import pytest
from scipy import stats

from consilience.data import read_mentions
from consilience.data.conll import Chains, read_conll
from consilience.data.mentions import MENTION_TYPES
from consilience.data.mentions_writer import write_mentions
from consilience.errors import InputError, InputWarning, UnknownName, UnsupportedRequest
from consilience.models.mpa.scenarios import SCENARIOS, SYNTHETIC_PROFILES, simulate_mentions

ALWAYS_RIGHT, NEVER_RIGHT = [[1.0, 1.0]], [[0.0, 0.0]]


def key_of(entities, spans=None):
    """Return a key of one document for each text, whose letters are the entities of mentions of one token."""
    document = np.repeat(np.arange(len(entities)), [len(text) for text in entities])
    names = [(place, letter) for place, text in enumerate(entities) for letter in text]
    codes = {name: code for code, name in enumerate(dict.fromkeys(names))}
    start = np.concatenate([np.arange(len(text)) for text in entities])
    end = start
    if spans is not None:
        start, end = np.array(spans).T
    entity = np.array([codes[name] for name in names])
    return Chains.from_spans(document, start, end, entity, documents=["one", "two", "three"][: len(entities)])


def long_key(size=4000):
    """Return a key of one document of seven entities that take turns at random."""
    letters = np.random.default_rng(5).integers(7, size=size)
    return key_of(["".join("abcdefg"[code] for code in letters)])


def chosen_of(mentions, mention):
    """Return the antecedents that annotators gave a mention; -1 is DN."""
    return set(mentions.antecedent[mentions.mention == mention].tolist())


WORKED = ["abacaab", "xx"]
RIGHT = [-1, -1, 0, -1, 2, 4, 1, -1, 7]
WRONG = [
    {-1}, {0}, {-1, 1}, {2, 1, 0}, {-1, 3, 1}, {-1, 3, 1}, {-1, 5, 4, 3}, {-1}, {-1},
]  # fmt: skip
"""By hand: the nearest before the mention of other entities, and DN unless that is right; the first has only DN."""


def test_right_labels_are_the_nearest_of_the_entity():
    mentions = simulate_mentions(key_of(WORKED), "profiles-uniform", profiles=ALWAYS_RIGHT)
    assert mentions.gold_antecedent.tolist() == RIGHT
    assert [MENTION_TYPES[code] for code in mentions.gold_type] == ["DN" if code < 0 else "DO" for code in RIGHT]
    np.testing.assert_array_equal(mentions.antecedent, mentions.gold_antecedent[mentions.mention])
    assert mentions.documents.tolist() == ["one", "two"]
    assert mentions.document.tolist() == [0] * 7 + [1] * 2
    assert mentions.mentions.tolist() == [f"m{number}" for number in range(1, 10)]


@pytest.mark.parametrize("errors", ["uniform", "sparse"])
def test_wrong_labels_are_the_nearest_of_other_entities(errors):
    """Of 500 annotators and ten seeds, each wrong label is somebody's."""
    given = [
        simulate_mentions(
            key_of(WORKED), f"profiles-{errors}", profiles=NEVER_RIGHT, annotators_per_mention=500, seed=seed
        )
        for seed in range(10)
    ]
    for mention, wrong in enumerate(WRONG):
        assert set.union(*(chosen_of(mentions, mention) for mentions in given)) == wrong


def test_farther_mentions_are_no_choice():
    """Four errors where the mention is new, DN and three where it is old."""
    mentions = simulate_mentions(
        key_of(["abcdefgb"]), "profiles-uniform", profiles=NEVER_RIGHT, annotators_per_mention=500
    )
    assert chosen_of(mentions, 6) == {2, 3, 4, 5}
    assert chosen_of(mentions, 7) == {-1, 4, 5, 6}


def test_of_mentions_that_begin_together_the_longer_comes_first_and_equal_spans_stay_two():
    key = key_of(["abcba"], spans=[(0, 0), (0, 5), (3, 3), (3, 3), (4, 4)])
    mentions = simulate_mentions(key, "profiles-uniform", profiles=ALWAYS_RIGHT)
    assert mentions.num_mentions == 5
    assert list(zip(mentions.start.tolist(), mentions.end.tolist(), strict=True)) == [
        (0, 5), (0, 0), (3, 3), (3, 3), (4, 4),
    ]  # fmt: skip
    # b, a, then b before c by the number of the entity, then a.
    assert mentions.gold_antecedent.tolist() == [-1, -1, 0, -1, 1]


@pytest.mark.parametrize("size", [1, 7, 20, 21, 33, 400])
def test_load(size):
    mentions = simulate_mentions(long_key(size))
    given = mentions.annotator.reshape(size, 10)
    assert all(len(set(row)) == 10 for row in given.tolist())
    load = np.bincount(mentions.annotator)
    assert mentions.num_annotators == max(-(-size // 2), 10)
    assert load.max() == min(20, size)
    assert load.max() - load.min() <= 1
    _, first = np.unique(mentions.annotator, return_index=True)
    assert (np.diff(first) > 0).all()


def test_annotators_meet_at_random():
    """Two annotators meet in 180 / 1999 of a mention on average, each in 20 mentions: a hypergeometric number."""
    given = simulate_mentions(long_key()).annotator.reshape(-1, 10)
    ones, others = np.triu_indices(10, 1)
    low, high = np.sort(np.stack([given[:, ones], given[:, others]]), axis=0)
    meetings = np.unique(low.astype(np.int64) * 2000 + high, return_counts=True)[1]
    mean, pairs = 180 / 1999, 2000 * 1999 / 2
    never = stats.hypergeom(round(400 / mean), 20, 20).pmf(0)
    expected = pairs * (mean - 1 + never)
    assert abs((meetings - 1).sum() - expected) < 5 * np.sqrt(expected)
    # Neighbours in the text share no more annotators than any other two mentions.
    shared = (given[1:, :, None] == given[:-1, None, :]).sum()
    assert abs(shared - 3999 * 100 / 2000) < 5 * np.sqrt(3999 * 100 / 2000)


@pytest.mark.parametrize("errors", ["uniform", "sparse"])
def test_sensitivities_are_those_of_the_profile(errors):
    mentions = simulate_mentions(long_key(), f"profiles-{errors}", profiles=[[0.7, 0.4]], seed=2)
    right = mentions.antecedent == mentions.gold_antecedent[mentions.mention]
    old = mentions.gold_type[mentions.mention] == MENTION_TYPES.index("DO")
    # Of the seven new mentions, the first leaves no choice.
    new = ~old & (mentions.mention > 0)
    for which, sensitivity in ((old, 0.7), (new, 0.4)):
        error = np.sqrt(sensitivity * (1 - sensitivity) / which.sum())
        assert abs(right[which].mean() - sensitivity) < 5 * error


def test_annotators_have_the_profiles_of_the_paper():
    mentions = simulate_mentions(long_key(), seed=3)
    old = mentions.gold_type[mentions.mention] == MENTION_TYPES.index("DO")
    right = mentions.antecedent == mentions.gold_antecedent[mentions.mention]
    number = np.bincount(mentions.annotator[old], minlength=mentions.num_annotators)
    share = np.bincount(mentions.annotator[old & right], minlength=mentions.num_annotators) / np.maximum(number, 1)
    sensitivity = np.array(SYNTHETIC_PROFILES)[:, 0]
    many = number >= 15
    # Mean and mean square over annotators of a share of n right ones with a random sensitivity p.
    expected = sensitivity.mean(), (sensitivity**2 + (sensitivity * (1 - sensitivity)) / number[many].mean()).mean()
    for values, mean in zip((share[many], share[many] ** 2), expected, strict=True):
        assert abs(values.mean() - mean) < 5 * values.std() / np.sqrt(many.sum())


@pytest.mark.parametrize(("errors", "agreement"), [("uniform", 1 / 4), ("sparse", 2 / 5)])
def test_sparse_errors_are_shared(errors, agreement):
    """Two errors on a mention agree with the mean of the sum of squares of Dirichlet(1, 1, 1, 1): 2/5."""
    mentions = simulate_mentions(long_key(), f"profiles-{errors}", profiles=NEVER_RIGHT, seed=4)
    given = mentions.antecedent.reshape(-1, 10)[50:]
    assert (given != mentions.gold_antecedent[50:, None]).all()
    equal = (given[:, :, None] == given[:, None, :]).sum(axis=(1, 2)) - 10
    of_mention = equal / 90
    assert abs(of_mention.mean() - agreement) < 5 * of_mention.std() / np.sqrt(len(of_mention))


def test_the_same_seed_gives_the_same_annotations():
    key = long_key(300)
    for scenario in SCENARIOS[:2]:
        one, again = (simulate_mentions(key, scenario, seed=7) for _ in range(2))
        assert one.fingerprint() == again.fingerprint()
        assert one.fingerprint() != simulate_mentions(key, scenario, seed=8).fingerprint()


def test_what_is_simulated_can_be_written_and_read(tmp_path):
    mentions = simulate_mentions(key_of(["abacabad" * 5, "", "xyx"]))
    assert mentions.documents.tolist() == ["one", "three"]
    write_mentions(mentions, tmp_path / "mentions.csv")
    assert read_mentions(tmp_path / "mentions.csv", antecedents="strict").fingerprint() == mentions.fingerprint()


def test_mentions_that_refer_to_nothing_are_left_out():
    key = key_of(["abab"])
    key = key.replace(entity=np.array([0, -1, 0, 1], np.int32))
    with pytest.warns(InputWarning, match="^1 mentions that refer to nothing were left out"):
        mentions = simulate_mentions(key)
    assert mentions.start.tolist() == [0, 2, 3]
    with pytest.raises(UnsupportedRequest, match="no mentions that refer"):
        simulate_mentions(key.replace(entity=np.full(4, -1, np.int32)))


def test_profiles_may_come_as_a_table(tmp_path):
    key = long_key(100)
    values = [[0.9, 0.8], [0.2, 0.3]]
    expected = simulate_mentions(key, "profiles-sparse", profiles=np.array(values)).fingerprint()
    path = tmp_path / "profiles.csv"
    path.write_text("player,dn,DO\np1,0.8,0.9\np2,0.3,0.2\n")
    frame = pandas.DataFrame(values, columns=["DO", "DN"])
    for profiles in (values, path, str(path), frame, {"DO": [0.9, 0.2], "DN": [0.8, 0.3]}):
        assert simulate_mentions(key, "profiles-sparse", profiles=profiles).fingerprint() == expected


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("DO,DN\n0.5,0.5\n1.5,0.5\n", r"profiles.csv, line 3, column 'DO': .*from 0 to 1 .*'1.5'"),
        ("DO,DN\n0.5,\n", r"profiles.csv, line 2, column 'DN': the sensitivity is empty"),
        ("DO,DN\n0.5,x\n", r"profiles.csv, line 2, column 'DN': a sensitivity is expected .*'x'"),
        ("DO,NR\n0.5,0.5\n", r"column 'DN': there is no column 'DN'; the table has 'DO', 'NR'"),
        ("DO,DN\n", "no rows"),
    ],
)
def test_tables_of_profiles_are_checked(tmp_path, content, match):
    path = tmp_path / "profiles.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=match):
        simulate_mentions(long_key(20), "profiles-uniform", profiles=path)


@pytest.mark.parametrize(
    ("profiles", "match"),
    [
        ([[0.5, -0.1]], r"row 0, column 'DN': a sensitivity from 0 to 1"),
        ([[0.5, np.nan]], r"row 0, column 'DN'"),
        ([0.5, 0.5], r"shape is \(2,\)"),
        (np.zeros((0, 2)), r"shape is \(0, 2\)"),
        ([["a", "b"]], "array of numbers"),
    ],
)
def test_arrays_of_profiles_are_checked(profiles, match):
    with pytest.raises(InputError, match=match):
        simulate_mentions(long_key(20), "profiles-uniform", profiles=profiles)


def test_requests_without_meaning():
    key = long_key(20)
    with pytest.raises(UnknownName, match="synthetic-uniform"):
        simulate_mentions(key, "synthetic")
    with pytest.raises(UnsupportedRequest, match="profiles of its own"):
        simulate_mentions(key, "synthetic-sparse", profiles=ALWAYS_RIGHT)
    with pytest.raises(UnsupportedRequest, match="needs profiles"):
        simulate_mentions(key, "profiles-sparse")
    with pytest.raises(UnsupportedRequest, match="1 or more"):
        simulate_mentions(key, annotators_per_mention=0)


# ---- LitBank ----


def expected_majority(mentions):
    """Return how many mentions the majority has right, and the deviation of random ties, both as shares."""
    labels = mentions.antecedent.reshape(-1, 10)
    votes = (labels[:, :, None] == labels[:, None, :]).sum(axis=2)
    most = votes.max(axis=1)
    winners = ((votes == most[:, None]) / votes).sum(axis=1)
    for_gold = (labels == mentions.gold_antecedent[:, None]).sum(axis=1)
    probability = np.where(for_gold == most, 1 / winners, 0)
    return probability.mean(), np.sqrt((probability * (1 - probability)).sum()) / len(probability)


@pytest.mark.public_data
@pytest.mark.parametrize(("scenario", "reference"), [("synthetic-uniform", 0.8631), ("synthetic-sparse", 0.7779)])
def test_majority_votes_on_litbank(data_folder, scenario, reference):
    """Another implementation of the paper's description had these shares right: the best of ten rounds, three seeds."""
    key = read_conll(data_folder / "litbank")
    assert (key.num_documents, key.num_mentions, key.num_entities) == (100, 29_103, 7_927)
    began = time.process_time()
    simulated = [simulate_mentions(key, scenario, seed=seed) for seed in range(6)]
    assert (time.process_time() - began) / 6 < 5
    assert [(one.num_annotations, one.num_annotators) for one in simulated] == [(291_030, 14_552)] * 6
    mean, of_ties = np.array([expected_majority(one) for one in simulated]).T
    # The largest of ten normal variables lies 1.539 standard deviations above the mean.
    best = mean + 1.539 * of_ties
    assert abs(best.mean() - reference) < 5 * best.std(ddof=1) * np.sqrt(1 / 6 + 1 / 3)
