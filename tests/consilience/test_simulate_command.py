"""Simulated mentions on the command line; the grammar is given here, and what is printed and written is tested."""

import argparse
import json

import pytest

from consilience.commands import coreference
from consilience.data import read_mentions
from consilience.errors import InputError, UnsupportedRequest
from consilience.models.mpa import scenarios

KEY = "#begin document (one); part 000\nA (0)\nb (1)\nc (0)\nd -\ne (0|(2)\nf 0)\n\n#end document\n"


@pytest.fixture
def simulate(tmp_path, monkeypatch, capsys):
    """Return a function that simulates mentions of the file key.conll and returns what is printed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "key.conll").write_text(KEY)

    def simulate(**changes):
        words = {
            "key": "key.conll", "scenario": "synthetic-uniform", "profiles": None, "seed": 3, "output": "mentions.csv",
            "force": False, "json": False,
        }  # fmt: skip
        coreference.simulate(argparse.Namespace(**(words | changes)))
        return capsys.readouterr().out

    return simulate


def test_what_is_written_is_said(simulate):
    shown = simulate()
    assert "key.conll: 5 mentions, 1 document\n" in shown
    assert "50 annotations, 5 mentions, 10 annotators, 1 document\n" in shown
    assert "60.0% of the mentions are new (DN)" in shown
    written = read_mentions("mentions.csv")
    assert (written.num_annotations, written.documents.tolist()) == (50, ["(one); part 000"])
    found = json.loads(simulate(output="again.csv", json=True))
    assert found | {"mentions": 5, "annotators": 10, "gold_share_of_DN": 0.6, "seed": 3} == found
    assert read_mentions("again.csv").fingerprint() == written.fingerprint()


def test_an_existing_file_stays(simulate, tmp_path):
    simulate()
    before = (tmp_path / "mentions.csv").read_bytes()
    with pytest.raises(UnsupportedRequest, match=r"mentions.csv exists; .*force=True"):
        simulate(seed=4)
    assert (tmp_path / "mentions.csv").read_bytes() == before
    simulate(seed=4, force=True)
    assert (tmp_path / "mentions.csv").read_bytes() != before


def test_profiles_of_a_file(simulate, tmp_path):
    (tmp_path / "profiles.csv").write_text("DO,DN\n1,1\n")
    simulate(scenario="profiles-sparse", profiles="profiles.csv")
    written = read_mentions("mentions.csv")
    assert (written.antecedent == written.gold_antecedent[written.mention]).all()


def test_keys_that_there_are_not(simulate):
    with pytest.raises(InputError, match="no such file"):
        simulate(key="nowhere.conll")
    with pytest.raises(UnsupportedRequest, match="snow2008-rte holds Annotations"):
        simulate(key="snow2008-rte")


def test_the_names_of_the_scenarios_are_the_same():
    assert coreference.SCENARIOS == scenarios.SCENARIOS
