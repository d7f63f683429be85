"""Every engine finds what NumPy finds: the same pairs, parts and probabilities."""

import importlib.util
import pickle
import shutil

import numpy as np
import pandas
import pytest

import consilience as cs
from consilience.cli import main
from consilience.errors import UnknownName, UnsupportedRequest
from consilience.models.block_linkage import engines as module
from consilience.models.block_linkage import keys, starting, tables
from consilience.models.block_linkage.em import candidates
from consilience.models.block_linkage.engines import stages
from consilience.models.block_linkage.join import join, join_rule
from consilience.models.block_linkage.likelihoods import LIKELIHOODS
from tests.models.records import records_of

SIX = {
    "num_values": (300, 800, 90, 12, 28, 100), "exponent": (1.0, 0.9, 0.1, 0.0, 0.0, 0.6),
    "size_share": (0.75, 0.19, 0.06), "distortion": 0.05, "seed": 7,
}  # fmt: skip

pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # of Spark's own sockets
]


@pytest.fixture(scope="module")
def spark_session():
    """A session of two threads on this machine."""
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("pyspark is not installed")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, and there is no java here")
    from pyspark.sql import SparkSession

    quiet = {"spark.ui.enabled": "false", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    builder = SparkSession.builder.master("local[2]")
    for name, value in quiet.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(params=["duckdb", *(pytest.param(f"spark {number}", marks=pytest.mark.slow) for number in (1, 7))])
def engine(request):
    """One engine after the other, Spark with one and seven partitions."""
    name, *partitions = request.param.split()
    if name == "duckdb":
        return module.duckdb(memory="1GB", threads=2)
    return module.spark(request.getfixturevalue("spark_session"), int(partitions[0]))


def assert_same(found, expected):
    for name in ("first", "second"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    np.testing.assert_allclose(found.log_odds, expected.log_odds, rtol=0, atol=1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("most", [1000, 5])
def test_engines_find_the_candidates_of_numpy(engine, missing, most, monkeypatch):
    """Also where values are missing, with a join for each set of lacking fields, and where keys have to be extended."""
    for one in (keys, stages):
        monkeypatch.setattr(one, "MOST_OF_KEY", most)
    records = cs.simulate_records(1200, **SIX, missing=missing)
    parameters = starting.starting_parameters(records, 6)
    expected = join(records, parameters, LIKELIHOODS["hit-miss"], threshold=6.0)
    found = candidates(records, parameters, LIKELIHOODS["hit-miss"], 6.0, "none", engine)
    assert len(expected.first) > 100
    assert (expected.unseen > 0) == (most == 5)
    assert found.unseen == pytest.approx(expected.unseen, rel=1e-3)  # in memory, hashes of fewer bits may coincide
    assert_same(found, expected)


@pytest.mark.parametrize("restriction", ["none", "across"])
def test_engines_fit_as_numpy_does(engine, restriction, fit_em):
    records = cs.simulate_records(20_000, **SIX)
    source = (np.arange(records.num_records) % 2).astype(np.int32)
    records = records_of(records.value, np.diff(records.first_value), source=source)
    expected = fit_em(records, restriction=restriction)
    found = fit_em(records, restriction=restriction, engine=engine)
    assert len(expected.probability) > 3000
    for name, values in expected._asdict().items():
        rtol = 3e-7 if np.asarray(values).dtype == np.float32 else 1e-9  # sums of other order round to another last bit
        np.testing.assert_allclose(getattr(found, name), values, rtol=rtol, atol=1e-9, err_msg=name)
    np.testing.assert_array_equal(found.member, expected.member)


@pytest.mark.parametrize("num_records", [1, 2, 30])
def test_engines_take_hardly_any_records(engine, num_records, fit_em):
    records = records_of(np.arange(num_records * 2).reshape(2, -1) % 3, [3, 3])
    expected, found = fit_em(records), fit_em(records, engine=engine)
    np.testing.assert_allclose(found.probability, expected.probability, atol=1e-9)


def test_keys_and_pairs_of_a_record_do_not_grow():
    """The join is linear: of 30, 100 and 300 thousand records, keys and pairs that share one vary by less than 15 %."""
    entered, shared = [], []
    for size in (30_000, 100_000, 300_000):
        records = cs.simulate_records(size, **SIX)
        rule = join_rule(records, starting.starting_parameters(records, 6), LIKELIHOODS["hit-miss"], threshold=6.0)
        _, key = keys.entered_keys(records.value, keys.Keys.of(rule, records.first_value))
        _, number = np.unique(key, return_counts=True)
        entered.append(len(key) / size)
        shared.append(number @ (number - 1) / 2 / size)
        assert number.max() < 20
    assert max(entered) / min(entered) < 1.15
    assert max(shared) / min(shared) < 1.15


def test_auto_is_memory_unless_values_are_very_many():
    assert module.engine_of("auto", 10**6) is None
    assert module.engine_of(None, 10**6) is None
    assert module.engine_of("local", 10**12) is None
    assert module.engine_of("auto", 10**9).name == "duckdb"
    assert module.engine_of("duckdb", 1).name == "duckdb"
    own = module.duckdb(memory="100MB")
    assert module.engine_of(own, 1) is own


def test_what_is_no_engine_is_refused(fit_em):
    with pytest.raises(UnknownName, match="no engine is called 'dask'; give auto, local, duckdb or spark"):
        module.engine_of("dask", 1)
    with pytest.raises(UnsupportedRequest, match="is a int; give a name"):
        module.engine_of(3, 1)
    records = cs.simulate_records(50, seed=0)
    with pytest.raises(UnsupportedRequest, match="processes= is gone; give engine='duckdb'"):
        cs.link(records, processes=2)
    with pytest.raises(UnsupportedRequest, match="'block-linkage' by nuts runs in memory; leave out engine="):
        cs.link(records, method="nuts", engine="duckdb")


def test_an_engine_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UnsupportedRequest, match=r"duckdb and pyarrow .* pip install 'consilience\[duckdb\]'"):
        module.duckdb()
    assert module.engine_of("auto", 10**9) is None


def test_a_table_of_duckdb_is_linked_by_duckdb():
    import duckdb

    rows = [(f"r{place}", f"name {place // 2}", place // 2 % 7, place // 2 % 11) for place in range(60)]
    table = duckdb.sql(f"SELECT * FROM (VALUES {', '.join(map(str, rows))}) t(id, name, town, born)")
    found = cs.link(table)
    kept = found.entities()
    assert kept.rows.filter("entity = 'r8'").fetchnumpy()["record"].tolist() == ["r8", "r9"]
    assert kept.to_arrow()["entity"].to_pylist() == [f"r{place // 2 * 2}" for place in range(60)]


@pytest.mark.parametrize("sources", [1, 2])
def test_an_engine_keeps_the_table_of_entities(engine, sources, monkeypatch, tmp_path):
    monkeypatch.setattr(tables, "_PIECE", 70)
    records = cs.simulate_records(300, seed=4)
    rows = {"id": records.records, **{name: records.column(name) for name in records.fields}}
    given = [{name: values[own :: sources] for name, values in rows.items()} for own in range(sources)]
    given[-1]["id"][0] = "r0"  # in two tables the same
    found = cs.link(given, engine=engine)
    expected, kept = cs.link(given).entities(), found.entities()
    pandas.testing.assert_frame_equal(kept.to_arrow().to_pandas(), expected, check_dtype=False)
    assert [*kept.rows.columns] == ["row", *expected]
    assert "300 rows in" in repr(kept)
    # What is loaded knows no engine, nor does a copy in another process.
    found.save(tmp_path / "fit")
    for one in (cs.load_fit(tmp_path / "fit"), pickle.loads(pickle.dumps(found))):
        pandas.testing.assert_frame_equal(one.entities(), expected)


def test_the_command_writes_parquet_with_an_engine(tmp_path):
    import pyarrow.parquet as parquet

    cs.write_records(cs.simulate_records(300, seed=3), tmp_path / "people.csv")
    call = ["link", str(tmp_path / "people.csv"), "--entity", "entity", "--quiet"]
    assert main([*call, "--engine", "duckdb", "--memory", "500MB", "-o", str(tmp_path / "linked")]) == 0
    assert main([*call, "-o", str(tmp_path / "local")]) == 0
    found = parquet.read_table(tmp_path / "linked" / "entities.parquet").to_pandas()
    expected = pandas.read_csv(tmp_path / "local" / "entities.csv", dtype=str)
    assert found["entity"].tolist() == expected["entity"].tolist()
    assert len(parquet.read_table(tmp_path / "linked" / "pairs.parquet"))
    assert main([*call, "--memory", "1GB", "-o", str(tmp_path / "more")]) != 0


def test_memory_is_a_number_and_a_unit():
    with pytest.raises(UnsupportedRequest, match="memory= is '8'; give a number and a unit, such as 8GB"):
        module.duckdb(memory="8")
