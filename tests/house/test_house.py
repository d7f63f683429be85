"""No fact about the house gets worse. Where one is better than its ceiling, ``python -m tests.house`` lowers that."""

import json
import re
from pathlib import Path

import pytest

from tests.house import house_facts
from tests.long import LONG

HERE = Path(__file__).parent
CEILINGS = json.loads((HERE / "ceilings.json").read_text())


@pytest.fixture(scope="module")
def gathered():
    _, facts, places = house_facts.gather(HERE.parents[1])
    return facts, places


def test_every_fact_with_a_goal_has_a_ceiling():
    assert list(CEILINGS) == list(house_facts.GOALS)


@pytest.mark.parametrize("fact", house_facts.GOALS)
def test_no_fact_gets_worse(fact, gathered):
    facts, places = gathered
    sign, _ = house_facts.GOALS[fact]
    fine = facts[fact] <= CEILINGS[fact] if sign == "<=" else facts[fact] >= CEILINGS[fact]
    listed = "\n".join(places.get(fact, [])[:40])
    assert fine, f"{fact} is {facts[fact]}, and was {CEILINGS[fact]}; look at --places of house_facts.py\n{listed}"


@pytest.mark.parametrize("file", LONG)
def test_what_is_left_to_the_slow_set_is_there(file):
    text = (HERE.parent / file).read_text()
    assert not [name for name in LONG[file] if not re.search(rf"\b{name}(\(|,| =)", text)]
