"""Constraints on the command line: fit, look at the tables, predict new items, and what is refused before JAX."""

import csv
import functools
import json
import subprocess
import sys

import pytest

import consilience as cs
from benchmarks.views_experts import simulate_experts, three_clusters
from consilience.cli import main
from consilience.errors import UnsupportedRequest
from consilience.models import member

HEAVY = {"jax", "numpyro", "pandas", "scipy", "matplotlib"}


def write(path, header, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


@pytest.fixture(scope="module")
def made():
    """Return two views of forty items, and five experts of the one and five of the other; item 40 is never judged."""
    clusterings = three_clusters(41, num_noise=0, seed=0)
    data, experts = simulate_experts(
        clusterings.label[:, :40], clusterings.feature[:40], num_together=60, num_apart=60, protocol="own",
        sensitivity=0.95, specificity=0.95, seed=0,
    )  # fmt: skip
    return clusterings, data, experts


@pytest.fixture(scope="module")
def folder(made, tmp_path_factory):
    """Fit by the command, in a folder with the files."""
    path = tmp_path_factory.mktemp("views")
    clusterings, data, _ = made
    rows = zip(data.expert, data.item_a, data.item_b, data.together, strict=True)
    write(path / "pairs.csv", ["expert", "i", "j", "link"], [(f"e{m}", f"s{a}", f"s{b}", t) for m, a, b, t in rows])
    names = ["left", "up", "right", "down"]
    features = [(f"s{n}", *row) for n, row in enumerate(clusterings.feature.tolist())]
    write(path / "items.csv", ["sample", *names], features)
    write(path / "new.csv", ["item", *names[::-1]], [(row[0], *row[:0:-1]) for row in features[:6]])
    files = [str(path / "pairs.csv"), "--features", str(path / "items.csv")]
    options = ["--clusters", "3", "--views", "3", "--rungs", "8", "-o", str(path / "run")]
    assert main(["fit", "expert-views", *files, *options]) in (0, 3)
    return path


@pytest.fixture(scope="module")
def fit(folder):
    return cs.load_fit(folder / "run")


@pytest.fixture
def printed(printed):
    return functools.partial(printed, may_be_poor=True)


def test_the_views_are_found(fit, made):
    clusterings, _, experts = made
    view = fit.experts()["view"].to_numpy()
    assert len(set(zip(view.tolist(), experts.view_of_expert.tolist(), strict=True))) == 2
    for truth in range(2):
        own = fit.partition(int(view[experts.view_of_expert == truth][0])).estimate()[:40]
        assert cs.score_partition(own, clusterings.label[truth, :40])["ari"] > 0.8
    assert fit.num_views().value == 2
    assert fit.data.experts.tolist() == [f"e{m}" for m in range(10)]


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("views", ["item", "view", "cluster", "probability"]),
        ("same_view", ["expert_a", "expert_b", "probability"]),
        ("questions", ["item_a", "item_b", "view", "expert", "together", "gain"]),
        ("contradictions", ["expert", "item_a", "item_b", "answer", "probability", "together", "gain"]),
        ("directions", ["view", "feature", "cluster", "weight", "lower", "upper", "importance"]),
        ("evidence", ["clusters", "log_evidence", "standard_error", "probability", "pairs_apart"]),
        ("ladder", ["ladder", "rung", "exponent", "swap_rate", "mean_log_likelihood"]),
        ("view_sizes", ["view", "used", "experts", "clusters", "sizes"]),
    ],
)
def test_tables_have_the_ids_of_the_file(folder, printed, name, columns):
    text = printed("table", folder / "run", name)
    assert text.split("\n")[0].split() == columns
    rows = json.loads(printed("table", folder / "run", name, "--json"))
    for row in rows[:5]:
        for column in set(columns) & {"item", "item_a", "item_b"}:
            assert row[column].startswith("s")
        for column in set(columns) & {"expert", "expert_a", "expert_b"}:
            assert row[column].startswith("e")
    if name == "directions":
        assert {row["feature"] for row in rows} == {"left", "up", "right", "down"}


def test_the_table_of_experts_shows_the_prior(folder, printed):
    rows = json.loads(printed("table", folder / "run", "experts", "--json"))
    assert {row["answers"] for row in rows} == {120}
    assert all(row["sensitivity_prior"] == pytest.approx(2 / 3) for row in rows)
    assert all(row["sensitivity_lower"] < row["sensitivity"] < row["sensitivity_upper"] for row in rows)


def test_new_items_are_predicted_by_the_command(folder, fit, printed, tmp_path):
    text = printed("predict", folder / "run", folder / "new.csv")
    assert text.split("\n")[0].split() == ["item", "view", "cluster", "probability", "entropy", "p_1", "p_2", "p_3"]
    words = ("predict", folder / "run", folder / "new.csv", "--json", "--csv", tmp_path / "out.csv")
    rows = json.loads(printed(*words))
    assert [row["item"] for row in rows[:4]] == ["s0", "s0", "s1", "s1"]
    assert all(row[f"p_{row['cluster']}"] == row["probability"] for row in rows)  # as many as clusters are numbered
    with open(tmp_path / "out.csv") as file:
        assert len(list(csv.DictReader(file))) == len(rows) == 12
    assert len(fit.predict(folder / "new.csv", all_views=True)) == 18
    # The sample that nobody judged is predicted in the table of views, as it would be here.
    silent = fit.views().set_index(["item", "view"]).loc["s40"]
    assert fit.predict(folder / "items.csv").set_index(["item", "view"]).loc["s40", "probability"].to_numpy() == (
        pytest.approx(silent["probability"].to_numpy())
    )


def test_the_fit_says_what_was_read_and_what_to_do_next(folder, printed):
    words = ["fit", "expert-views", str(folder / "pairs.csv"), "--features", str(folder / "items.csv")]
    options = ["--clusters", "3", "--views", "3", "--method", "cavi", "--restarts", "4"]
    out = printed(*words, *options, "-o", folder / "run", "--force")
    assert "1,200 constraints, 10 experts, 41 items, 4 features" in out
    assert "views    number of views, cavi: 2.0" in out
    assert "note     1 of 41 items are in no pair; features alone tell their clusters" in out
    assert f"next     consilience table {folder / 'run'}" in out


def test_summaries_and_arviz_have_no_labels_to_exchange(fit):
    summary = fit.summary(draws=50)
    assert {name.split("[")[0] for name in summary["quantity"]} == {
        "sensitivity", "specificity", "log_likelihood", "num_views", "same_view", "together",
    }  # fmt: skip
    posterior = fit.to_arviz(draws=50).posterior
    assert posterior["weight"].dims == ("chain", "draw", "view", "feature", "of_cluster")
    assert posterior["feature"].to_numpy().tolist() == ["left", "up", "right", "down", "offset"]
    assert posterior["cluster"].sizes["judged_item"] == 40


def test_what_is_asked_of_a_fit(fit):
    assert 0 <= fit.together("s0", "s1", expert="e0") <= 1
    assert fit.together(["s0", "s40"], ["s40", "s40"], view=0).tolist()[1] == 1.0
    partition = fit.partition_of_expert("e0")
    system = cs.Partition.from_codes(partition.estimate(), records=partition.ids["record"])
    assert cs.evaluate(partition, system).value > 0.8
    with pytest.raises(UnsupportedRequest, match="several partitions"):
        cs.evaluate(fit, system)
    with pytest.raises(UnsupportedRequest, match="several partitions"):
        cs.certainty(fit)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["predict", "{run}", "absent.csv"], "there is no such file"),
        (["predict", "{run}", "{pairs}"], "a number is expected"),
        (["predict", "absent", "{items}"], "is not a folder"),
        (["fit", "expert-views", "{items}", "-o", "x"], "there is no column 'expert'"),
        (["fit", "expert-views", "{pairs}", "--features", "{pairs}", "-o", "x"], "a number is expected"),
        (["fit", "expert-views", "{pairs}", "--features", "absent.csv", "-o", "x"], "there is no such file"),
        (["fit", "dawid-skene", "{items}", "--features", "{items}", "-o", "x"], "--features has no meaning"),
    ],
)
def test_errors_of_views_come_before_jax(folder, tmp_path, words, message):
    places = {"run": folder / "run", "pairs": folder / "pairs.csv", "items": folder / "items.csv"}
    words = [word.format(**places) for word in words]
    ending = "; import json; print('loaded', json.dumps([code, sorted(sys.modules)]))"
    code = f"import sys; from consilience.cli import main; code = main(sys.argv[1:]){ending}"
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    code, modules = json.loads(done.stdout.rpartition("loaded ")[2])
    assert code == 1
    assert message in done.stderr
    assert not HEAVY & set(modules)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "needs the option 'clusters'"),
        (["--clusters", "1"], "it must be at least 2"),
        (["--clusters", "3", "--views", "11"], "there are 10 experts, each with one view, and views is 11; give 10"),
        (["--clusters", "3", "--views", "-1"], "it must be at least 0"),
        (["--clusters", "3", "--method", "nuts"], "take --method gibbs for this model"),
    ],
)
def test_requests_that_make_no_sense(folder, tmp_path, refused, options, message):
    files = [str(folder / "pairs.csv"), "--features", str(folder / "items.csv"), "-o", str(tmp_path / "run")]
    assert message in refused("fit", "expert-views", *files, *options)


def test_new_items_with_other_features(folder, tmp_path, refused):
    write(tmp_path / "new.csv", ["item", "left", "up", "depth"], [("x", 1, 2, 3)])
    error = refused("predict", folder / "run", tmp_path / "new.csv")
    assert "the features of the fit are not all here: 'right', 'down'" in error
    assert "the features are not those of the fit: 'depth'" in error


def test_a_page_names_the_file_of_features(fit, tmp_path):
    """By its name alone, as it was given by an absolute path."""
    page = cs.report(fit, path=tmp_path / "page.html").read_text(encoding="utf-8")
    assert fit.attributes["features_file"] == "items.csv"
    assert "cs.read_constraints(&#39;pairs.csv&#39;, features=&#39;items.csv&#39;)" in page
    assert "ITEMS.csv" not in page


def test_the_model_is_described(printed):
    out = printed("models", "expert-views")
    for told in ("--clusters", "--concentration", "--weight-scale", "item_a", "fit.questions()"):
        assert told in out


# ---- the least there can be ----


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("no features", []),
        ("one view", ["--features", "{items}", "--views", "1"]),
        ("one expert", ["--features", "{items}"]),
    ],
)
def test_the_least_can_be_fitted(folder, tmp_path, printed, case, words):
    """No features, one view or one expert leave sites without a number in them, and draws all the same."""
    pairs = folder / "pairs.csv"
    if case == "one expert":
        pairs = tmp_path / "pairs.csv"
        lines = (folder / "pairs.csv").read_text().splitlines()
        pairs.write_text("\n".join([lines[0], *(line for line in lines if line.startswith("e0,"))]))
    words = [word.format(items=folder / "items.csv") for word in words]
    run = tmp_path / "run"
    printed("fit", "expert-views", pairs, *words, "--clusters", "3", "--draws", "40", "--warmup", "40", "-o", run)
    assert not (run / "checkpoint").exists()
    rows = json.loads(printed("table", run, "views", "--json"))
    assert {row["item"][0] for row in rows} == {"s"}


def test_priors_of_the_command_line_are_known_to_every_command(folder, tmp_path, printed):
    words = [folder / "pairs.csv", "--clusters", "3", "--draws", "40", "--warmup", "40", "--concentration", "2"]
    printed("fit", "expert-views", *words, "-o", tmp_path / "run")
    rows = json.loads(printed("table", tmp_path / "run", "experts", "--json"))
    assert all(row["sensitivity_prior"] == pytest.approx(2 / 3) for row in rows)
    loaded = cs.load_fit(tmp_path / "run")
    assert loaded.priors == member("expert-views").priors(concentration=2.0)
    printed("report", tmp_path / "run", "-o", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "from consilience.models.expert_views.priors import Priors\npriors = Priors(concentration=2.0)\n" in page
    # What was found is there in sentences, and once.
    assert "advice" not in page
    assert ">notes<" not in page


# ---- what other commands say ----


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["certainty", "{run}"], "`consilience table {run} views` has the probability"),
        (["next", "{run}"], "`consilience table {run} questions` lists the pairs"),
        (["evaluate", "{run}", "--predictions", "x.csv"], "`consilience score KEY view.csv --columns record=item`"),
        (["compare", "{run}", "absent.csv"], "`consilience table {run} views --view N --csv view.csv`"),
        (["report", "{run}", "--predictions", "absent.csv", "-o", "x.html"], "several clusterings and not one truth"),
        (["chains", "{run}"], "`consilience table {run} views` prints"),
        (["agreement", "{run}"], "`consilience table {run} same_view` says"),
    ],
)
def test_commands_for_one_truth_say_what_serves_for_views(folder, refused, words, message):
    run = folder / "run"
    assert message.format(run=run) in refused(*(word.format(run=run) for word in words))


def test_one_view_is_scored_by_the_command(folder, made, tmp_path, printed, refused):
    """By the words that the refusal names."""
    clusterings, _, _ = made
    rows = json.loads(printed("table", folder / "run", "views", "--view", "1", "--json"))
    assert {row["view"] for row in rows} == {1}  # as it is asked for
    assert len(rows) == 41
    written = tmp_path / "view.csv"
    shown = printed("table", folder / "run", "views", "--view", "1", "--csv", written)
    assert {line.split()[1] for line in shown.splitlines() if line.startswith("s")} == {"1"}
    assert "view and cluster: numbered from 1; in Python from 0" in shown
    with open(written) as file:
        in_file = [(row["item"], row["view"], row["cluster"]) for row in csv.DictReader(file)]
    assert in_file == [(row["item"], str(row["view"]), str(row["cluster"])) for row in rows]
    assert in_file[:3] == [tuple(line.split()[:3]) for line in shown.splitlines() if line.startswith("s")][:3]
    key = [(f"s{item}", int(cluster)) for item, cluster in enumerate(clusterings.label[0])]
    write(tmp_path / "key.csv", ["id", "entity"], key)
    assert "pairwise" in printed("score", tmp_path / "key.csv", written, "--columns", "record=item")
    write(tmp_path / "some.csv", ["id", "entity"], key[:5])
    some = "score", tmp_path / "some.csv", written, "--columns", "record=item"
    assert "pass --unknown keep" in refused(*some)
    assert printed(*some, "--unknown", "keep").startswith("5 records")
    write(tmp_path / "more.csv", ["id", "entity"], [*key, ("new", 0)])
    more = "score", tmp_path / "more.csv", written, "--columns", "record=item"
    assert "pass --missing drop" in refused(*more)
    assert "pairwise" in printed(*more, "--missing", "drop")
    of_one = json.loads(printed("table", folder / "run", "contradictions", "--json"))[0]["expert"]
    alone = json.loads(printed("table", folder / "run", "contradictions", "--expert", of_one, "--json"))
    assert {row["expert"] for row in alone} == {of_one}
    for words, message in (
        (["views", "--view", "7"], "the table 'views' has no view 7; it has 1, 2"),
        (["experts", "--view", "7"], "the table 'experts' has no view 7"),
        (["same_view", "--view", "1"], "has no column 'view'"),
        (["views", "--expert", "x"], "the table 'views' has no column 'expert'; leave out --expert"),
        (["experts", "--expert", "nobody"], "the table 'experts' has no rows of 'nobody'; it has those of "),
    ):
        assert message in refused("table", folder / "run", *words)


def test_all_bad_options_are_named_before_data_are_read(folder, tmp_path, refused):
    (tmp_path / "pairs.csv").write_text("nothing\nof\nuse\n")
    options = ["--clusters", "two", "--restarts", "0", "--experts", "per_view", "--bound", "foo"]
    error = refused("fit", "expert-views", tmp_path / "pairs.csv", "-o", tmp_path / "run", *options)
    assert "option 'clusters' of 'expert-views' is 'two'; give a whole number, 'auto' (" in error
    assert "option 'restarts' of 'expert-views' is 0; it must be at least 1\n" in error
    assert "option 'experts' of 'expert-views' is 'per_view'; choose one of" in error
    assert "'bound'" in error
    assert "no column" not in error


def test_no_page_is_begun_in_a_folder_that_is_not_there(folder, tmp_path, capsys):
    path = tmp_path / "absent" / "page.html"
    assert main(["report", str(folder / "run"), "-o", str(path)]) == 1
    assert f"{path} cannot be written, because {path.parent} is not a folder; make it first" in capsys.readouterr().err
    assert not path.parent.exists()
