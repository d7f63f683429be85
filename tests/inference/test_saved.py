"""Saved fits: what comes back is what was saved, or an error that says why not."""

import hashlib
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
from consilience.errors import InvalidFit, OutputRefused, UnsupportedRequest
from consilience.inference import saved
from consilience.inference.durable import text_digest
from consilience.inference.stored_posterior import earlier_posterior, posterior_arrays
from consilience.inference.stored_priors import describe_priors, restored_priors, stored_priors, unknown_priors
from consilience.models import member
from consilience.models.dirichlet import Symmetric
from consilience.models.expert_views import BetaPrior
from tests.inference.runs import stop_at


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
    assert first.posterior.text == second.posterior.text
    one, two = posterior_arrays(first.posterior), posterior_arrays(second.posterior)
    assert one.keys() == two.keys()
    for name, values in one.items():
        np.testing.assert_array_equal(values, two[name])
        assert values.dtype == two[name].dtype
    assert first.describe() == second.describe()
    assert first.data.fingerprint() == second.data.fingerprint()
    assert cs.certainty(first).draws.tobytes() == cs.certainty(second).draws.tobytes()
    assert first.labels().equals(second.labels())


def test_an_exact_fit_comes_back(folder, annotations):
    fit, loaded = cs.fit("dirichlet", annotations, reliability=2.0, seed=3, draws=50), cs.load_fit(folder)
    attributes = {**fit.attributes, "seconds": loaded.attributes["seconds"], "priors": fit.describe()["priors"]}
    assert loaded.attributes == attributes
    assert loaded.describe()["priors"] == fit.describe()["priors"]
    assert loaded.truth.ids["item"].tolist() == ["a", "b", "ü", "unseen"]
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
    for site, draws in fit.posterior.chains.items():
        np.testing.assert_array_equal(loaded.posterior.chains[site], draws)
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
def test_torn_files_of_a_fit_are_refused(folder, name, share):
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


def test_a_fit_whose_text_changed_is_refused(folder):
    text = json.loads((folder / "fit.json").read_text())
    text["options"]["reliability"] = 3.0
    (folder / "fit.json").write_text(json.dumps(text))
    refused(folder, "fit.json was changed")


def test_arrays_of_another_fit_are_refused(folder, annotations):
    cs.fit("dirichlet", annotations, reliability=1.0).save(folder.parent / "other")
    shutil.copy(files(folder.parent / "other", "arrays"), files(folder, "arrays"))
    refused(folder, "npz was changed")


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
    for name, message in {"mine": "exists and is not a saved fit.*force=True", "note": "note is not a folder"}.items():
        with pytest.raises(OutputRefused, match=message):
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


def test_another_fit_is_replaced_by_force_only_and_the_same_one_as_it_is(folder, annotations):
    old, new = cs.load_fit(folder), cs.fit("dirichlet", annotations, reliability=2.0, seed=4, draws=50)
    with pytest.raises(OutputRefused, match="run holds another fit; give a new folder, or force=True to replace it"):
        new.save(folder)
    others = cs.fit("dirichlet", Annotations.from_counts([[3, 0], [1, 2]]), reliability=2.0, seed=3, draws=50)
    with pytest.raises(OutputRefused, match="another fit"):
        others.save(folder)
    assert_same(cs.load_fit(folder), old)
    cs.fit("dirichlet", annotations, reliability=2.0, seed=3, draws=50).save(folder)
    again = cs.load_fit(folder)
    assert again.posterior.plausibility.concentration.tobytes() == old.posterior.plausibility.concentration.tobytes()
    new.save(folder, force=True)
    assert_same(cs.load_fit(folder), new)


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
def test_what_a_run_had_when_it_was_interrupted_is_replaced_by_its_whole_and_not_the_other_way(annotations, tmp_path):
    settings = {"method": "nuts", "draws": 30, "warmup": 0, "chains": 2}
    part = cs.fit("dirichlet", annotations, progress=stop_at(1), **settings)
    assert part.result == "interrupted"
    part.save(tmp_path / "run")
    with pytest.raises(OutputRefused, match="another fit"):
        cs.fit("dirichlet", annotations, seed=1, **settings).save(tmp_path / "run")
    whole = cs.fit("dirichlet", annotations, **settings)
    whole.save(tmp_path / "run")
    assert_same(cs.load_fit(tmp_path / "run"), whole)
    with pytest.raises(OutputRefused, match="another fit"):
        part.save(tmp_path / "run")


def test_by_force_a_folder_holds_a_fit_beside_other_files(folder, tmp_path):
    fit, mine = cs.load_fit(folder), tmp_path / "mine"
    mine.mkdir()
    theirs = {"thesis.tex": "work", "arrays-00000000.npz": "work", "fit.json": '{"step": 10000}'}
    for name, content in theirs.items():
        (mine / name).write_text(content)
    with pytest.raises(OutputRefused, match="mine exists and is not a saved fit"):
        fit.save(mine)
    assert {path.name: path.read_text() for path in mine.iterdir()} == theirs
    fit.save(mine, force=True)
    assert_same(cs.load_fit(mine), fit)
    assert {name: (mine / name).read_text() for name in ("thesis.tex", "arrays-00000000.npz")} == {
        name: theirs[name] for name in ("thesis.tex", "arrays-00000000.npz")
    }
    (mine / "fit.json").unlink()
    (mine / "fit.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OutputRefused, match="fit.json is not a regular file"):
        fit.save(mine, force=True)
    assert not (tmp_path / "elsewhere").exists()


def test_the_folder_of_the_folder_has_to_be_there(folder, tmp_path):
    with pytest.raises(OutputRefused, match="nowhere is not a folder; make it first"):
        cs.load_fit(folder).save(tmp_path / "nowhere" / "run")
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(OutputRefused, match="link is not a folder"):
        cs.load_fit(folder).save(tmp_path / "link")


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
        cs.fit("dirichlet", annotations, reliability=9.0).save(folder, force=True)
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
    new.save(target, force=True)
    monkeypatch.undo()
    outcomes = [_outcome(copy, old, new) for copy in left]
    assert sorted(set(outcomes)) == (["new", "old"] if again else ["new", "none"])
    assert outcomes == sorted(outcomes, reverse=True)  # once the new fit is there it stays
    for copy in left:
        new.save(copy, force=True)
        assert_same(cs.load_fit(copy), cs.load_fit(target))
        assert len(list(copy.iterdir())) == 2


def _outcome(folder, old, new):
    try:
        loaded = cs.load_fit(folder)
    except InvalidFit:
        return "none"
    whole = old if loaded.options == old.options and loaded.describe()["priors"] == old.describe()["priors"] else new
    one, two = (fit.posterior.plausibility.concentration for fit in (loaded, whole))
    np.testing.assert_array_equal(one, two)
    return "old" if whole is old else "new"


def test_a_crash_while_writing_leaves_the_old_fit(folder, annotations, monkeypatch):
    old = cs.load_fit(folder)

    def crash(file, **arrays):
        file.write(b"half of it")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", crash)
    with pytest.raises(KeyboardInterrupt):
        cs.fit("dirichlet", annotations, reliability=9.0).save(folder, force=True)
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


@pytest.mark.parametrize("forged", ["", 0.0, [], "x"])
def test_priors_that_are_none_are_not_taken(forged):
    kind = member("dirichlet").priors
    given = kind(plausibility=Symmetric(0.3))
    text = json.loads(json.dumps(stored_priors(given)).replace("0.3", json.dumps(forged)))
    assert restored_priors(text, describe_priors(given), kind) is None


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


# ---- forged fits ----


def forge(folder, change, of_data=False):
    """Change the text and the arrays of a fit, with all digests as they have to be."""
    text = json.loads((folder / "fit.json").read_text())
    path = files(folder, "arrays")
    with np.load(path) as stored:
        arrays = dict(stored)
    change(text, arrays)
    np.savez(path, **arrays)
    text["arrays_sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    if of_data:
        ids = {name: saved._read_ids(arrays, f"ids.{name}") for name in ("items", "annotators", "labels")}
        stored = {name.removeprefix("data."): values for name, values in arrays.items() if name.startswith("data.")}
        text["attributes"]["data_hash"] = Annotations(**stored, **text["sizes"], **ids).fingerprint()
    text.pop("text_sha256", None)
    (folder / "fit.json").write_text(json.dumps({**text, "text_sha256": text_digest(text)}))


def in_text(name, value):
    return lambda text, arrays: text.__setitem__(name, value)


def in_array(name, value, place=0):
    def change(text, arrays):
        arrays[name] = arrays[name].copy()
        arrays[name][place] = value

    return change


def instead(name, values):
    return lambda text, arrays: arrays.__setitem__(name, np.asarray(values))


def factor_of(place):
    return lambda text, arrays: text["posterior"]["factors"].update(plausibility=place)


FORGED_TEXTS = {
    "../arrays-00000000.npz": in_text("arrays", "../arrays-00000000.npz"),
    "/dev/zero": in_text("arrays", "/dev/zero"),
    "which no fit calls its arrays": in_text("arrays", "fit.json"),
    "which no fit calls its": in_text("arrays", 3),
    "read_annotations is no kind of data": in_text("contract", "read_annotations"),
    "np": in_text("contract", "np"),
    "'draws' is 0, less than 1": in_text("draws", 0),
    "'draws' is True": in_text("draws", True),
    "'seed' is -1": in_text("seed", -1),
    "'seed' is 10+, and no number of 64 bits": in_text("seed", 10**30),
    "'options' is \\[\\], which is no dict": in_text("options", []),
    "has no option 'colour'": in_text("options", {"colour": "red"}),
    "option 'reliability' of 'dirichlet' is 'much'": in_text("options", {"reliability": "much"}),
    "'heap'": in_text("posterior", {"form": "heap"}),
    "KeyError\\('plausibility": lambda text, arrays: text["posterior"]["factors"].pop("plausibility"),
    "'attributes' is 'x'": in_text("attributes", "x"),
    "no method 'em'": in_text("method", "em"),
    "model=": in_text("model", "nobody"),
    "'shrug'": in_text("result", "shrug"),
    "data are not those that were fitted": lambda text, arrays: text["attributes"].update(data_hash="0" * 64),
    "sizes": lambda text, arrays: text.pop("sizes"),
    "'num_items' is -1, and no number of things": lambda text, arrays: text["sizes"].update(num_items=-1),
    "'num_items' is 4.0": lambda text, arrays: text["sizes"].update(num_items=4.0),
    "'num_items'": lambda text, arrays: text["sizes"].update(num_items=5),
    "format True": in_text("format", True),
    "format 1, .*; fit again": in_text("format", 1),
    "format 4, written by consilience 9.9, or later; this is .* reads formats 2 to 3; update": lambda text, arrays: (
        text.update(format=4, attributes={"library_version": "9.9, or later"})
    ),
}
FORGED_ARRAYS = {
    "'label' has codes outside 0 to 2": in_array("data.label", 3),
    "'label' has codes outside 0": in_array("data.label", -1),
    "'item' has codes outside 0 to 3": in_array("data.item", 4),
    "'annotator' has codes outside -1 to 1": in_array("data.annotator", -2),
    "'label' has the shape": instead("data.label", [0, 1]),
    "'label' has codes": instead("data.label", [0.0, 1.0, 0.0, 0.0, 0.0]),
    "'weight' holds": instead("data.weight", list("abcde")),
    "the lengths of ids.items": in_array("ids.items.lengths", 2),
    "the lengths of ids.items are": in_array("ids.items.lengths", -1),
    "UnicodeDecodeError": in_array("ids.items.text", 255),
    "there are 3 items": lambda text, arrays: arrays.update(
        {"ids.items.text": np.frombuffer(b"abc", np.uint8), "ids.items.lengths": np.ones(3, np.int64)}
    ),
    "'plausibility.entry_class' of the posterior has a value": in_array("posterior.plausibility.entry_class", 10**6),
    "first' of the posterior has 2 axes|parameter 'first'": instead("posterior.plausibility.first", [[0]] * 5),
    "'hidden.votes' of the posterior has 1 along 'entry'": instead("posterior.hidden.votes", [1.0]),
    "'hidden.votes' of the posterior holds": instead("posterior.hidden.votes", ["a"]),
    "pickle": instead("posterior.hidden.votes", np.array([None], dtype=object)),
    "not complete": lambda text, arrays: arrays.pop("posterior.plausibility.concentration"),
    "os:path is no record of the library": factor_of("os:path"),
    "is no distribution": factor_of("consilience.models.dirichlet:Annotations"),
    "'Poisson'": factor_of("Poisson"),
    "data are not those": in_array("data.label", 1),
}  # fmt: skip


@pytest.mark.parametrize("match", FORGED_TEXTS)
def test_forged_texts_are_refused(folder, match):
    (folder.parent / "arrays-00000000.npz").write_bytes(files(folder, "arrays").read_bytes())
    forge(folder, FORGED_TEXTS[match])
    assert str(folder) in refused(folder, match)


@pytest.mark.parametrize("match", FORGED_ARRAYS)
def test_forged_arrays_are_refused(folder, match):
    forge(folder, FORGED_ARRAYS[match])
    assert str(folder) in refused(folder, match)


@pytest.mark.parametrize("name", ["data.label", "data.item", "data.annotator"])
def test_codes_outside_their_ranges_are_refused_with_the_right_fingerprint_too(folder, name):
    forge(folder, in_array(name, 7), of_data=True)
    refused(folder, "has codes outside")


def mutated(value, random):
    """Return a record of JSON with one of its values, at any depth, replaced or left out."""
    if isinstance(value, dict) and value and random.random() < 0.9:
        name = sorted(value)[random.integers(len(value))]
        if random.random() < 0.2:
            return {key: one for key, one in value.items() if key != name}
        return {**value, name: mutated(value[name], random)}
    strange = [None, -1, 0, 10**30, 0.5, float("nan"), "", "x" * 1000, [], {}, [[]], True, "\ud800", {"": {}}]
    return strange[random.integers(len(strange))]


def test_whatever_the_text_says_it_is_refused_by_name_or_loaded(folder):
    votes, random = cs.load_fit(folder).posterior.votes, np.random.default_rng(0)
    text = json.loads((folder / "fit.json").read_text())
    del text["text_sha256"]
    outcomes = []
    for _ in range(300):
        forged = mutated(text, random)
        forged = {**forged, "text_sha256": text_digest(forged)} if isinstance(forged, dict) else forged
        (folder / "fit.json").write_text(json.dumps(forged))
        try:
            fit = cs.load_fit(folder)
        except InvalidFit:
            outcomes.append("refused")
            continue
        outcomes.append("loaded")
        np.testing.assert_array_equal(fit.posterior.votes, votes)
    assert outcomes.count("refused") > 100
    assert outcomes.count("loaded") > 20  # with another seed, reason or version, for example


def test_a_text_of_any_depth_is_refused(folder):
    (folder / "fit.json").write_text("[" * 100_000)
    refused(folder, "torn")


def test_what_is_no_file_is_not_read(folder):
    (folder / "fit.json").unlink()
    os.mkfifo(folder / "fit.json")
    refused(folder, "no fit.json")


# ---- ids ----


@pytest.mark.parametrize("ids", [["a", "ü", "x\x01", "\U0001f600"], ["1\n2", "1", "2"]])
def test_ids_of_any_characters_come_back(tmp_path, ids):
    data = Annotations.from_codes(range(len(ids)), [0] * len(ids), [0] * len(ids), items=ids, labels=["x", "y"])
    cs.fit("dirichlet", data, draws=2).save(tmp_path / "run")
    loaded = cs.load_fit(tmp_path / "run").data
    assert loaded.items.tolist() == ids
    assert loaded.items.dtype == object


def test_one_long_id_makes_no_other_long(tmp_path):
    """Of 3,000 items one with 60,000 characters took 720 MB."""
    ids = [f"item {number}" for number in range(3000)]
    ids[7] = "x" * 60_000
    data = Annotations.from_codes(range(3000), [0] * 3000, [0] * 3000, items=ids, labels=["x", "y"])
    cs.fit("dirichlet", data, draws=2).save(tmp_path / "run")
    assert files(tmp_path / "run", "arrays").stat().st_size < 1_000_000
    assert cs.load_fit(tmp_path / "run").data.items.tolist() == ids


# ---- fits of earlier versions ----


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
@pytest.mark.parametrize(
    ("model", "method"), [("dirichlet", "exact"), ("mace", "em"), ("dawid-skene", "cavi"), ("dawid-skene", "gibbs")]
)
def test_posteriors_of_format_2_are_what_they_are_now(annotations, model, method):
    """They were arrays by name: of an ascent those that it ended with, EM's as one draw of one chain."""
    fit = cs.fit(model, annotations, method=method, draws=20, **({"warmup": 5} if method == "gibbs" else {}))
    stored = {name.rpartition("hidden.")[2]: one for name, one in posterior_arrays(fit.posterior).items()}
    if method == "cavi":
        stored = {name.removesuffix(".concentration"): one for name, one in stored.items()}
    elif method == "em":
        stored = {name: one[None, None] for name, one in stored.items()}
    posterior = earlier_posterior(fit.member, method, stored, fit.resolved)
    assert posterior.text == fit.posterior.text
    for name, values in posterior_arrays(posterior).items():
        np.testing.assert_array_equal(values, posterior_arrays(fit.posterior)[name])


def test_an_earlier_posterior_that_cannot_be_told_is_refused_by_name(annotations):
    fit = cs.fit("dawid-skene", annotations)
    with pytest.raises(UnsupportedRequest, match="of an earlier version.*'dawid-skene' by cavi"):
        earlier_posterior(fit.member, "cavi", {"nu": np.ones(3)}, fit.resolved)
    unknown = fit.resolved.replace(given=None)
    exact = cs.fit("dirichlet", annotations).member
    with pytest.raises(UnsupportedRequest, match="of an earlier version"):
        earlier_posterior(exact, "exact", {}, exact.resolve(annotations).replace(given=unknown.given))


@pytest.mark.parametrize(
    "options", [{}, {"wide": 0.0, "links": "auto", "moves": "blocks"}], ids=["at first", "with options now gone"]
)
def test_a_fit_of_records_from_before_some_fields_is_loaded(tmp_path, options):
    """It was saved when records had no fields that are compared by similarity."""
    folder = shutil.copytree(Path(__file__).with_name("fit_before_similar_fields"), tmp_path / "fit")
    forge(folder, lambda text, arrays: text["options"].update(options))
    loaded = cs.load_fit(folder)
    assert loaded.data.similar is None
    assert loaded.entities()["entity"].tolist() == ["c1", "c2", "c3", "c4", "c1", "c4", "r3", "c2"]
    assert loaded.num_entities().interval == (5, 6)
    assert loaded.findings()
    loaded.save(tmp_path / "again")
    assert cs.load_fit(tmp_path / "again").entities().equals(loaded.entities())


def test_fields_that_came_later_count_where_they_are_there():
    records = cs.load_fit(Path(__file__).with_name("fit_before_similar_fields")).data
    others = records.replace(similar=np.array([True, False, False]))
    assert others.fingerprint() != records.fingerprint()
    assert records.replace(candidate=np.zeros((1, 2), np.int32)).fingerprint() != records.fingerprint()
