"""Names that were given up work with a warning, and not beside the new ones."""

import json
import warnings

import numpy as np
import pytest

import consilience as cs
from consilience.cli import main
from consilience.deprecation import RENAMED
from consilience.errors import ConsilienceDeprecationWarning, UnsupportedRequest
from consilience.inference.durable import text_digest

GROUPS = {"class": ["n", "y"], "group": [0, 3]}
RANKINGS = {"item": ["a"] * 3, "annotator": ["x"] * 3, "class": ["p", "q", "r"], "rank": [1, 1, 2]}
CALLS = {
    # function or model, and its old keyword: how it is called with keywords
    ("certainty", "classes_to"): (lambda fit, given: cs.certainty(fit, **given).value, GROUPS),
    ("certainty", "by"): (lambda fit, given: cs.certainty(fit, class_groups=GROUPS, **given).value, "sum"),
    ("evaluate", "by"): (lambda fit, given: str(cs.evaluate(fit, {"a": "n", "b": "y"}, **given).by_group), GROUPS),
    ("expected_risk", "risk"): (lambda fit, given: cs.expected_risk(fit, **given).value, GROUPS),
    ("report", "risk"): (lambda fit, given: cs.report(fit, path="page.html", **given).read_bytes(), GROUPS),
    ("sweep", "risk"): (lambda fit, given: str(cs.sweep("dirichlet", fit.data, [1], draws=9, **given)), GROUPS),
    ("irn", "weights"): (lambda fit, given: cs.fit("irn", RANKINGS, **given).options["rank_weights"], "published-code"),
    ("prirn", "weights"): (
        lambda fit, given: cs.fit("prirn", RANKINGS, reliability=1, **given).options["rank_weights"], "published-code",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def fit():
    labels = {"item": ["a", "a", "b"], "annotator": ["x", "y", "x"], "label": ["n", "y", "y"]}
    return cs.fit("dirichlet", labels, draws=20)


def test_every_old_name_is_looked_at():
    assert set(CALLS) == {(whose, old) for whose, names in RENAMED.items() for old in names}


@pytest.mark.parametrize(("whose", "old"), CALLS)
def test_old_keywords_do_what_the_new_ones_do(fit, tmp_path, monkeypatch, whose, old):
    monkeypatch.chdir(tmp_path)
    call, value = CALLS[whose, old]
    new = RENAMED[whose][old]
    expected = call(fit, {new: value})
    with pytest.warns(ConsilienceDeprecationWarning, match=f"{old}= is called {new}= now; the old name works until"):
        assert call(fit, {old: value}) == expected
    with pytest.raises(UnsupportedRequest, match=f"{new}= and {old}= are one thing under two names; leave out {old}="):
        call(fit, {old: value, new: value})


def test_a_warning_stands_at_the_line_of_the_call(fit):
    with pytest.warns(ConsilienceDeprecationWarning) as said:
        cs.sweep("dirichlet", fit.data, [1], draws=9, risk=GROUPS)
    assert said[0].filename == __file__


def test_old_flags(fit, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    fit.save("run")
    (tmp_path / "groups.csv").write_text("class,group\nn,0\ny,3\n")
    assert main("certainty run --class-groups groups.csv --group-rule sum --json".split()) == 0
    expected = capsys.readouterr().out
    assert main("certainty run --map groups.csv --by sum --json".split()) == 0
    found = capsys.readouterr()
    assert found.out == expected
    assert "warning: --map is called --class-groups now; the old name works until version" in found.err
    assert "warning: --by is called --group-rule now" in found.err
    assert main("certainty run --map groups.csv --class-groups groups.csv".split()) == 1
    assert "--class-groups and --map are one thing under two names; leave out --map" in capsys.readouterr().err


def test_saved_fits_with_the_old_name_load(tmp_path):
    fit = cs.fit("prirn", RANKINGS, reliability=1, rank_weights="published-code")
    fit.save(tmp_path / "run")
    text = json.loads((tmp_path / "run" / "fit.json").read_text())
    text["options"]["weights"] = text["options"].pop("rank_weights")
    del text["text_sha256"]
    text["text_sha256"] = text_digest(text)
    (tmp_path / "run" / "fit.json").write_text(json.dumps(text))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = cs.load_fit(tmp_path / "run")
    assert again.options["rank_weights"] == "published-code"
    assert np.array_equal(again.labels()["probability"], fit.labels()["probability"])
