"""Anything in: frames, paths, columns, rows and standard input, wherever data, systems or groups are asked for."""

import io
import json
import os
import re
import sys
import threading

import pandas
import polars
import pytest

import consilience as cs
from consilience.cli import ExitCode
from consilience.errors import InputError, InputWarning, UnknownName, UnsupportedRequest

ANNOTATIONS = [
    {"item": item, "annotator": annotator, "label": label}
    for item, labels in {"i1": "nnn", "i2": "nyy", "i3": "yyn"}.items()
    for annotator, label in zip("abc", labels, strict=True)
]
PEOPLE = [
    {"id": name, "name": person, "town": town, "born": born}
    for name, person, town, born in zip(
        "abcdefgh", ["Ann", "Ann", "Bob", "Bob", "Cid", "Dan", "Eve", "Fay"],
        ["Ulm", "Ulm", "Bonn", "Bonn", "Ulm", "Bonn", "Ulm", "Bonn"],
        [1980, 1980, 1975, 1975, 1990, 1991, 1960, 1944], strict=True,
    )
]  # fmt: skip
GROUPS = [{"class": "n", "group": 0}, {"class": "y", "group": 3}]
SYSTEM = [{"item": f"i{k}", "label": label} for k, label in enumerate("nyn", start=1)]


def written(rows, path):
    pandas.DataFrame(rows).to_csv(path, index=False)
    return path


FORMS = {
    "path": lambda rows, folder: written(rows, folder / "predictions.csv"),
    "frame": lambda rows, folder: pandas.DataFrame(rows),
    "columns": lambda rows, folder: pandas.DataFrame(rows).to_dict("list"),
    "rows": lambda rows, folder: rows,
}


# ---- every verb takes every form, and finds what it finds of the contract

MORE_FORMS = {
    **FORMS,
    "str": lambda rows, folder: str(written(rows, folder / "predictions.csv")),
    "open file": lambda rows, folder: io.StringIO(csv(rows)),
    "polars": lambda rows, folder: polars.DataFrame(rows),
    "lazy polars": lambda rows, folder: polars.LazyFrame(rows),
}
OF_UNITS = {
    "Series": lambda rows, folder: pandas.DataFrame(rows).set_index(list(rows[0])[0]).iloc[:, 0],
    "dict": lambda rows, folder: dict(map(dict.values, rows)),
}
RESPONSE = [{"record": record, "entity": entity} for record, entity in zip("1234", "aabb", strict=True)]
KEY = [{"record": record, "entity": entity} for record, entity in zip("1234", "aaab", strict=True)]


def page_of(path):
    """Return a page but for the line that reads its systems again, which names their file."""
    return re.sub("\npredictions = .*", "", path.read_text(encoding="utf-8"))


VERBS = {
    # what is given in every form; what is found of it, as the contract or in that form
    "fit": (ANNOTATIONS, lambda fit, given: cs.fit("dirichlet", given, draws=20).labels()["probability"].tolist()),
    "agreement": (ANNOTATIONS, lambda fit, given: cs.agreement(given).value),
    "evaluate": (SYSTEM, lambda fit, given: cs.evaluate(fit, given).value),
    "certainty": (SYSTEM, lambda fit, given: cs.certainty(fit, of=given).value),
    "compare": (SYSTEM, lambda fit, given: cs.compare(fit, {"A": given}).table["value"].tolist()),
    "report": (SYSTEM, lambda fit, given: page_of(cs.report(fit, {"A": given}, path="page.html", force=True))),
    "score_partition": (RESPONSE, lambda fit, given: str(cs.score_partition(given, cs.read_partition(KEY)))),
}
READERS = {"fit": cs.read_annotations, "agreement": cs.read_annotations, "score_partition": cs.read_partition}


@pytest.mark.parametrize(
    ("verb", "name"),
    [
        (verb, name) for verb, (rows, _) in VERBS.items() for name in (*MORE_FORMS, *OF_UNITS)
        # There are several labels of an item; and of a page, which takes long, three say enough.
        if not (name in OF_UNITS and rows is ANNOTATIONS or verb == "report" and name not in ("str", "polars", "dict"))
    ],
)  # fmt: skip
def test_every_verb_takes_every_form(tmp_path, monkeypatch, dirichlet, verb, name):
    rows, found = VERBS[verb]
    monkeypatch.chdir(tmp_path)
    expected = found(dirichlet, READERS.get(verb, cs.read_predictions)(rows))
    if "polars" in name:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert found(dirichlet, {**MORE_FORMS, **OF_UNITS}[name](rows, tmp_path)) == expected


@pytest.mark.parametrize("name", ["columns", "dict"])
def test_a_dict_that_names_items_or_columns_is_one_system(dirichlet, name):
    found = cs.compare(dirichlet, {**MORE_FORMS, **OF_UNITS}[name](SYSTEM, None))
    assert found.table.equals(cs.compare(dirichlet, {"predictions": cs.read_predictions(SYSTEM)}).table)


def test_columns_of_systems_are_named_where_they_are_scored(dirichlet):
    own = pandas.DataFrame(SYSTEM).rename(columns={"label": "predicted"})
    columns = {"class": "predicted"}
    assert cs.evaluate(dirichlet, own, columns=columns).value == cs.evaluate(dirichlet, SYSTEM).value
    found = cs.compare(dirichlet, {"A": own}, columns=columns).table
    assert found.equals(cs.compare(dirichlet, {"A": SYSTEM}).table)


@pytest.fixture(scope="module")
def dirichlet():
    return cs.fit("dirichlet", cs.read_annotations(ANNOTATIONS), draws=20)


def test_how_data_are_read_is_said_to_fit():
    rows = [*ANNOTATIONS, {"item": "i4", "annotator": "a", "label": None}]
    with pytest.warns(InputWarning, match="1 rows without a label"):
        assert cs.fit("dirichlet", rows, read={"missing": "drop"}, draws=20).data.num_items == 3
    with pytest.raises(UnsupportedRequest, match="read= says how data are read, and these are read"):
        cs.fit("dirichlet", cs.read_annotations(ANNOTATIONS), read={"missing": "drop"})
    own = pandas.DataFrame(ANNOTATIONS).rename(columns={"item": "data.row_id", "label": "choice"})
    columns = {"item": "data.row_id", "label": "choice"}
    assert cs.fit("dirichlet", own, columns=columns, draws=20).data.num_items == 3
    assert cs.agreement(own, columns=columns).value == cs.agreement(ANNOTATIONS).value
    with pytest.raises(UnsupportedRequest, match="columns= says how data are read, and these are read"):
        cs.fit("dirichlet", cs.read_annotations(ANNOTATIONS), columns=columns)
    with pytest.raises(UnknownName, match="the reader of Annotations has no option 'mising'; did you mean 'missing'"):
        cs.fit("dirichlet", rows, read={"mising": "drop"})


@pytest.fixture(params=FORMS)
def form(request, tmp_path):
    """Return a function that gives rows in one of the forms of a source."""
    return lambda rows: FORMS[request.param](rows, tmp_path)


def test_a_sweep_takes_every_source(form):
    asked = {"draws": 20, "seed": 1, "metrics": ["top-1"]}
    data = cs.read_annotations(ANNOTATIONS)
    groups, system = cs.read_class_map(GROUPS), cs.read_predictions(SYSTEM)
    expected = cs.sweep("dirichlet", data, [1, 5], class_groups=groups, systems={"A": system}, **asked)
    found = cs.sweep("dirichlet", form(ANNOTATIONS), [1, 5], class_groups=groups, systems={"A": system}, **asked)
    pandas.testing.assert_frame_equal(found, expected)
    found = cs.sweep("dirichlet", data, [1, 5], class_groups=form(GROUPS), systems={"A": system}, **asked)
    pandas.testing.assert_frame_equal(found, expected)
    found = cs.sweep("dirichlet", data, [1, 5], class_groups=groups, systems={"A": form(SYSTEM)}, **asked)
    pandas.testing.assert_frame_equal(found, expected)


def test_links_are_made_of_every_source(form):
    fit = cs.link(form(PEOPLE))
    assert fit.entities()["entity"].tolist() == list("aaccefgh")
    assert fit.attributes["id"] == "id"


def test_records_that_were_read_are_linked_as_they_are():
    records = cs.read_records(PEOPLE)
    assert cs.link(records).entities()["entity"].tolist() == list("aaccefgh")
    assert cs.link(records, fields=["name", "town", "born"]).data.fields.tolist() == ["name", "town", "born"]
    with pytest.raises(UnsupportedRequest, match="id= says how tables are read, and these records are read"):
        cs.link(records, id="id")


def test_a_check_takes_every_source(form):
    # Rankings are what `prirn` takes: the columns of annotations are refused, so that the source was looked at.
    with pytest.raises(InputError, match="rank"):
        cs.check("prirn", form(ANNOTATIONS))


def test_groups_come_from_every_source(form, tmp_path):
    fit = cs.fit("dirichlet", cs.read_annotations(ANNOTATIONS), draws=20)
    groups, system = cs.read_class_map(GROUPS), cs.read_predictions(SYSTEM)
    assert cs.certainty(fit, class_groups=form(GROUPS)).value == cs.certainty(fit, class_groups=groups).value
    assert cs.expected_risk(fit, form(GROUPS)).value == cs.expected_risk(fit, groups).value
    found, expected = (cs.evaluate(fit, system, class_groups=by).by_group for by in (form(GROUPS), groups))
    pandas.testing.assert_frame_equal(found, expected)
    both = enumerate((form(GROUPS), groups))
    pages = [cs.report(fit, path=tmp_path / f"{k}.html", class_groups=one) for k, one in both]
    alike, other = (page.read_text(encoding="utf-8").partition("cs.report(")[0] for page in pages)
    assert re.sub(r"class_groups = .*\n", "", alike) == re.sub(r"class_groups = .*\n", "", other)


def test_a_text_file_has_a_group_for_each_class_of_the_fit(tmp_path):
    fit = cs.fit("dirichlet", cs.read_annotations(ANNOTATIONS), draws=20)
    (tmp_path / "groups.txt").write_text("0\n3\n")
    expected = cs.expected_risk(fit, cs.read_class_map(GROUPS)).value
    assert cs.expected_risk(fit, tmp_path / "groups.txt").value == expected


# ---- standard input ----


@pytest.fixture
def piped(run, monkeypatch, tmp_path):
    """Return a function that runs the command in a folder, with a text as its standard input."""
    monkeypatch.chdir(tmp_path)
    return lambda text, *words: run(*words, piped=text)


def csv(rows):
    return pandas.DataFrame(rows).to_csv(index=False)


def test_data_systems_groups_and_records_from_standard_input(piped, tmp_path):
    code, shown, _ = piped(csv(ANNOTATIONS), "fit", "dirichlet", "-", "-o", "run", "--draws", "20")
    assert code == 0
    assert "read     -: 9 annotations, 3 items" in shown
    assert cs.load_fit("run").data.fingerprint() == cs.read_annotations(ANNOTATIONS).fingerprint()
    for rows, *words in (
        (ANNOTATIONS, "agreement"), (SYSTEM, "evaluate", "run", "--predictions"), (SYSTEM, "compare", "run"),
        (GROUPS, "certainty", "run", "--class-groups"),
    ):  # fmt: skip
        written(rows, tmp_path / "file.csv")
        code, shown, _ = piped(csv(rows), *words, "-", "--json")
        assert code == 0
        assert shown.replace("standard input", "file") == piped("", *words, "file.csv", "--json")[1]
    assert piped(csv(PEOPLE), "link", "-", "-o", "linked")[0] == 0
    assert len(pandas.read_csv("linked/entities.csv")) == len(PEOPLE)


def test_fifos_and_json_lines_are_read_once(piped, tmp_path):
    lines = "".join(f"{json.dumps(row)}\n" for row in ANNOTATIONS)
    assert piped(lines, "fit", "dirichlet", "-", "-o", "run", "--draws", "20")[0] == 0
    for name, text in (("fifo", csv(ANNOTATIONS)), ("fifo.csv", csv(ANNOTATIONS)), ("other", lines)):
        os.mkfifo(tmp_path / name)
        writer = threading.Thread(target=(tmp_path / name).write_text, args=(text,))
        writer.start()
        code, shown, errors = piped("", "fit", "dirichlet", name, "-o", "run", "--draws", "20", "--force")
        writer.join()
        assert code == 0, errors
        assert f"read     {name}: 9 annotations, 3 items" in shown
        assert cs.load_fit("run").data.fingerprint() == cs.read_annotations(ANNOTATIONS).fingerprint()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("score - -", "- is standard input, which holds one table; give files in the place of the others"),
        ("link - - -o linked", "- is standard input, which holds one table"),
        ("evaluate - --predictions -", "- is standard input, which holds one table"),
        ("fit prirn - -o run", "standard input, column 'rank': there is no column 'rank'"),
        ("score - key.conll", "this is read as a table, in CSV or JSON lines; give the path"),
    ],
)
def test_what_standard_input_cannot_be(piped, tmp_path, words, message):
    (tmp_path / "key.conll").write_text("#begin document d\nd\t0\t(0)\n#end document\n")
    code, _, errors = piped(csv(ANNOTATIONS), *words.split())
    assert code == ExitCode.error
    assert message in " ".join(errors.split())
    assert not (tmp_path / "linked").exists()


def test_a_problem_of_standard_input_names_its_line(piped):
    code, _, errors = piped("item,annotator,label\ni1,a,n\ni2,a,\n", "fit", "dirichlet", "-", "-o", "run")
    assert code == ExitCode.error
    assert "standard input, line 3, column 'label': the label is empty" in errors


def test_outside_of_the_command_a_minus_is_a_file_name():
    with pytest.raises(InputError, match="there is no such file"):
        cs.read_annotations("-")
