"""Saved fits: what comes back is what was saved, or an error that says why not."""

import json
import os
import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import consilience as cs
from consilience.data import Annotations, Ratings
from consilience.errors import InvalidFit
from consilience.inference import saved
from consilience.inference.durable import text_digest
from consilience.inference.stored_priors import describe_priors, restored_priors, stored_priors, unknown_priors
from consilience.models import member
from consilience.models.dirichlet import Symmetric
from consilience.models.expert_views import BetaPrior


@pytest.fixture
def annotations():
    return Annotations.from_codes(
        [0, 0, 1, 2, 2], [0, 1, 0, 1, 0], [2, 1, 0, 0, 0],
        items=["a", "b", "ü", "unseen"], labels=["x", "y", "z"], weight=[1, 2, 1, 0.5, 1],
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path, annotations):
    """Return a folder with a saved fit."""
    cs.fit("dirichlet", annotations, reliability=2.0, seed=3, draws=50).save(tmp_path / "run")
    return tmp_path / "run"


def assert_same(first, second):
    assert type(first.posterior) is type(second.posterior)
    for one, two in zip(first.posterior, second.posterior, strict=True):
        if isinstance(first.posterior, dict):
            one, two = first.posterior[one], second.posterior[two]
        np.testing.assert_array_equal(one, two)
    assert first.describe() == second.describe()
    assert first.data.fingerprint() == second.data.fingerprint()
    assert cs.certainty(first).draws.tobytes() == cs.certainty(second).draws.tobytes()
    assert first.labels().equals(second.labels())


def test_an_exact_fit_comes_back(folder, annotations):
    fit, loaded = cs.fit("dirichlet", annotations, reliability=2.0, seed=3, draws=50), cs.load_fit(folder)
    attributes = {**fit.attributes, "seconds": loaded.attributes["seconds"], "priors": fit.describe()["priors"]}
    assert loaded.attributes == attributes
    assert loaded.describe()["priors"] == fit.describe()["priors"]
    assert loaded.truth.items.tolist() == ["a", "b", "ü", "unseen"]
    np.testing.assert_array_equal(cs.certainty(loaded).draws, cs.certainty(fit).draws)
    assert loaded.labels().equals(fit.labels())
    loaded.save(folder.parent / "again")
    assert_same(loaded, cs.load_fit(folder.parent / "again"))


def own_model(data):
    with numpyro.plate("item", data.num_items):
        mean = numpyro.sample("mean", dist.Normal(0, 1))
    numpyro.sample("rating", dist.Normal(mean[data.item], 1), obs=data.rating)


def own_truth(key, draw, data):
    return (draw["mean"] > 0).astype(int)


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
@pytest.mark.parametrize("method", ["nuts", "svi"])
def test_draws_of_an_own_function_come_back(tmp_path, method):
    ratings = Ratings.from_codes([0, 0, 1], [0, 1, 0], [1.0, 2.0, -1.5])
    limits = {"max_steps": 300} if method == "svi" else {"warmup": 50, "chains": 2}
    fit = cs.fit(own_model, ratings, method=method, truth=own_truth, draws=40, **limits)
    fit.save(tmp_path / "run")
    loaded = cs.load_fit(tmp_path / "run", model=own_model, truth=own_truth)
    for site, draws in fit.posterior.items():
        np.testing.assert_array_equal(loaded.posterior[site], draws)
    for name, values in fit.run.stats.items():
        np.testing.assert_array_equal(loaded.run.stats[name], values)
    assert loaded.result == fit.result
    assert loaded.run.steps == fit.run.steps
    assert (loaded.elbo is None) == (method == "nuts")
    np.testing.assert_array_equal(cs.certainty(loaded).items, cs.certainty(fit).items)
    with pytest.raises(InvalidFit, match="own_model.*model="):
        cs.load_fit(tmp_path / "run")
    with pytest.raises(InvalidFit, match="not of 'dirichlet'"):
        cs.load_fit(tmp_path / "run", model=cs.fit("dirichlet", Annotations.from_codes([0], [0], [0])).member)


def files(folder, name):
    """Return the path of a file of the fit: ``arrays`` stands for the one whose name is drawn."""
    return next(folder.glob(f"{name}*"))


def refused(folder, match="."):
    with pytest.raises(InvalidFit, match=match) as caught:
        cs.load_fit(folder)
    return str(caught.value)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
@pytest.mark.parametrize("name", ["arrays", "fit.json"])
def test_torn_files_are_refused(folder, name, share):
    file = files(folder, name)
    content = file.read_bytes()
    file.write_bytes(content[: int(share * len(content))])
    refused(folder, "torn")


@pytest.mark.parametrize("name", ["arrays", "fit.json"])
def test_flipped_bits_never_give_another_fit(folder, name):
    """Whatever bit is flipped, the fit is refused, or (in the white space of the text) is the same."""
    file = files(folder, name)
    content, loaded = file.read_bytes(), cs.load_fit(folder)
    random, kept = np.random.default_rng(0), 0
    for place in random.integers(0, len(content), 150):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(random.integers(0, 8))
        file.write_bytes(bytes(damaged))
        try:
            again = cs.load_fit(folder)
        except InvalidFit:
            continue
        kept += 1
        assert name == "fit.json"
        assert json.loads(damaged) == json.loads(content)
        assert again.describe() == loaded.describe()
    assert kept < 15


def test_a_changed_text_is_refused(folder):
    text = json.loads((folder / "fit.json").read_text())
    text["options"]["reliability"] = 3.0
    (folder / "fit.json").write_text(json.dumps(text))
    refused(folder, "fit.json was changed")


def test_arrays_of_another_fit_are_refused(folder, annotations):
    cs.fit("dirichlet", annotations, reliability=1.0).save(folder.parent / "other")
    shutil.copy(files(folder.parent / "other", "arrays"), files(folder, "arrays"))
    refused(folder, "npz was changed")


def test_data_that_do_not_have_the_recorded_hash_are_refused(folder):
    text = json.loads((folder / "fit.json").read_text())
    del text["text_sha256"]
    text["attributes"]["data_hash"] = "0" * 64
    text["text_sha256"] = text_digest(text)
    (folder / "fit.json").write_text(json.dumps(text))
    refused(folder, "data are not those")


def test_a_part_that_is_missing_is_named(folder):
    text = json.loads((folder / "fit.json").read_text())
    del text["text_sha256"], text["sizes"]
    text["text_sha256"] = text_digest(text)
    (folder / "fit.json").write_text(json.dumps(text))
    refused(folder, "sizes")


def test_other_versions_are_refused(folder):
    text = json.loads((folder / "fit.json").read_text())
    (folder / "fit.json").write_text(json.dumps({**text, "format": saved.FORMAT + 1}))
    assert f"format {saved.FORMAT + 1}" in refused(folder)


def test_what_is_no_fit_is_refused(folder, tmp_path):
    refused(tmp_path / "nowhere", "not a folder")
    (tmp_path / "file").write_text("")
    refused(tmp_path / "file", "not a folder")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "no fit.json")
    (folder / "fit.json").write_text("[1, 2]")
    refused(folder, "fit.json")
    (folder / "fit.json").unlink()
    refused(folder, "no fit.json")


def test_missing_arrays_are_refused(folder):
    files(folder, "arrays").unlink()
    refused(folder, "lacks the arrays")


def test_foreign_folders_and_files_are_left_alone(folder, tmp_path):
    fit = cs.load_fit(folder)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("work")
    (tmp_path / "note").write_text("work")
    for name in ("mine", "note"):
        with pytest.raises(InvalidFit, match="not a saved fit"):
            fit.save(tmp_path / name)
    assert (tmp_path / "mine" / "thesis.tex").read_text() == (tmp_path / "note").read_text() == "work"
    (tmp_path / "empty").mkdir()
    fit.save(tmp_path / "empty")
    assert_same(cs.load_fit(tmp_path / "empty"), fit)
    (folder / "report.html").write_text("work")
    fit.save(folder)
    assert (folder / "report.html").read_text() == "work"
    assert_same(cs.load_fit(folder), fit)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "mine", "note", "run"]


@pytest.mark.parametrize("fails_at", [1, 2])
def test_a_crash_while_replacing_leaves_the_old_fit(folder, annotations, monkeypatch, fails_at):
    old, calls, replace = cs.load_fit(folder), [], os.replace

    def crash(source, target):
        calls.append(target)
        if len(calls) == fails_at:
            raise OSError("no space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(OSError, match="no space"):
        cs.fit("dirichlet", annotations, reliability=9.0).save(folder)
    monkeypatch.undo()
    assert_same(cs.load_fit(folder), old)


def test_a_fit_is_saved_beside_the_checkpoint_of_its_run(folder, tmp_path):
    fit = cs.load_fit(folder)
    for name in ("run", "killed"):
        (tmp_path / name / "checkpoint").mkdir(parents=True)
        (tmp_path / name / "checkpoint" / "checkpoint.json").write_text("{}")
        fit.save(tmp_path / name)
        assert_same(cs.load_fit(tmp_path / name), fit)
        assert (tmp_path / name / "checkpoint" / "checkpoint.json").read_text() == "{}"


@pytest.mark.parametrize("again", [False, True])
def test_a_kill_at_any_point_of_a_save_leaves_a_whole_fit(folder, annotations, monkeypatch, again, tmp_path):
    """At every file operation of a save, a copy of the folder is what a kill would leave behind."""
    old, new = cs.load_fit(folder), cs.fit("dirichlet", annotations, reliability=9.0)
    target, left = folder if again else tmp_path / "new", []

    def photograph(name):
        original = getattr(os, name)

        def wrapped(*args, **options):
            left.append(shutil.copytree(target, tmp_path / f"left-{len(left)}-before"))
            original(*args, **options)
            left.append(shutil.copytree(target, tmp_path / f"left-{len(left)}-after"))

        monkeypatch.setattr(os, name, wrapped)

    for name in ("replace", "fsync", "unlink"):
        photograph(name)
    new.save(target)
    monkeypatch.undo()
    outcomes = [_outcome(copy, old, new) for copy in left]
    assert sorted(set(outcomes)) == (["new", "old"] if again else ["new", "none"])
    assert outcomes == sorted(outcomes, reverse=True)  # once the new fit is there it stays
    for copy in left:
        new.save(copy)
        assert_same(cs.load_fit(copy), cs.load_fit(target))
        assert len(list(copy.iterdir())) == 2


def _outcome(folder, old, new):
    try:
        loaded = cs.load_fit(folder)
    except InvalidFit:
        return "none"
    whole = old if loaded.options == old.options and loaded.describe()["priors"] == old.describe()["priors"] else new
    np.testing.assert_array_equal(loaded.posterior.concentration, whole.posterior.concentration)
    return "old" if whole is old else "new"


def test_a_crash_while_writing_leaves_the_old_fit(folder, annotations, monkeypatch):
    old = cs.load_fit(folder)

    def crash(file, **arrays):
        file.write(b"half of it")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", crash)
    with pytest.raises(KeyboardInterrupt):
        cs.fit("dirichlet", annotations, reliability=9.0).save(folder)
    monkeypatch.undo()
    assert_same(cs.load_fit(folder), old)
    assert [path.name for path in folder.parent.iterdir()] == ["run"]


def test_data_that_went_through_jax_keep_their_codes(tmp_path, annotations):
    fit = cs.fit("dirichlet", jax.tree.map(jnp.asarray, annotations), draws=20)
    fit.save(tmp_path / "run")
    assert_same(cs.load_fit(tmp_path / "run"), cs.load_fit(tmp_path / "run"))
    np.testing.assert_array_equal(cs.load_fit(tmp_path / "run").posterior.votes, fit.posterior.votes)


def own_link(weight, feature):
    return feature @ weight


@pytest.mark.parametrize(
    ("name", "priors"),
    [
        ("expert-views", {"concentration": 2.0, "sensitivity": BetaPrior(5.0, 2.0)}),
        ("dirichlet", {"plausibility": Symmetric(0.3)}),
        ("block-linkage", {"value_share": 0.5}),
        ("normal-inverse-gamma", {}),
    ],
)
def test_priors_of_numbers_come_back(name, priors):
    kind = member(name).priors
    given = kind(**priors)
    text = json.loads(json.dumps(stored_priors(given)))
    assert restored_priors(text, describe_priors(given), kind) == given
    # A file of before they were stored has words only, which tell the default alone.
    assert restored_priors({}, describe_priors(kind()), kind) == kind()
    assert (restored_priors({}, describe_priors(given), kind) is None) == bool(priors)


def test_priors_that_no_file_can_hold_are_named():
    kind = member("expert-views").priors
    given = kind(concentration=2.0, logits=own_link, sensitivity=dist.Beta(5.0, 2.0), guess=dist.Beta(np.ones(2), 1.0))
    text, words = stored_priors(given), describe_priors(given)
    assert restored_priors(text, words, kind) is None
    assert unknown_priors(text, words, kind) == ["sensitivity", "guess", "logits"]
    assert "logits: own_link" in words


@pytest.mark.parametrize("place", ["os:system", "consilience.models.beta_priors:np", "consilience.models.absent:X"])
def test_no_file_brings_records_of_elsewhere(place):
    kind = member("expert-views").priors
    text = {**stored_priors(kind()), "sensitivity": {"record": place, "fields": {}}}
    assert restored_priors(text, describe_priors(kind()), kind) is None


def test_a_loaded_fit_knows_its_priors(folder, annotations):
    assert cs.load_fit(folder).priors == cs.fit("dirichlet", annotations, reliability=2.0).priors
    own = member("dirichlet").priors(plausibility=dist.Dirichlet(np.full(3, 0.5)))
    cs.fit("dirichlet", annotations, own).save(folder.parent / "own")
    loaded = cs.load_fit(folder.parent / "own")
    assert loaded.priors is None
    assert loaded.unknown_priors == ["plausibility"]
    assert "Dirichlet(concentration=[0.5, 0.5, 0.5])" in loaded.describe()["priors"]


def test_words_of_a_prior_that_was_expanded_tell_what_it_is():
    priors = member("expert-views").priors(weight=dist.Normal(0.0, 2.0).expand((5, 3)).to_event(2))
    assert "weight: Normal(loc=0.0, scale=2.0) of shape (5, 3)" in describe_priors(priors)


# ---- fits of earlier versions ----


def test_a_fit_of_records_from_before_some_fields_is_loaded(tmp_path):
    """It was saved when records had no fields that are compared by similarity."""
    loaded = cs.load_fit(Path(__file__).with_name("fit_before_similar_fields"))
    assert loaded.data.similar is None
    assert loaded.entities()["entity"].tolist() == ["c1", "c2", "c3", "c4", "c1", "c4", "r3", "c2"]
    assert loaded.num_entities().interval == (5, 6)
    assert loaded.notes()
    loaded.save(tmp_path / "again")
    assert cs.load_fit(tmp_path / "again").entities().equals(loaded.entities())


def test_fields_that_came_later_count_where_they_are_there():
    records = cs.load_fit(Path(__file__).with_name("fit_before_similar_fields")).data
    others = records.replace(similar=np.array([True, False, False]))
    assert others.fingerprint() != records.fingerprint()
    assert records.replace(candidate=np.zeros((1, 2), np.int32)).fingerprint() != records.fingerprint()
