"""What to do next on the page of linked records: commands that have all options together, and run."""

import dataclasses
import re
from types import SimpleNamespace

import numpy as np
import pandas
import pytest

import consilience as cs
from consilience.pages.agreement_by_chance import Chance, Weighed, weighed
from consilience.pages.dates_in_parts import in_parts, lines_that_split, split_dates
from consilience.pages.linkage_next import next_steps
from consilience.pages.record_pairs import fields_section
from consilience.pages.run import kinds_of
from consilience.pages.typing_errors import Typos, _one_error, typing_errors
from tests.consilience.test_linkage_page import linked

NONE = Typos(0, 0, ())

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")


@pytest.fixture(scope="module")
def fit():
    return linked()


@pytest.mark.parametrize("number", [0, 3])
@pytest.mark.parametrize("rare", [True, False])
def test_one_command_has_all_options_that_are_spoken_for(fit, monkeypatch, rare, number):
    """And the review, what follows it and the parts of dates go on from there."""
    monkeypatch.setattr("consilience.pages.linkage_next.rarely_within", lambda fit: rare)
    one = dataclasses.replace(fit, attributes=fit.attributes | {"fields": "name (category), born (date)"})
    typos = Typos(number, 6, ("name",), ("Nils", "Niln")) if number else NONE
    options = " --restriction across" * rare + " --similar name=string" * bool(number)
    overstated = [Chance("born", 1, 40, 0.02, 169, 1, 60, 60)]
    split, first, *others = next_steps(one, Weighed(None, overstated, None), typos)
    commands = [action.command for action in (first, *others)]
    if options:
        assert commands[0] == f"consilience link FILES{options} -o linked-again"
        assert ("13 of" in first.words, "only between files" in first.words) == (False, rare)
        assert ("compared by similarity" in first.words) is bool(number)
        assert commands.count("consilience review linked-again -o review.csv") == 1
    else:
        assert commands[0] == "consilience review RUN -o review.csv"
    assert f"consilience link FILES{options} --labels review.csv -o decided" in commands
    assert split.words.startswith("Put year, month and day of “born” into separate columns and link on these, so that ")
    assert sum("linked-across" in one for one in commands) == (not rare)
    assert sum("linked-by-similarity" in one for one in commands) == (not number)


@pytest.mark.parametrize(
    ("fields", "words", "flags"),
    [
        ("last (category), born (date)", "texts and dates", "last=string,born=date"),
        ("last (category), age (number)", "texts", "last=string"),
        ("born (date)", "dates", "born=date"),
        ("age (number)", "", ""),
    ],
)
def test_fields_that_may_be_nearly_equal_are_named(fit, fields, words, flags):
    one = dataclasses.replace(fit, attributes=fit.attributes | {"fields": fields})
    found = [action for action in next_steps(one, weighed(one), NONE) if "--similar" in action.command]
    assert [action.words.split(" by similarity")[0] for action in found] == [f"Compare {words}"] * bool(flags)
    assert all(f"--similar {flags} " in action.command for action in found)


def with_typos(**attributes):
    """Return a fit by hand of five pairs in doubt and a sure one: of three a letter of a name is wrong."""
    rows = [("Nils", "Niln", "1985", "1985"), ("Vogel", "Vogle", "1985", "1985"), ("Meyer", "Mayer", "1971", "1971"),
            ("Meyer", "Mayer", "1971", "1981"), ("Hugo", "Ida", "1990", "1990"), ("Bo", "Bi", "1990", "1990"),
            ("Anna", "Anne", "1965", "1965")]  # fmt: skip
    columns = [[row[2 * field + side] for row in rows for side in (0, 1)] for field in (0, 1)]
    values, codes = zip(*(np.unique(own, return_inverse=True) for own in columns), strict=True)
    first = 2 * np.arange(len(rows))
    chance = np.array([0.73, 0.9, 0.95, 0.4, 0.3, 0.2, 0.995])
    pairs = SimpleNamespace(first=first, second=first + 1, probability=chance)
    data = SimpleNamespace(
        value=np.stack(codes), fields=["name", "born"], values=np.concatenate(values),
        first_value=np.cumsum([0, *map(len, values)]),
    )  # fmt: skip
    known = {"fields": "name (category), born (date)"} | attributes
    return SimpleNamespace(data=data, truth=SimpleNamespace(pairs=lambda: pairs), attributes=known)


def test_pairs_that_only_typing_errors_part_are_counted_with_what_to_do(fit):
    found = typing_errors(with_typos())
    assert found == Typos(3, 6, ("name",), ("Nils", "Niln"))
    assert found.words == (
        "3 of 6 pairs in doubt differ only by typing errors, such as “Nils” and “Niln”"
    )
    for without in ({"similar": "name=string"}, {"fields": ""}, {"fields": "name (date), born (date)"}):
        assert typing_errors(with_typos(**without)) == NONE
    assert NONE.words == ""
    one = dataclasses.replace(fit, attributes=fit.attributes | {"fields": "name (category), born (date)"})
    for typos, flags, early in ((found, "name=string", True), (NONE, "name=string,born=date", False)):
        actions = next_steps(one, weighed(one), typos)
        place = next(place for place, own in enumerate(actions) if "--similar" in own.command)
        assert f"--similar {flags} -o" in actions[place].command
        said = f"{found.words}. The result then has no intervals (leave out --similar to keep them):"
        assert actions[place].words.endswith(said if early else ", so that typing errors count less:")
        assert (place == 0) is early


def test_commands_keep_the_fields_and_the_similarity_that_were_given(fit):
    known = {"fields_given": "name,born:date", "similar": "name (string), title (text)"}
    one = dataclasses.replace(fit, attributes=fit.attributes | {"fields": "name (category), born (date)"} | known)
    commands = [action.command for action in next_steps(one, weighed(one), NONE) if " link " in action.command]
    assert commands
    assert all(" FILES --fields name,born:date " in command for command in commands)
    assert all("--similar name=string " in command for command in commands)
    rows = {"id": range(6), "a": list("xyzxyz"), "born": ["1951-02-03", "1960-07-21", "1947-11-30"] * 2}
    for given, said in ((["a", "born"], "a,born"), ({"a": "category", "born": "date"}, "a:category,born:date")):
        assert cs.link(rows, fields=given, draws=2).attributes["fields_given"] == said
    assert "fields_given" not in cs.link(rows, draws=2).attributes


@pytest.mark.parametrize(
    ("one", "other", "near"),
    [("Nils", "Niln", True), ("Nils", "nisl", True), ("Nils", "Nil", True), ("Nils", "Nail", False), ("M", "F", False),
     ("Bo", "Bob", False)],
)  # fmt: skip
def test_one_typing_error_is_one_letter_of_a_text_that_has_more(one, other, near):
    assert _one_error(one, other) is near


def test_lines_that_part_dates_run_and_what_they_write_is_linked(tmp_path, monkeypatch):
    """One file has dates with the day first, and others; parts are as often equal by chance as is expected."""
    monkeypatch.chdir(tmp_path)
    files = {"a": "a.csv", "b c": "b c.csv"}
    random = np.random.default_rng(4)
    year, month, day = 1940 + random.integers(0, 9, 40), 1 + random.integers(0, 12, 40), 13 + random.integers(0, 9, 40)
    names = pandas.DataFrame({one: random.integers(0, 7, 40).astype(str) for one in ("first", "last")})
    born = {
        "a": [f"{y}-{m:02d}-{d}" for y, m, d in zip(year, month, day, strict=True)],
        "b c": [
            f"{d}/{m:02d}/{y}" if row % 2 else f"{y}/{m}/{d}"
            for row, (y, m, d) in enumerate(zip(year, month, day, strict=True))
        ],
    }
    frames = [names.assign(id=[f"{name[0]}{row}" for row in range(40)], born=born[name]) for name in files]
    for file, frame in zip(files.values(), frames, strict=True):
        frame.to_csv(file, index=False)
    one = cs.link(files, draws=50)
    own, kinds = weighed(one), kinds_of(one.attributes["fields"])
    assert [chance.field for chance in own.overstated] == ["born"]
    (step,) = split_dates(one, own, kinds)
    assert step.words.startswith("Split “born” into year, month and day with the code under Match weights, so that ")
    parts, fields = in_parts(one, own, kinds)
    assert (parts, fields) == ("a-parts.csv 'b c-parts.csv'", " --fields first,last,born_year,born_month,born_day")
    first, second, *others = next_steps(one, own, NONE)
    assert first == step
    assert second.command.startswith(f"consilience link {parts}{fields}")
    assert second.command.endswith(" -o linked-again")
    assert "link the split files" in second.words.lower()
    (answered,) = (action.command for action in others if "--labels" in action.command)
    assert answered.startswith(f"consilience link {parts}{fields}")
    near = dataclasses.replace(one, attributes=one.attributes | {"similar": "first (string), born (date)"})
    assert next_steps(near, own, NONE)[1].command.endswith(" --similar first=string -o linked-again")
    said, code = lines_that_split(one, own, kinds)
    assert said == "These lines write a-parts.csv and b c-parts.csv, with a column for each part:"
    assert any(getattr(block, "text", "") == code.text for block in fields_section(one, own).blocks)
    for without in ({"columns": {"a": {"x": "born"}}}, {"files": ["a.csv", "b.parquet"]}, {"files": []}):
        other = dataclasses.replace(one, attributes=one.attributes | without)
        assert lines_that_split(other, own, kinds) == []
        assert in_parts(other, own, kinds) is None
        assert "into separate columns" in split_dates(other, own, kinds)[0].words
    exec(code.text, {})
    for name, frame in zip(files, frames, strict=True):
        parts = pandas.read_csv(f"{name}-parts.csv")
        assert parts["born_year"].tolist() == year.tolist()
        assert parts["born_month"].tolist() == month.tolist()
        assert parts["born_day"].tolist() == day.tolist()
        assert parts["first"].astype(str).tolist() == frame["first"].tolist()
        assert "born" not in parts
    fields = re.search(r"--fields (\S+)", fields)[1].split(",")
    parted = cs.link({name: f"{name}-parts.csv" for name in files}, fields=fields, draws=50)
    assert not {chance.field for chance in weighed(parted).overstated} & {"born_year", "born_month", "born_day"}
