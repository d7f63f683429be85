"""The catalogue: shipped examples without a network, downloads that are checked, and the published counts."""

import gzip
import hashlib
import http.server
import threading

import numpy as np
import pytest

from consilience.data import Predictions, catalogue, describe, get, load, names
from consilience.errors import DataUnavailable, InputWarning, UnknownName

SHIPPED = [name for name in names() if not describe(name).files]


@pytest.fixture
def alone(monkeypatch, tmp_path):
    """Neither stored data nor a network."""
    monkeypatch.delenv("CONSILIENCE_DATA", raising=False)
    monkeypatch.setenv("CONSILIENCE_CACHE", str(tmp_path / "cache"))

    def refuse(address, timeout):
        raise OSError("no network here")

    monkeypatch.setattr("urllib.request.urlopen", refuse)
    return tmp_path / "cache"


def test_shipped_names():
    assert SHIPPED == ["dawid-skene-1979", "stutz-2023-cases", "stutz-2023-predictions"]


def test_dawid_skene_counts_every_occasion(alone):
    annotations = load("dawid-skene-1979")
    assert (annotations.num_annotations, annotations.num_items, annotations.num_annotators) == (315, 45, 5)
    assert annotations.labels.tolist() == ["1", "2", "3", "4"]
    assert np.bincount(annotations.annotator).tolist() == [135, 45, 45, 45, 45]


def test_stutz_cases_and_predictions(alone):
    cases = load("stutz-2023-cases")
    assert cases.items.tolist() == ["1026", "1057", "357"]
    assert np.bincount(cases.report_item).tolist() == [6, 3, 3]
    assert cases.classes.tolist() == sorted(cases.classes)
    predictions = load("stutz-2023-predictions")
    assert {system: one.items.tolist() for system, one in predictions.items()} == {
        "A": ["1026", "1057", "357"],
        "B": ["1026", "357"],
        "D": ["1057"],
    }
    aligned, kept = predictions["D"].align(cases.items, cases.classes, missing="drop")
    assert isinstance(aligned, Predictions)
    assert kept.tolist() == [False, True, False]
    assert cases.classes[aligned.ranked[1]].tolist() == ["Arterial ulcer", "Cellulitis", "Pyoderma Gangrenosum"]


@pytest.mark.parametrize("name", names())
def test_every_entry_is_complete(name):
    data_set = describe(name)
    assert data_set.title
    assert data_set.licence
    assert data_set.citation
    for file in data_set.files:
        assert len(file.sha256) == 64
        assert len(file.commit) == 40
        assert file.address.startswith("https://raw.githubusercontent.com/")


def test_unknown_names_list_the_known_ones():
    with pytest.raises(UnknownName, match="dermatology-ddx"):
        load("dermatology")


def test_shipped_examples_have_no_folder():
    with pytest.raises(DataUnavailable, match=r"load\('dawid-skene-1979'\)"):
        get("dawid-skene-1979")


def test_without_a_network_the_error_says_what_to_do(alone):
    by_hand = "no network here.*by hand, save https://raw.*rte.csv as .*snow2008/rte.csv"
    with pytest.raises(DataUnavailable, match=by_hand):
        load("snow2008-rte")
    assert [path for path in alone.rglob("*") if path.is_file()] == []


def test_a_cache_that_cannot_be_written(alone, monkeypatch):
    alone.write_text("a file where the folder should be")
    with pytest.raises(DataUnavailable, match="set CONSILIENCE_CACHE to another folder"):
        load("snow2008-rte")


CONTENT = b"1,,0\n,1,\n0,0,\n"


@pytest.fixture
def served(monkeypatch, tmp_path):
    """A data set of two files, published by a server on this machine."""
    folder = tmp_path / "published"
    folder.mkdir()
    (folder / "small.csv").write_bytes(CONTENT)
    (folder / "small.key").write_bytes(b"1\n1\n0\n")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=folder)

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    checksums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}
    files = tuple(
        catalogue.PublicFile(f"snow2008/{name}", "o/r", "0" * 40, name, sha256) for name, sha256 in checksums.items()
    )
    address = property(lambda file: f"http://127.0.0.1:{server.server_port}/{file.source}")
    monkeypatch.setattr(catalogue.PublicFile, "address", address)
    small = catalogue.DataSet("small", "t", "Annotations", "l", "c", catalogue._snow_reader("small"), files)
    monkeypatch.setattr(catalogue, "DATA_SETS", (small,))
    monkeypatch.delenv("CONSILIENCE_DATA", raising=False)
    monkeypatch.setenv("CONSILIENCE_CACHE", str(tmp_path / "cache"))
    yield folder
    server.shutdown()
    server.server_close()


def test_a_download_is_checked_kept_and_used_again(served, tmp_path):
    first = load("small")
    assert (first.num_annotations, first.num_items, first.num_annotators) == (5, 3, 3)
    assert first.gold.tolist() == [1, 1, 0]
    for path in served.iterdir():
        path.unlink()
    assert load("small").fingerprint() == first.fingerprint()
    assert sorted(path.name for path in (tmp_path / "cache/snow2008").iterdir()) == ["small.csv", "small.key"]


def test_a_changed_download_is_refused_and_not_kept(served, tmp_path):
    (served / "small.csv").write_bytes(CONTENT + b"0,,\n")
    with pytest.raises(DataUnavailable, match="SHA-256"):
        load("small")
    assert list((tmp_path / "cache/snow2008").iterdir()) == []


def test_a_changed_copy_is_refused(served, tmp_path):
    load("small")
    copy = tmp_path / "cache/snow2008/small.csv"
    copy.write_bytes(copy.read_bytes()[:-1])
    with pytest.raises(DataUnavailable, match="small.csv is not the published file.*delete it"):
        load("small")


def test_a_stored_copy_may_be_compressed(served, tmp_path, monkeypatch):
    stored = tmp_path / "stored/snow2008"
    stored.mkdir(parents=True)
    (stored / "small.csv").write_bytes(CONTENT)
    compressed = gzip.compress((served / "small.key").read_bytes())
    (stored / "small.key.gz").write_bytes(compressed)
    monkeypatch.setenv("CONSILIENCE_DATA", str(tmp_path / "stored"))
    assert get("small") == tmp_path / "stored"
    (stored / "small.key.gz").write_bytes(gzip.compress(b"1\n1\n1\n"))
    with pytest.raises(DataUnavailable, match="small.key.gz is not the published file"):
        get("small")
    (stored / "small.key.gz").write_bytes(compressed[:-1])
    with pytest.raises(DataUnavailable, match="small.key.gz is damaged"):
        get("small")


def test_a_missing_page_is_no_file(served):
    (served / "small.key").unlink()
    with pytest.raises(DataUnavailable, match="404"):
        load("small")


def test_stored_data_comes_first(served, tmp_path, monkeypatch):
    stored = tmp_path / "stored/snow2008"
    stored.mkdir(parents=True)
    for path in served.iterdir():
        (stored / path.name).write_bytes(path.read_bytes())
    monkeypatch.setenv("CONSILIENCE_DATA", str(tmp_path / "stored"))
    assert get("small") == tmp_path / "stored"
    assert not (tmp_path / "cache").exists()


def test_cache_folder_of_the_platform(monkeypatch):
    monkeypatch.delenv("CONSILIENCE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    monkeypatch.setattr("sys.platform", "linux")
    assert str(catalogue.cache_folder()) == "/somewhere/consilience"


# ---- public data ----


@pytest.mark.public_data
def test_dermatology_has_the_published_counts():
    cases = load("dermatology-ddx")
    assert (cases.num_items, cases.num_reports, cases.num_classes, cases.num_rows) == (1947, 9602, 419, 15748)
    first_of_block = np.flatnonzero(np.diff(cases.report.astype(np.int64) * 100 + cases.block, prepend=-1))
    sizes = cases.block_size[first_of_block]
    assert len(sizes) == 13998
    assert np.bincount(sizes).tolist() == [0, 12445, 1379, 155, 16, 2, 1]
    assert np.bincount(sizes[cases.block[first_of_block] == 0]).tolist() == [0, 8657, 814, 119, 9, 2, 1]
    reports = np.bincount(cases.report_item, minlength=1947)
    assert np.bincount(reports)[1:].tolist() == [25, 132, 359, 434, 289, 374, 97, 85, 68, 84]
    ranked = np.bincount(cases.report, minlength=cases.num_reports)
    assert np.bincount(ranked)[1:].tolist() == [5194, 2860, 1399, 117, 25, 5, 2]
    conditions = np.bincount(np.bincount(cases.entry_item))
    assert conditions[1:].tolist() == [131, 324, 436, 404, 288, 170, 107, 39, 25, 12, 5, 1, 4, 0, 1]
    assert len(np.unique(cases.entry_class)) == 274


@pytest.mark.public_data
def test_dermatology_risk_and_printed_cases():
    risk, cases, printed = load("dermatology-ddx-risk"), load("dermatology-ddx"), load("stutz-2023-cases")
    assert np.bincount(risk.group).tolist() == [201, 150, 68]
    assert risk.score.tolist() == [0, 1, 2]
    assert risk.classes.tolist() == cases.classes.tolist()
    for position, item in enumerate(printed.items):
        own, other = cases.entry_item == int(item), printed.entry_item == position
        assert set(cases.classes[cases.entry_class[own]]) == set(printed.classes[printed.entry_class[other]])


@pytest.mark.public_data
def test_cifar10h_counts():
    annotations = load("cifar10h")
    assert (annotations.num_items, annotations.num_labels, annotations.num_annotators) == (10000, 10, 0)
    assert annotations.weight.sum() == 511000
    assert annotations.labels[annotations.gold[:3]].tolist() == ["cat", "ship", "ship"]


@pytest.mark.public_data
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("snow2008-rte", (8000, 800, 164, 2)),
        ("snow2008-temporal", (4620, 462, 76, 2)),
        ("snow2008-wsd", (1770, 177, 34, 3)),
        ("crowd-cf", (1720, 300, 461, 5)),
        ("crowd-cf-amt", (6030, 300, 110, 5)),
        ("crowd-ms", (2945, 700, 44, 10)),
        ("crowd-sp", (27746, 4999, 203, 2)),
        ("crowd-sp-amt", (10000, 500, 143, 2)),
        ("crowd-zencrowd-in", (11205, 2040, 25, 2)),
    ],
)
@pytest.mark.filterwarnings("ignore::consilience.errors.InputWarning")
def test_crowd_data(name, sizes):
    data = load(name)
    assert (data.num_annotations, data.num_items, data.num_annotators, data.num_labels) == sizes
    assert (data.gold >= 0).all()


@pytest.mark.public_data
def test_zencrowd_warns_of_its_surplus_rows():
    with pytest.warns(InputWarning, match="710 rows"):
        load("crowd-zencrowd-in")


@pytest.mark.public_data
def test_rldata():
    records = load("rldata500")
    assert (records.num_records, records.num_fields) == (500, 7)
    assert len(np.unique(records.entity)) == 450
    assert (records.value[1] == -1).sum() > 400


@pytest.mark.public_data
def test_litbank_has_the_published_counts():
    chains = load("litbank")
    assert (chains.num_documents, chains.num_mentions, chains.num_entities) == (100, 29103, 7927)
    assert chains.documents[0] == "(1023_bleak_house_brat); part 0"
    assert len(describe("litbank").files) == 100
