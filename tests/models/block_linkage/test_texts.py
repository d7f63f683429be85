"""Texts: pairs and components against the sum over true values, and what is chosen by default."""

import warnings

import numpy as np
import pytest

import consilience as cs
from consilience.errors import DiagnosticWarning
from consilience.linking import texts_of
from consilience.models.block_linkage.likelihoods import LIKELIHOODS
from consilience.models.block_linkage.similar import TEXT, for_data
from consilience.models.block_linkage.starting import starting_parameters
from consilience.models.block_linkage.texts import DECAY, FAR, NEAR

TITLES = (
    "learning to rank papers", "learning to rank the papers", "a theory of hash tables", "a theory of the hash tables",
    "on the motion of planets", "learning to rank papers",
)  # fmt: skip


@pytest.fixture
def papers():
    """Return records with a text and another field."""
    table = {"id": list("abcdef"), "title": list(TITLES), "year": [1999, 1999, 1971, 1972, 1609, 1999]}
    records = cs.read_records(table)
    from consilience.similarity import with_similar

    return with_similar(records, {"title": "text"})


def given_texts(records, share, miss):
    """Return G of titles, row shown and column true."""
    number = int(records.first_value[1])
    distance = np.full((number, number), np.inf)
    for (one, other), apart in zip(records.near, records.distance, strict=True):
        if other < number:
            distance[one, other] = distance[other, one] = apart
    near = (1 - FAR) * NEAR * np.exp(-DECAY * distance)
    return (1 - miss) * np.eye(number) + miss * (near + FAR * share[:number, None])


@pytest.mark.parametrize("name", ["hit-miss", "copies"])
def test_components_and_pairs_are_sums_over_true_values(papers, name):
    parameters = starting_parameters(papers, 6)._replace(distortion=np.array([0.3, 0.1]))
    likelihood = for_data(name, papers, parameters.value_share)
    share, codes = parameters.value_share, np.asarray(papers.value)
    titles = int(papers.first_value[1])
    given = given_texts(papers, share, 0.3)

    def log_marginal(shown):
        total = 0.0
        for true in [*sorted(set(shown)), -1]:  # another value is far from all
            of_true = given[:, true] if true >= 0 else 0.3 * FAR * share[:titles]
            weight = share[true] if true >= 0 else 1 - share[sorted(set(shown))].sum()
            probability = 1.0
            for place, value in enumerate(shown):
                same = list(shown[:place]).count(value)
                urn = (of_true[value] + same) / (1 + place) if name == "copies" else of_true[value]
                probability *= urn
            total += weight * probability
        return np.log(total)

    own = np.array([0, 1, 5])
    values = np.stack([np.stack([codes[0, own], np.full(3, -1)], axis=1)], axis=2)
    table = np.append(share, 1)
    found = likelihood.of_components(values, table, parameters.distortion, likelihood.candidates(values), np)[:, 0]
    for subset in range(1, 8):
        shown = [int(codes[0, own[record]]) for record in range(3) if subset >> record & 1]
        expected = log_marginal(shown) - sum(log_marginal([value]) for value in shown)
        assert found[subset] == pytest.approx(expected, abs=1e-9)
    pair = np.stack([values[0], values[1]])
    np.testing.assert_allclose(likelihood.log_pairs(pair, parameters), found[3], atol=1e-9)


def test_near_titles_are_nearer_than_far_ones(papers):
    assert papers.similar.tolist() == [TEXT, 0]
    parameters = starting_parameters(papers, 6)
    likelihood = for_data("hit-miss", papers, parameters.value_share)
    code = papers.value[0]
    pairs = np.array([[[code[0], code[0], code[0]], [-1] * 3], [[code[1], code[2], code[5]], [-1] * 3]])
    near, far, equal = likelihood.log_pairs(pairs, parameters)
    assert far < near < equal
    agree, differ = likelihood.pair_terms(parameters, papers.first_value)
    assert (far, equal) == (pytest.approx(differ[0]), pytest.approx(agree[code[0]]))
    # Texts are as common as each other, whatever the number of their records.
    np.testing.assert_allclose(parameters.value_share[:5], 0.2)


def test_drawn_pairs_look_as_the_model_says(papers):
    parameters = starting_parameters(papers, 6)._replace(distortion=np.array([0.3, 0.1]))
    for name, copied in (("hit-miss", 0.0), ("copies", 0.5)):
        likelihood = for_data(name, papers, parameters.value_share)
        pairs, weight = likelihood.draw_pairs(np.random.default_rng(0), 20_000, parameters, papers.first_value)
        assert (weight == 1).all()
        year = (pairs[0, 1] == pairs[1, 1]).mean()
        by_chance = np.square(parameters.value_share[papers.first_value[1] :]).sum()
        both = 0.9**2 + (1 - 0.9**2) * by_chance
        assert year == pytest.approx(copied + (1 - copied) * both, abs=0.02)


def test_columns_of_texts_are_chosen():
    table = {"id": list("abcdef"), "title": list(TITLES), "name": ["Ann", "Bob", "Cid", "Ann", "Bob", "Eve"]}
    with_id = {**table, "year": [1999, 1999, 1971, 1972, 1609, 1999]}
    types = {"title": "string", "name": "string", "year": "category"}
    for options, chosen in (({}, "title (text)"), ({"similar": {}}, None)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DiagnosticWarning)  # so few records teach nothing
            fit = cs.link(with_id, fields=types, likelihood="hit-miss", **options)
        assert fit.attributes.get("similar") == chosen
    records = cs.read_records(table)
    assert texts_of(records, []) == []


def test_all_texts_are_named_by_their_likelihood(papers):
    share = starting_parameters(papers, 6).value_share
    for name in ("hit-miss", "copies"):
        assert for_data(name, papers, share).strength == LIKELIHOODS[name].strength
