"""Public data by name: where each data set lies, under which licence, how to check it, how to read it.

The package ships only two small examples made of printed tables. Everything else stays where its authors published
it, at a fixed commit. A file is looked for below the folder in the environment variable ``CONSILIENCE_DATA``, then
below the cache (``CONSILIENCE_CACHE``, or the user's cache folder); if neither has it, it is downloaded into the
cache. Its SHA-256 is checked after the download and whenever it is read. A file may be stored compressed, with ``.gz``
added to its name; the checksum is then that of its content.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import http.client
import importlib.resources
import os
import urllib.error
import urllib.request
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from consilience.data.annotations import Annotations, read_annotations
from consilience.data.classes import ClassMap, read_class_map
from consilience.data.conll import Chains, read_conll
from consilience.data.contract import Contract, named_after
from consilience.data.predictions import Predictions, read_predictions
from consilience.data.rankings import Rankings, read_rankings
from consilience.data.records import Records, read_records
from consilience.errors import DataUnavailable, InputWarning, OutputRefused, no_such
from consilience.output import check_output, write_output
from consilience.progress import steps

_TIMEOUT_SECONDS = 60
_PIECE_BYTES = 1 << 18


@dataclass(frozen=True)
class PublicFile:
    """One file of a data set.

    Parameters
    ----------
    path : where it lies below the data folder, there also with ``.gz``.
    repository : owner/name at github.com.
    commit : the commit of that repository.
    source : path within the repository.
    sha256 : checksum of its bytes as published, in hexadecimal.
    """

    path: str
    repository: str
    commit: str
    source: str
    sha256: str

    @property
    def address(self) -> str:
        """Where the file can be downloaded."""
        return f"https://raw.githubusercontent.com/{self.repository}/{self.commit}/{self.source}"

    def place(self, folder: Path) -> Path | None:
        """Return where the file lies below a data folder, as published or compressed; None where it does not."""
        for path in (folder / self.path, folder / f"{self.path}.gz"):
            if path.is_file():
                return path
        return None


@dataclass(frozen=True)
class DataSet:
    """One entry of the catalogue.

    Parameters
    ----------
    name : what `load` takes.
    title : one line on what it is.
    contract : the type that `load` returns.
    licence, citation : under what terms, and whom to cite.
    read : makes the contract from the data folder (for shipped examples: from the folder of examples).
    files : what has to be there; empty for shipped examples.
    """

    name: str
    title: str
    contract: str
    licence: str
    citation: str
    read: Callable[[Path], Any]
    files: tuple[PublicFile, ...] = ()


# ---- readers of single data sets ----


def _read_dermatology(folder: Path) -> Rankings:
    classes = folder / "dermatology/dermatology_conditions.txt"
    return read_rankings(folder / "dermatology/dermatology_selectors.json", classes=classes)


def _read_dermatology_risk(folder: Path) -> ClassMap:
    classes = folder / "dermatology/dermatology_conditions.txt"
    return read_class_map(folder / "dermatology/dermatology_risks.txt", classes=classes)


def _read_cifar10h(folder: Path) -> Annotations:
    labels = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
    counts = np.load(folder / "cifar10h/cifar10h-counts.npy", allow_pickle=False)
    gold = np.load(folder / "cifar10h/cifar10_test_labels.npy", allow_pickle=False)
    return Annotations.from_counts(counts, labels=labels, gold=gold)


def _snow_reader(stem: str) -> Callable[[Path], Annotations]:
    """Read items in rows and annotators in columns, without a header, and gold labels from a second file."""

    def read(folder: Path) -> Annotations:
        with (folder / f"snow2008/{stem}.csv").open(newline="") as stream:
            cells = np.array(list(csv.reader(stream)), dtype=object)
        gold = np.array((folder / f"snow2008/{stem}.key").read_text().split(), dtype=object)
        item, annotator = np.nonzero(cells != "")
        labels, codes = np.unique(np.concatenate([cells[item, annotator], gold]).astype(str), return_inverse=True)
        return Annotations.from_codes(
            item, annotator, codes[: len(item)], gold=codes[len(item) :], labels=labels.tolist(),
            num_items=cells.shape[0], num_annotators=cells.shape[1],
        )  # fmt: skip

    return read


def _crowd_reader(file: str) -> Callable[[Path], Annotations]:
    """Read annotator, item, label, gold and perhaps one number more, without a header."""

    def read(folder: Path) -> Annotations:
        with (folder / "crowd" / file).open(newline="", encoding="utf-8") as stream:
            columns = zip(*csv.reader(stream), strict=True)
            return read_annotations(dict(zip(("annotator", "item", "label", "gold"), columns, strict=False)))

    return read


def _read_litbank(folder: Path) -> Chains:
    return read_conll([file.place(folder) for file in _litbank_files()])


def _read_rldata(folder: Path) -> Records:
    path = folder / "rldata/RLdata500.csv"
    return read_records(path, id="rec_id", entity="ent_id", missing_values=("NA",))


def _read_dawid_skene(folder: Path) -> Annotations:
    with warnings.catch_warnings():
        # The first anaesthetist saw every patient three times; the paper counts all three.
        warnings.simplefilter("ignore", InputWarning)
        return read_annotations(folder / "dawid-skene-1979.csv")


def _stutz_rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "stutz-2023-predictions.csv").open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def _stutz_classes(folder: Path) -> list[str]:
    """Return every condition of the printed cases and of the printed predictions."""
    ranked = read_rankings(folder / "stutz-2023-cases.json").classes
    return sorted({*ranked, *(row["class"] for row in _stutz_rows(folder))})


def _read_stutz_cases(folder: Path) -> Rankings:
    return read_rankings(folder / "stutz-2023-cases.json", classes=_stutz_classes(folder))


def _read_stutz_predictions(folder: Path) -> dict[str, Predictions]:
    rows, classes = _stutz_rows(folder), _stutz_classes(folder)
    result = {}
    for system in sorted({row["system"] for row in rows}):
        own = [row for row in rows if row["system"] == system]
        columns = {name: [row[name] for row in own] for name in ("item", "rank", "class")}
        result[system] = read_predictions(columns, classes=classes, name=system)
    return result


# ---- the catalogue ----

_DERMATOLOGY = ("google-deepmind/uncertain_ground_truth", "98349d8fefc5b45f0a2fa5f28fed98ded4225368")
_SNOW = ("dirkhovy/MACE", "10f231ee2d43d6e38c777cbbed299f9ecd1c2d07")
_CROWD = ("orchidproject/active-crowd-toolkit", "2c0c194e85ca126545bd830d811ec39151bdd448")
_LITBANK = ("dbamman/litbank", "3e50db0ffc033d7ccbb94f4d88f6b99210328ed8")
_RLDATA = ("cleanzr/dblink", "dc3dd0daf55f8a303863423817a0f0042b3c275a")
_CIFAR10H = ("jcpeterson/cifar-10h", "48da312b193b82e6939ec20f23d1f09cbdd849c8")
_CIFAR10_LABELS = ("cleanlab/label-errors", "6d5d6b31a13216290afc40e5c6319399c4d15c06")
"""Repositories, each at the commit at which its files were checked."""

_OF_STUTZ = (
    "Stutz and others: Evaluating AI systems under uncertain ground truth: a case study in dermatology, 2023, "
    "arXiv:2307.02191"
)
_OF_SNOW = "Snow, O'Connor, Jurafsky, Ng: Cheap and fast – but is it good?, EMNLP 2008"
_OF_CROWD = "Venanzi, Parson, Rogers, Jennings: The ActiveCrowdToolkit, HCOMP 2015"


def _dermatology(file: str, sha256: str) -> PublicFile:
    return PublicFile(f"dermatology/{file}", *_DERMATOLOGY, f"data/{file}", sha256)


_CONDITIONS = _dermatology(
    "dermatology_conditions.txt", "54552e734d025c17de2df2a030583a10f356b8ffc73ad9cbadd2219da31ff035"
)


def _snow(task: str, title: str, csv_sha256: str, key_sha256: str) -> DataSet:
    files = tuple(
        PublicFile(f"snow2008/{task}.{ending}", *_SNOW, f"data/test/{task}.{ending}", sha256)
        for ending, sha256 in (("csv", csv_sha256), ("key", key_sha256))
    )
    return DataSet(f"snow2008-{task}", title, "Annotations", "see the source", _OF_SNOW, _snow_reader(task), files)


def _crowd(name: str, title: str, file: str, sha256: str) -> DataSet:
    files = (PublicFile(f"crowd/{file}", *_CROWD, f"Data/{file}", sha256),)
    return DataSet(name, title, "Annotations", "Apache-2.0", _OF_CROWD, _crowd_reader(file), files)


def _litbank_files() -> tuple[PublicFile, ...]:
    """Return the files that litbank.txt lists, each with its checksum."""
    listed = (importlib.resources.files("consilience.data") / "litbank.txt").read_text(encoding="utf-8")
    return tuple(
        PublicFile(f"litbank/{name}", *_LITBANK, f"coref/conll/{name}", sha256)
        for name, sha256 in map(str.split, listed.splitlines())
    )


DATA_SETS: tuple[DataSet, ...] = (
    DataSet(
        "dawid-skene-1979", "45 patients, 5 anaesthetists (the first rated three times), 4 classes; shipped",
        "Annotations", "facts of a published table",
        "Dawid, Skene: Maximum likelihood estimation of observer error-rates using the EM algorithm, "
        "Applied Statistics 28(1), 1979, doi:10.2307/2346806",
        _read_dawid_skene,
    ),
    DataSet(
        "stutz-2023-cases", "the three differential diagnoses that the paper prints (Figures 5 and 15); shipped",
        "Rankings", "facts of printed figures", _OF_STUTZ, _read_stutz_cases,
    ),
    DataSet(
        "stutz-2023-predictions",
        "top-3 predictions that the paper prints for these cases, in alphabetical order, by system; shipped",
        "dict[str, Predictions]", "facts of printed figures", _OF_STUTZ, _read_stutz_predictions,
    ),
    DataSet(
        "dermatology-ddx", "differential diagnoses of 1,947 cases: partial rankings with ties over 419 conditions",
        "Rankings", "CC BY 4.0", _OF_STUTZ, _read_dermatology,
        (
            _dermatology(
                "dermatology_selectors.json", "0e267eaa92ec005bdfc19cb7a9d8f3227c2a515d380088003f77db80d4c73050"
            ),
            _CONDITIONS,
        ),
    ),
    DataSet(
        "dermatology-ddx-risk", "the risk of each of the 419 conditions: 0 low, 1 medium, 2 high",
        "ClassMap", "CC BY 4.0", _OF_STUTZ, _read_dermatology_risk,
        (
            _dermatology("dermatology_risks.txt", "9fa83c4c7311da5bbd91bfa0b552ef47a80bb22daca93ff13aa9e4b681f22b3a"),
            _CONDITIONS,
        ),
    ),
    DataSet(
        "cifar10h",
        "how often people gave each of the 10 labels to the 10,000 CIFAR-10 test images; gold is the original label",
        "Annotations", "CC BY-NC-SA 4.0 (counts); see the source (labels)",
        "Peterson, Battleday, Griffiths, Russakovsky: Human uncertainty makes classification more robust, ICCV 2019; "
        "original labels: Krizhevsky: Learning multiple layers of features from tiny images, 2009",
        _read_cifar10h,
        (
            PublicFile(
                "cifar10h/cifar10h-counts.npy", *_CIFAR10H, "data/cifar10h-counts.npy",
                "9b36b4550349af56c79083356312eb4af856cc5fd3caf1f669d40b9d0bbb69ff",
            ),
            PublicFile(
                "cifar10h/cifar10_test_labels.npy", *_CIFAR10_LABELS,
                "original_test_labels/cifar10_test_set_original_labels.npy",
                "8fba587d5b11011df52b2a20eb4a272eeaf20c2d162554059f714d4b78d23aed",
            ),
        ),
    ),
    _snow(
        "rte", "recognising textual entailment: 800 items, 164 annotators, 2 labels",
        "2b8767c19a5e0e79cdfb31ffbf61d7dd3dedb0eeaa71eb8230dba6ac80efdc2c",
        "2d158af98a589ae2e0d746b1a5aed1f20f1683090f844bd41ff5392333f1e45d",
    ),
    _snow(
        "temporal", "order of events: 462 items, 76 annotators, 2 labels",
        "8522a03615ec59baa56edae210db745426886c1f8a29f83fc48e6367e72875f5",
        "10771e02de6ba6a3b80cb7b2fbc06c62b610bffd55a7422d497e5e0659cb7bdc",
    ),
    _snow(
        "wsd", "word senses: 177 items, 34 annotators, 3 labels",
        "1f88aa1a3024562d708aa8aaa38f742817b0e2219ebd4fbda0fc2c56630d58f3",
        "a7a75f4cd46200b7c95369a0ee60674d466cddb6c3d213dcb0d73d6da7b912e9",
    ),
    _crowd(
        "crowd-cf", "sentiment of tweets about the weather, 5 labels", "CF.csv",
        "18bc4dc1780ce1f2b2f9ffedc493f4b8f9a4590a3fde8dce2e5d3367bcc8686e",
    ),
    _crowd(
        "crowd-cf-amt", "the same tweets, annotated on another platform", "CF_amt.csv",
        "c44d4bf3cbf08f343072d86a10e9085ab91885a2b4bbb1d0d03eb2cd461f6c5b",
    ),
    _crowd(
        "crowd-ms", "genre of pieces of music, 10 labels", "MS.csv",
        "fb9e0b146723c93dac71d1ed601a736cf94fed3b444f4921d6c4e57b4505c06a",
    ),
    _crowd(
        "crowd-sp", "sentiment of sentences of film reviews, 2 labels", "SP.csv",
        "a83cf48092dc61bbb8986fdb0c1a17f658ba8555bddffc9e9ca26b95d514236f",
    ),
    _crowd(
        "crowd-sp-amt", "a part of these sentences, annotated on another platform", "SP_amt.csv",
        "fec6f3027202d33016b8b06083c83118d6d237e671b8bd4c22d0aa979e41ba0a",
    ),
    _crowd(
        "crowd-zencrowd-in",
        "whether a link from a name to an entity is right, 2 labels; 710 rows repeat an item and annotator",
        "ZenCrowd_in.csv", "c5eabf0b145ce04122a77e28e3d765045ba65c3b16edee2dc0c5106418e92f5a",
    ),
    DataSet(
        "litbank",
        "coreference in 100 works of English fiction: 29,103 mentions of 7,927 entities, singletons included",
        "Chains", "CC BY 4.0",
        "Bamman, Lewke, Mansoor: An annotated dataset of coreference in English literature, LREC 2020, "
        "arXiv:1912.01140",
        _read_litbank, _litbank_files(),
    ),
    DataSet(
        "rldata500", "500 synthetic persons, some of them twice, with their true entity",
        "Records", "GPL (data of the R package RecordLinkage)",
        "Sariyar, Borg: The RecordLinkage package: detecting errors in data, The R Journal 2(2), 2010",
        _read_rldata,
        (
            PublicFile(
                "rldata/RLdata500.csv", *_RLDATA, "examples/RLdata500.csv",
                "95072149a782e0f15d3fab6494fa19f9235fa1bac70fbf490f595181d930e1a0",
            ),
        ),
    ),
)  # fmt: skip


def names() -> tuple[str, ...]:
    """Return the names that `load` knows."""
    return tuple(data_set.name for data_set in DATA_SETS)


def describe(name: str) -> DataSet:
    """Return the entry of the catalogue: title, contract, licence, citation and files with address and checksum.

    Raises
    ------
    UnknownName : there is no data set of this name.
    """
    for data_set in DATA_SETS:
        if data_set.name == name:
            return data_set
    what = "; load_fit reads a saved fit" if (Path(name) / "fit.json").is_file() else ""
    raise no_such(f"there is no data set {name!r}{what}", name, names(), f"there are {', '.join(names())}")


def load(name: str) -> Any:
    """Load public data by name.

    Parameters
    ----------
    name : str
        One of `names`. The shipped examples need no network.

    Returns
    -------
    data
        The contract that `describe` names.

    Raises
    ------
    DataUnavailable
        If a file is neither stored nor reachable, or its checksum differs.

    Examples
    --------
    >>> import consilience as cs
    >>> cs.load("dawid-skene-1979")
    Annotations(annotations=315, items=45, annotators=5, labels=4)
    """
    data_set = describe(name)
    if data_set.files:
        found = data_set.read(get(name))
    else:
        with importlib.resources.as_file(importlib.resources.files("consilience.data") / "examples") as folder:
            found = data_set.read(folder)
    return named_after(found, name) if isinstance(found, Contract) else found


# ---- files ----


def get(name: str) -> Path:
    """Return a data folder that holds every file of a data set, checked; downloads into the cache what is not stored.

    Parameters
    ----------
    name : one of `names`, but not a shipped example.

    Raises
    ------
    UnknownName : there is no data set of this name.
    DataUnavailable : it is a shipped example, cannot be downloaded or read, or a checksum differs.
    """
    data_set = describe(name)
    if not data_set.files:
        raise DataUnavailable(f"{name} is shipped with the package and has no folder; use load({name!r})")
    folder = stored(name)
    if folder is None:
        folder = cache_folder()
        for file in data_set.files:
            if file.place(folder) is None:
                _download(file, folder / file.path)
    for file in data_set.files:
        _check(file, file.place(folder) or folder / file.path)
    return folder


def stored(name: str) -> Path | None:
    """Return the folder that holds every file of a data set, unchecked; None where some would have to be downloaded.

    Parameters
    ----------
    name : one of `names`, but not a shipped example.
    """
    given = os.environ.get("CONSILIENCE_DATA")
    for folder in ([Path(given)] if given else []) + [cache_folder()]:
        if all(file.place(folder) for file in describe(name).files):
            return folder
    return None


def cache_folder() -> Path:
    """Return the folder for what can be made or downloaded again."""
    if given := os.environ.get("CONSILIENCE_CACHE"):
        return Path(given)
    import platformdirs

    return platformdirs.user_cache_path("consilience", appauthor=False)


def _download(file: PublicFile, target: Path) -> None:
    """Download, check, write to the cache: what is torn or changed is never taken for the file."""
    by_hand = f"to place it by hand, save {file.address} as {target}"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        check_output(target, force=True)
    except (OSError, OutputRefused) as error:
        raise DataUnavailable(_not_written(target, error, by_hand)) from None
    try:
        content = b"".join(_received(file))
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # it holds the reply
        raise DataUnavailable(f"{file.path} is not stored and cannot be downloaded ({error}); {by_hand}") from None
    _check_content(file, content, f"what {file.address} sends", by_hand)
    try:
        # By force: another process may have been quicker, with the same bytes.
        write_output(target, lambda stream: stream.write(content), force=True)
    except OSError as error:
        raise DataUnavailable(_not_written(target, error, by_hand)) from None


def _received(file: PublicFile) -> Iterator[bytes]:
    """Yield what is sent, piece by piece, with a bar where that takes long."""
    with urllib.request.urlopen(file.address, timeout=_TIMEOUT_SECONDS) as reply:
        done, total = 0, int(reply.headers.get("Content-Length") or 0) or None
        with steps(total, f"downloading {Path(file.path).name}", "B") as bar:
            while piece := reply.read(_PIECE_BYTES):
                done += len(piece)
                bar.to(done)
                yield piece


def _not_written(target: Path, error: Exception, by_hand: str) -> str:
    message = f"cannot write to the cache folder {target.parent} ({getattr(error, 'strerror', None) or error})"
    return f"{message}; set CONSILIENCE_CACHE to another folder, or {by_hand}"


def _check(file: PublicFile, path: Path) -> None:
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        message = f"{path} is damaged ({error}); delete it, or replace it by {file.address}"
        raise DataUnavailable(message) from None
    except OSError as error:
        raise DataUnavailable(f"{path} cannot be read ({error.strerror or error}); check its permissions") from None
    _check_content(file, content, str(path), f"delete it, or replace it by {file.address}")


def _check_content(file: PublicFile, content: bytes, what: str, remedy: str) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise DataUnavailable(
            f"{what} is not the published file: its SHA-256 is {found}, not {file.sha256}; {remedy}"
        )
