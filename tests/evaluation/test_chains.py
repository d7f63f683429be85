"""Chains from links: by hand, and against following each link."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.models.truth import chains
from consilience.models.truth.chains import NEW, NOTHING, follow_links


def test_links_are_followed_however_far():
    antecedent = np.array([[NEW, 0, 1, NEW, NOTHING, 3]])
    np.testing.assert_array_equal(follow_links(antecedent), [[0, 0, 0, 1, -1, 1]])


def test_circles_and_forward_links_are_chains_too():
    np.testing.assert_array_equal(follow_links(np.array([[1, 0, 3, NEW]])), [[0, 0, 1, 1]])


def test_what_refers_to_nothing_is_in_no_chain_though_others_point_to_it():
    np.testing.assert_array_equal(follow_links(np.array([[NOTHING, 0, 0, NEW]])), [[-1, 0, 0, 1]])


def test_there_may_be_no_mention_or_draw():
    assert follow_links(np.zeros((2, 0), int)).shape == (2, 0)
    assert follow_links(np.zeros((0, 3), int)).shape == (0, 3)


@st.composite
def links(draw):
    number = draw(st.integers(1, 8))
    row = st.lists(st.integers(-2, number - 1), min_size=number, max_size=number)
    return np.array(draw(st.lists(row, min_size=1, max_size=4)))


def by_following(antecedent):
    """Join the two ends of each link, one after the other."""
    entity = list(range(len(antecedent)))
    for mention, target in enumerate(antecedent):
        if target >= 0:
            one, other = entity[mention], entity[target]
            entity = [one if value == other else value for value in entity]
    names = {}
    return [
        -1 if target == NOTHING else names.setdefault(value, len(names))
        for value, target in zip(entity, antecedent, strict=True)
    ]


@settings(deadline=None, max_examples=100)
@given(links())
def test_all_draws_at_once_are_each_link_by_itself(antecedent):
    np.testing.assert_array_equal(follow_links(antecedent), [by_following(row) for row in antecedent])


def test_many_draws_go_in_parts(monkeypatch):
    antecedent = np.random.default_rng(0).integers(-2, 20, (50, 20))
    whole = follow_links(antecedent)
    monkeypatch.setattr(chains, "_MOST_NODES", 64)
    np.testing.assert_array_equal(follow_links(antecedent), whole)
