"""`link` on tables that are written in different ways: what it finds, what it says of cleaning, what stops there."""

import html
import json
import unicodedata
import warnings

import numpy as np
import pandas as pd
import pytest

import consilience as cs
from consilience.cli import main
from consilience.errors import DiagnosticWarning, InputError, InputWarning, UnknownName, UnsupportedRequest
from consilience.linking import prepare

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.InputWarning")

FIRST = ["Łukasz", "José", "Zoë", "Anna", "Max", "Jean-Luc", "François", "Søren", "Weiß", "Ida", "Björn", "Noël"]
START = ["Mül", "Gar", "O'Ne", "Smi", "Ång", "Dvoř", "Kow", "Pé", "van der Wa", "Lo", "St. Cla", "Jør"]
END = ["ler", "cía", "il", "th", "ström", "ák", "alski", "rez", "nner"]
CITY = ["Köln", "Bonn", "München", "Jena", "Kiel", "Saint-Denis", "Zürich", "Łódź"]


def plain(text):
    """Write a name as a machine without accents does."""
    text = "".join(mark for mark in unicodedata.normalize("NFD", text) if not unicodedata.combining(mark))
    return text.replace("Ł", "L").replace("ł", "l").replace("ø", "o").upper().replace("'", "’")


def people(generator, number):
    days = np.datetime64("1940-01-01") + generator.integers(0, 22_000, number)
    return pd.DataFrame({
        "first": generator.choice(FIRST, number),
        "last": np.char.add(generator.choice(START, number), generator.choice(END, number)),
        "born": days.astype(str), "city": generator.choice(CITY, number),
        "phone": [f"0{digits}" for digits in generator.integers(20 * 10**8, 99 * 10**8, number)],
    })  # fmt: skip


@pytest.fixture(scope="module")
def tables():
    """Return 300 people, and 100 of them with 100 others as another office writes them."""
    generator = np.random.default_rng(5)
    left = people(generator, 300)
    right = pd.concat([left.iloc[:100], people(generator, 100)], ignore_index=True)
    day = right["born"].str.split("-")
    right = pd.DataFrame({
        "First": right["first"].map(plain), "Last Name": right["last"].map(plain),
        "born": day.str[2] + "/" + day.str[1] + "/" + day.str[0], "City": right["city"].map(plain),
        "phone": "+44 " + right["phone"].str[1:3] + " " + right["phone"].str[3:7] + " " + right["phone"].str[7:],
    })  # fmt: skip
    left.insert(0, "id", [f"a{row}" for row in range(300)])
    right.insert(0, "id", [f"b{row}" for row in range(200)])
    return {"left": left.rename(columns={"last": "last_name"}), "right": right}


@pytest.fixture(scope="module")
def fitted(tables):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        return cs.link(tables, draws=10)


def links(fit):
    table = fit.entities()
    groups = table.groupby("entity")["record"].apply(list)
    return {tuple(sorted(group)) for group in groups if len(group) > 1}


def test_people_whom_two_offices_write_differently_are_found(fitted):
    assert links(fitted) == {(f"a{row}", f"b{row}") for row in range(100)}
    types = "first (category), last_name (string), born (date), city (category), phone (phone)"
    assert fitted.attributes["fields"] == types


def test_days_as_numpy_has_them_beside_texts(tables):
    moments = tables["left"].assign(id=[f"c{row}" for row in range(300)], born=pd.to_datetime(tables["left"]["born"]))
    fit = cs.link({"left": tables["left"], "moments": moments}, draws=10)
    first, second = np.asarray(fit.data.value)[:, :300], np.asarray(fit.data.value)[:, 300:]
    np.testing.assert_array_equal(first, second)
    assert links(fit) == {(f"a{row}", f"c{row}") for row in range(300)}


def test_the_tables_show_what_was_written(fitted, tables):
    shown = fitted.canonical()
    own = shown[(shown["entity"] == "a0")].set_index("field")["value"]
    assert own["last_name"] == tables["left"]["last_name"][0]
    assert own["born"] == tables["left"]["born"][0]


def test_the_ledger_of_a_fit_is_kept_and_shown(fitted, tables, tmp_path):
    table = fitted.cleaning()
    assert list(table) == ["column", "source", "type", "order", "values", "forms", "missing", "examples"]
    assert len(table) == 10
    born = table[table["column"] == "born"].set_index("source")
    assert born["order"].tolist() == ["ymd", "dmy"]
    assert "→ " in born.loc["right", "examples"]
    fitted.save(tmp_path / "fit")
    pd.testing.assert_frame_equal(cs.load_fit(tmp_path / "fit").cleaning(), table)
    page = html.unescape(cs.report(fitted, path=tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "How each column was read" in page
    assert "cleaning" not in fitted.describe()  # a table, no line of what was run
    with pytest.raises(UnsupportedRequest, match="only `link` cleans tables"):
        cs.fit("block-linkage", fitted.data, draws=10).cleaning()


@pytest.mark.filterwarnings("ignore:the model does not hold")
def test_the_order_of_dates_may_be_given(tables):
    twice = {"left": tables["left"], "right": tables["right"].assign(born="03/02/1951")}
    types = {"first": "string", "last_name": "string", "phone": "phone", "born": "date:mdy"}
    with pytest.warns(DiagnosticWarning, match="almost never agree in born"):
        fit = cs.link(twice, fields=types, draws=10)
    assert "born (date:mdy)" in fit.attributes["fields"]
    assert "1951-03-02" in fit.cleaning().set_index(["column", "source"]).loc[("born", "right"), "examples"]
    for wrong in ("date:ymd", "number:dmy", "dates"):
        with pytest.raises(UnknownName, match="give one of string, date, number, phone, category, date:dmy, date:mdy"):
            cs.link(twice, fields={"born": wrong})


def test_similar_values_are_those_of_the_forms():
    table = {
        "id": list("abcdef"), "name": ["Müller", "MULLER", "Mulber", "Noack", "Noack", "Vogt"],
        "born": ["25/12/1951", "1951-12-25", "1951-12-24", "13/01/1960", "1960-01-13", "01/02/1970"],
        "score": ["-5", "5", "5.0", "90", "91", "-90"],
    }  # fmt: skip
    kinds = {"name": "string", "born": "date", "score": "number"}
    records = prepare(table, fields=list(kinds), similar=kinds).records
    near = {tuple(records.values[list(pair)]) for pair in records.near}
    assert near == {
        ("Müller", "Mulber"), ("25/12/1951", "1951-12-24"), ("90", "91")
    }


def test_columns_are_compared_as_asked(tables):
    options = {"fields": ["first", "last_name", "born", "phone"], "draws": 10}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exact = cs.link(tables, clean={"First": "exact"}, **options)
        own = cs.link(tables, clean={"first": lambda text: text[0].upper()}, **options)
    ledger = exact.cleaning().set_index(["column", "source"])
    assert ledger.loc[("first", "left"), "examples"] == ""
    assert exact.attributes["clean"] == {"first": "exact"}
    assert len(own.data.vocabulary("first")) == len({name[0].upper() for name in tables["left"]["first"]} | {"S", "L"})
    with pytest.raises(InputError, match="clean= names the column 'frist'; did you mean 'first'?"):
        cs.link(tables, clean={"frist": "exact"}, fields=["first"])


# ---- the command ----


@pytest.fixture
def files(tables, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, table in tables.items():
        table.to_csv(f"{name}.csv", index=False)


def test_a_dry_run_says_what_cleaning_does_and_stops(files, tmp_path, capsys):
    assert main(["link", "left.csv", "right.csv", "--dry-run"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "read     left.csv, right.csv: 500 records of 5 fields"
    (born,) = [line for line in shown if line.startswith("cleaned  born of right: date dmy, ")]
    assert " → 19" in born
    assert sum(line.startswith("cleaned  ") for line in shown) == 10
    assert shown[-1].startswith("fields   first (category), last_name (string), born (date)")
    assert {path.name for path in tmp_path.iterdir()} == {"left.csv", "right.csv"}
    assert main(["link", "left.csv", "right.csv", "--dry-run", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["records"] == 500
    assert {row["column"]: row["type"] for row in found["cleaning"]}["phone"] == "phone"


def test_of_many_columns_the_first_lines_are_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = [f"c{place}" for place in range(70)]
    rows = [["id", *names], *([f"r{row}", *(str(row % 2) for _ in names)] for row in range(4))]
    (tmp_path / "wide.csv").write_text("".join(f"{','.join(row)}\n" for row in rows))
    assert main(["link", "wide.csv", "--dry-run"]) == 0
    shown = [line for line in capsys.readouterr().out.splitlines() if line.startswith("cleaned  ")]
    assert len(shown) == 61
    assert shown[-1].startswith("cleaned  … and 10 more columns")


def test_a_folder_is_needed_to_link(files, refused):
    assert "name the folder to write to, as in -o linked; or --dry-run" in refused("link", "left.csv", "right.csv")


def test_columns_by_other_names_on_the_command_line(files, refused, capsys):
    words = ["link", "left.csv", "right.csv", "--dry-run", "--column"]
    assert main([*words, "right:Last Name=surname", "--column", "left:last_name=surname", "--clean", "city=exact"]) == 0
    shown = capsys.readouterr().out
    assert "surname of left: string" in shown
    assert "surname of right: string" in shown
    assert "city of left: category, 8 values, 8 forms, 0 missing\n" in shown
    assert "did you mean 'right'?" in refused(*words, "rigth:Last Name=last_name")


def test_missing_values_on_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("id,name,town\na,Ann,?\nb,Ann,Ulm\nc,x,Ulm\nd,n/a,Bonn\n")
    for given, missing in ((["--missing-values", "empty"], (0, 0)), (["--missing-values", "X"], (1, 0)), ([], (1, 1))):
        assert main(["link", "people.csv", "--dry-run", "--fields", "name,town", *given]) == 0
        shown = capsys.readouterr().out
        assert f"forms, {missing[0]} missing" in shown.split("cleaned  name")[1].split("\n")[0]
        assert f"forms, {missing[1]} missing" in shown.split("cleaned  town")[1].split("\n")[0]
