"""Forms of texts, dates, phones and numbers; which texts are missing; types of columns."""

import datetime
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.data.cleaning import (
    MISSING,
    Recipe,
    ambiguous_dates,
    date_of,
    date_order,
    forms,
    missing_texts,
    number_form,
    number_of,
    recipes,
    text_forms,
    thousands_mark,
    tokens_of,
    type_of,
)
from consilience.errors import UnsupportedRequest

DAY = datetime.date(1951, 2, 3)


@pytest.mark.parametrize(
    ("texts", "form"),
    [
        (["Łukasz", "ŁUKASZ ", "lukasz"], "lukasz"),
        (["Weiß", "WEISS"], "weiss"),
        (["Ångström", "A\u030angstro\u0308m", "ANGSTROM"], "angstrom"),
        (["O'Neil", "O’Neil", "O´Neil", "ONEIL"], "oneil"),
        (["Jean-Luc", "JEAN  LUC", " jean–luc", "Jean_Luc"], "jean luc"),
        (["ﬁn", "FIN", "ｆｉｎ"], "fin"),
        (["Þór", "THOR"], "thor"),
        (["Æsir Œuvre", "aesir oeuvre"], "aesir oeuvre"),
        (["Iğdır", "IGDIR"], "igdir"),
        (["a\nb", "a\u00a0b", "a|b"], "a b"),
        (["St. Clair, J.", "st clair j"], "st clair j"),
        (["A+"], "a+"),  # a sign is no punctuation: A+ is not A-
    ],
)
def test_texts_that_are_one(texts, form):
    assert text_forms(texts) == [form] * len(texts)


def test_what_is_nothing_but_punctuation_stays():
    assert text_forms(["?!", "(-)", "", "'"]) == ["?!", "(-)", "", "'"]
    assert text_forms([]) == []


@pytest.mark.parametrize("pair", ["か が", "は ぱ", "कि क", "한 하"])
def test_marks_that_are_no_accents_tell_texts_apart(pair):
    assert len(set(text_forms(pair.split()))) == 2


@given(st.lists(st.text()))
def test_forms_of_many_texts_are_those_of_each_and_forms_of_themselves(texts):
    found = text_forms(texts)
    assert found == [form for text in texts for form in text_forms([text])]
    assert text_forms(found) == found


@given(st.text(alphabet="abcxyzåéîøüñßÅÉÎØÜÑ '-.", min_size=1))
def test_case_and_normal_forms_make_no_difference(text):
    written = [text, text.upper(), unicodedata.normalize("NFD", text), f" {text} "]
    assert len(set(text_forms(written))) == 1


# ---- missing ----


def test_tokens_of_missing_values():
    texts = ["N/A", " unknown ", "None", "-", "Not Available", "Ann", "Nancy", "0"]
    assert missing_texts(texts, tokens_of(None)) == [True] * 5 + [False] * 3
    assert missing_texts(texts, tokens_of("empty")) == [False] * 8
    assert missing_texts(texts, tokens_of(["ANN", "0"])) == [False] * 5 + [True, False, True]
    assert all(missing_texts(list(MISSING), tokens_of(None)))


def test_two_letters_may_be_namibia():
    tokens = tokens_of(None)
    assert missing_texts(["DE", "FR", "NA", "n/a"], tokens) == [False, False, False, True]
    assert missing_texts(["Germany", "France", "NA"], tokens) == [False, False, True]
    mostly = [f"{one}{two}" for one in "ABC" for two in "DEF"]
    assert missing_texts([*mostly, "Chad", "NA"], tokens)[-1]  # nine of ten are not more than nine in ten
    assert not missing_texts([*mostly, "PL", "Chad", "NA"], tokens)[-1]
    assert missing_texts(["NA"], tokens) == [True]


# ---- dates ----


@pytest.mark.parametrize(
    "text",
    [
        "1951-02-03", "1951/2/3", "1951.02.03", "1951 02 03", "19510203", "03.02.1951", "3.2.1951",
        "1951-02-03 00:00:00", "1951-02-03T07:15", "1951-02-03T07:15:00.5+01:00", "1951-02-03 07:15:00 UTC",
    ],
)  # fmt: skip
def test_ways_to_write_a_date(text):
    assert date_of(text) == DAY


def test_dates_that_may_be_others():
    assert date_of("25/12/1951") == date_of("12/25/1951") == date_of("1951-12-25") == date_of("25-12-1951")
    for text in ("03/02/1951", "3-2-1951", "195123", "31.02.1951", "1951-02/03", "ada", "1951", "13/13/1951"):
        assert date_of(text) is None
    assert date_of("03/03/1951") == date_of("1951-03-03")


def test_the_order_of_a_date():
    assert date_of("03/02/1951", "dmy") == date_of("02/03/1951 12:00:00 AM", "mdy") == DAY
    assert date_of("1951-02-03", "mdy") == DAY  # the year first always
    assert date_of("12/25/1951", "dmy") == datetime.date(1951, 12, 25)  # a day that can be nothing else


@pytest.mark.parametrize(
    ("texts", "order", "doubtful"),
    [
        (["1951-02-03", "19520304"], "ymd", []),
        (["03/02/1951", "25/12/1960"], "dmy", []),
        (["02/03/1951", "12/25/1960"], "mdy", []),
        (["03/02/1951", "25/12/1960", "12/25/1960"], "mixed", ["03/02/1951"]),
        (["03/02/1951", "04/05/1960", "1960-01-01"], "unclear", ["03/02/1951", "04/05/1960"]),
        (["03/03/1951"], "dmy", []),
        (["03.02.1951", "04.05.1960"], "dmy", []),
        (["02.13.1951", "04.05.1960"], "mdy", []),
        (["31/02/1951", "04/05/1960"], "unclear", ["04/05/1960"]),  # no date, and no witness
    ],
)
def test_the_order_of_a_column(texts, order, doubtful):
    assert date_order(texts) == order
    assert ambiguous_dates(texts, order) == doubtful


@given(st.lists(st.dates(datetime.date(1800, 1, 1), datetime.date(2100, 1, 1)), min_size=1))
def test_a_column_in_one_order_is_read_as_it_was_meant_or_not_at_all(dates):
    for order, written in (("dmy", "{0.day}/{0.month}/{0.year:04}"), ("mdy", "{0.month}/{0.day}/{0.year:04}")):
        texts = [written.format(date) for date in dates]
        found = date_order(texts)
        read = [date_of(text, found) for text in texts]
        assert all(own in (None, date) for own, date in zip(read, dates, strict=True))
        assert [date_of(text, order) for text in texts] == dates
        if any(date.day > 12 for date in dates):
            assert read == dates


# ---- phones and numbers ----


def test_phone_numbers_by_their_last_nine_digits():
    texts = ["+44 20 1234 5678", "02012345678", "(020) 1234-5678", "020.1234.5678", "110", "call me"]
    assert forms(texts, Recipe("phone")) == (["012345678"] * 4 + ["110", "call me"], 1)


def test_numbers_are_equal_as_numbers():
    assert number_of("5") == number_of("5.0") == number_of("05") == number_of("+5e0")
    assert number_of("9007199254740993") != number_of("9007199254740992")
    for text in ("1_000", "nan", "inf", "five", "1e99999999", "1,5"):
        assert number_of(text) is None
        assert number_form(text) is None
    written = ["5", "5.0", "05", "+5e0", "5.00"]
    assert {number_form(text) for text in written} == {"5"}
    assert number_form("-0.0") == number_form("000") == "0"
    assert number_form("-1.50") == "-1.5"
    assert number_form("9007199254740993") == "9007199254740993"


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6), st.integers(0, 3))
def test_a_number_has_one_form(number, zeros):
    written = f"{number:f}"
    form = number_form(written)
    assert number_form(written + "0" * zeros) == form == number_form(form)
    assert number_of(form) == number


@pytest.mark.parametrize(
    ("texts", "mark", "found"),
    [
        (["1,250", "900", "12,500,000.5"], ",", ["1250", "900", "12500000.5"]),
        (["1,250", "1250"], "", ["1 250", "1250"]),
        (["1,25", "9"], "", ["1 25", "9"]),
        (["1.250"], "", ["1.25"]),
        (["1.250", "2.000.000"], ".", ["1250", "2000000"]),
        (["1.250,5", "3"], ".", ["1250.5", "3"]),
        (["1 250", "1\u00a0250,5"], " ", ["1250", "1250.5"]),
        (["1'250", "1’250"], "'", ["1250", "1250"]),
        ([], "", []),
    ],
)
def test_thousands_where_the_whole_column_agrees(texts, mark, found):
    assert thousands_mark(texts) == mark
    assert forms(texts, Recipe("number", mark))[0] == found


# ---- types ----


@pytest.mark.parametrize(
    ("texts", "type_"),
    [
        (["1951-02-03", "03/02/1951"], "date"),
        (["1951-02-03"] * 4 + ["not told"], "date"),
        (["1951-02-03"] * 3 + ["not told"], "category"),
        (list(map(str, range(60))), "number"),
        ([f"{number},000" for number in range(1, 60)], "number"),
        (["1", "2"], "category"),
        ([f"n{number}" for number in range(60)], "string"),
        (["+44 20 1234 5678", "(020) 12345678", "020 1234 5679"], "phone"),
        (["555-123-4567", "555-123-4568"], "category"),  # no country code, no trunk prefix
        ([f"0.{number}1234567" for number in range(60)], "number"),
        (list(map(str, range(5000000, 5000060))), "number"),
        ([], "category"),
    ],
)
def test_types_are_told_from_texts(texts, type_):
    assert type_of([texts]) == type_
    assert type_of([texts, []]) == type_


def test_few_numbers_are_a_category_and_still_numbers():
    assert recipes([["-1", "1", "01"]]) == ("category", [Recipe("number", "")])
    assert forms(["-1", "1", "01"], Recipe("number")) == (["-1", "1", "1"], 0)
    assert recipes([["a", "1"]]) == ("category", [Recipe()])


def test_each_source_has_an_order_and_a_mark_of_its_own():
    assert recipes([["03/02/1951", "25/12/1960"], ["02/03/1951", "12/25/1960"]]) == (
        "date", [Recipe("date", "dmy"), Recipe("date", "mdy")],
    )  # fmt: skip
    assert recipes([["03/02/1951"], ["1951-02-03"]], "date:mdy")[1] == [Recipe("date", "mdy")] * 2
    numbers = [[str(1000 + number) for number in range(60)], [f"1,{number:03}" for number in range(60)]]
    assert recipes(numbers) == ("number", [Recipe("number", ""), Recipe("number", ",")])


def test_functions_of_ones_own():
    assert forms(["Bob", "Robert", "x"], Recipe({"Bob": "robert", "Robert": "robert"}.get)) == (
        ["robert", "robert", None], 0,
    )  # fmt: skip
    assert forms(["Bob", "BOB"], Recipe("exact")) == (["Bob", "BOB"], 0)
    with pytest.raises(UnsupportedRequest, match="a function of clean= made 3 of 'Bob'; return a text, or None"):
        forms(["Bob"], Recipe(len))
