"""Random bytes and random small tables into every reader: a record or an `InputError`, never another exception."""

import gzip
import json
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from consilience.data import (
    Annotations,
    Predictions,
    Rankings,
    read_annotations,
    read_class_map,
    read_constraints,
    read_mentions,
    read_partition,
    read_predictions,
    read_rankings,
    read_ratings,
    read_records,
)
from consilience.errors import InputError

READERS = {
    "annotations": (read_annotations, ("item", "annotator", "label", "gold", "weight")),
    "wide": (lambda source: read_annotations(source, layout="wide"), ("item", "w1", "w2")),
    "counts": (lambda source: read_annotations(source, layout="counts"), ("item", "x", "y")),
    "ratings": (read_ratings, ("item", "annotator", "rating")),
    "rankings": (read_rankings, ("item", "annotator", "class", "rank")),
    "predictions": (read_predictions, ("item", "class", "score")),
    "class_map": (read_class_map, ("class", "group")),
    "mentions": (read_mentions, ("mention_id", "annotator_id", "annotation", "gold", "start", "end")),
    "partition": (read_partition, ("record", "entity")),
    "records": (read_records, ("id", "name", "born")),
    "constraints": (read_constraints, ("expert", "item_a", "item_b", "answer")),
    "features": (
        lambda source: read_constraints({"expert": [1], "i": ["a"], "j": ["b"], "link": [1]}, features=source),
        ("item", "f", "g"),
    ),
}
WORDS = "a b c 1 2 -1 0.5 nan inf é \0 DN DO(a) PR(b) together apart".split(" ") + ["", " "]
SCALARS = st.sampled_from(WORDS) | st.text(max_size=4)
CELLS = SCALARS | st.none() | st.booleans() | st.integers() | st.floats() | st.lists(st.integers(), max_size=1)


def settled(examples):
    suppressed = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    return settings(max_examples=examples, deadline=None, suppress_health_check=suppressed)


def attempt(read, source):
    """Read; only an `InputError` with remedies may come out, or a sound record."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            record = read(source)
        except InputError as raised:
            error = raised
        else:
            return check_record(record)
    assert error.problems
    assert all(problem.message and problem.remedy for problem in error.problems)
    assert str(error).encode()
    return None


def check_record(record):
    record.fingerprint()
    for name in record.names("array"):
        values = getattr(record, name)
        assert values is None or (values.dtype.kind in "if" and np.isfinite(values).all())
    for name in record.names("ids"):
        values = getattr(record, name)
        if isinstance(values, np.ndarray):
            assert len(set(values)) == len(values) or name == "values"
            assert all(isinstance(value, str) and value for value in values)


def tables(columns):
    def rows(names):
        row = st.tuples(*[SCALARS for _ in names]).map(list) | st.lists(SCALARS, max_size=5)
        return st.tuples(st.just(list(names)), st.lists(row, max_size=5))

    return st.one_of(st.just(columns), st.permutations(columns), st.lists(SCALARS, max_size=4)).flatmap(rows)


@st.composite
def text_files(draw, columns):
    """Return a table as text, well-formed or torn somewhere."""
    header, rows = draw(tables(columns))
    ending = draw(st.sampled_from([".csv", ".tsv", ".json", ".jsonl", ".csv.gz"]))
    if ending.startswith(".json"):
        records = [dict(zip(header, row, strict=False)) for row in rows]
        text = json.dumps(records) if ending == ".json" else "\n".join(map(json.dumps, records))
    else:
        mark = "\t" if ending == ".tsv" else draw(st.sampled_from([",", ";"]))
        text = draw(st.sampled_from(["\n", "\r\n"])).join(mark.join(row) for row in [header, *rows])
    data = text.encode(draw(st.sampled_from(["utf-8", "utf-8", "utf-8-sig", "utf-16"])), "surrogatepass")
    if ending == ".csv.gz":
        data = gzip.compress(data)
    cut = draw(st.none() | st.integers(0, len(data)))
    return ending, data if cut is None else data[:cut] + draw(st.binary(max_size=3))


def run_text(name, data, folder):
    read, columns = READERS[name]
    ending, content = data.draw(text_files(columns))
    path = folder / f"fuzz{ending}"
    path.write_bytes(content)
    attempt(read, path)


def run_frame(name, data):
    read, columns = READERS[name]
    size = data.draw(st.integers(0, 4))
    frame = {column: data.draw(st.lists(CELLS, min_size=size, max_size=size)) for column in columns}
    attempt(read, pd.DataFrame(frame) if data.draw(st.booleans()) else frame)


@pytest.mark.parametrize("name", READERS)
@given(data=st.data())
@settled(120)
def test_random_tables_in_files(name, tmp_path, data):
    run_text(name, data, tmp_path)


@pytest.mark.parametrize("name", READERS)
@given(data=st.data())
@settled(60)
def test_random_frames(name, data):
    run_frame(name, data)


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".json", ".jsonl", ".csv.gz", ".json.gz", ".parquet", ".txt"])
@given(content=st.binary(max_size=60))
@settled(40)
def test_random_bytes(ending, tmp_path, content):
    path = tmp_path / f"fuzz{ending}"
    path.write_bytes(content)
    for read, _ in READERS.values():
        attempt(read, path)


NESTED = st.recursive(
    st.sampled_from(["a", "b", "", 0, 1, -1, 2.5, None, True]),
    lambda child: (
        st.lists(child, max_size=3) | st.dictionaries(st.sampled_from(["x", "y", " x", ""]), child, max_size=3)
    ),
    max_leaves=20,
)


@given(NESTED, st.none() | st.just(["a", "b"]))
@settled(300)
def test_random_nested_lists(nested, classes):
    attempt(lambda source: Rankings.from_nested(source, classes=classes), nested)


ARRAYS = st.lists(st.integers(-2, 3) | st.sampled_from([0.5, None, "a", [1], np.nan]), max_size=4)


@given(ARRAYS, ARRAYS, ARRAYS, ARRAYS)
@settled(150)
def test_random_codes(item, annotator, label, gold):
    attempt(lambda _: Annotations.from_codes(item, annotator, label, gold=gold), None)
    attempt(lambda _: Rankings.from_codes(item, annotator, label, gold, label), None)


@given(st.lists(ARRAYS, max_size=3))
@settled(150)
def test_random_matrices(rows):
    attempt(Annotations.from_counts, rows)
    attempt(Predictions.from_scores, rows)
    attempt(Predictions.from_lists, rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
@given(data=st.data())
@settled(1000)
def test_many_random_tables(name, tmp_path, data):
    run_text(name, data, tmp_path)
    run_frame(name, data)
