"""Sample files: small simulated data of every kind, which ship with the package and need no network.

`tests/data/sample_files.py` is the script that made them.
"""

from __future__ import annotations

import importlib.resources
import os
from pathlib import Path
from typing import Any

from consilience.data.annotations import read_annotations
from consilience.data.constraints import read_constraints
from consilience.data.predictions import read_predictions
from consilience.data.records import read_records
from consilience.errors import no_such
from consilience.output import write_folder

_FILES = {
    "labels.csv": "150 photographs, 12 annotators, 4 labels each; gold labels of 30",
    "system_a.csv": "the predictions of a system for these photographs",
    "system_b.csv": "those of another system",
    "clinic.csv": "100 people in a clinic",
    "register.csv": "120 people in a register; 60 are in the clinic too, some misspelt",
    "answers.csv": "four experts say of pairs of shapes whether they belong together",
    "items.csv": "width and height of these shapes",
}


def example(name: str | None = None) -> Any:
    """Read a sample file, or list all of them.

    Parameters
    ----------
    name : str, optional
        Name of a sample file. Without it the names are returned.

    Returns
    -------
    Annotations, Predictions, Records, Constraints, pandas.DataFrame or dict
        The contract of the file; of ``items.csv`` a data frame; without a name what each file holds, by name.

    Raises
    ------
    UnknownName
        If there is no sample file of this name.

    Examples
    --------
    >>> import consilience as cs
    >>> cs.example("labels.csv")
    Annotations(annotations=600, items=150, annotators=12, labels=3)
    >>> list(cs.example())[:3]
    ['labels.csv', 'system_a.csv', 'system_b.csv']
    """
    if name is None:
        return dict(_FILES)
    if name not in _FILES:
        raise no_such(f"there is no sample file {name!r}", name, _FILES, f"there are {', '.join(_FILES)}")
    with importlib.resources.as_file(_folder()) as folder:
        path = folder / name
        if name == "labels.csv":
            return read_annotations(path)
        if name == "answers.csv":
            return read_constraints(path, features=folder / "items.csv")
        if name in ("clinic.csv", "register.csv"):
            return read_records(path, id="id")
        if name == "items.csv":
            import pandas

            return pandas.read_csv(path)
        return read_predictions(path)


def write_samples(folder: str | os.PathLike, *, force: bool = False) -> dict[str, Path]:
    """Copy the sample files to a folder; see `consilience.output.write_folder` for what is refused.

    Parameters
    ----------
    folder : str or path
        It is made if there is none.
    force : bool, default False
        Replace files of the same names.

    Returns
    -------
    dict
        Path of each file, by its name.

    Raises
    ------
    OutputRefused
        If the folder holds one of the files, and ``force`` is not given.
    """
    contents = {name: (_folder() / name).read_bytes() for name in _FILES}
    writers = {name: lambda stream, content=content: stream.write(content) for name, content in contents.items()}
    return write_folder(folder, writers, force=force)


def _folder() -> Any:
    return importlib.resources.files("consilience.data") / "examples" / "sample"
