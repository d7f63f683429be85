"""What may be in the folder of a run: a saved fit, the checkpoint of a run that did not end, or both.

Names only: neither NumPy nor JAX is needed to look at a folder before anything is read or run.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from consilience.errors import OutputRefused
from consilience.notes import Remedy
from consilience.output import check_folder, made_for

FIT_TEXT = "fit.json"
ARRAYS = re.compile(r"arrays-[0-9a-f]{8}\.npz")
LABELS = re.compile(r"labels-[0-9]+\.parquet")
CHECKPOINT = "checkpoint"
"""Folder within that of the run, where the command keeps its checkpoint."""
CHECKPOINT_TEXT = "checkpoint.json"


def labels_file(process: int) -> str:
    """Return the name of the file in which one of several processes keeps the labels of its items."""
    return f"labels-{process}.parquet"


def is_array_file(name: str) -> bool:
    """Return whether a file is called as those that hold the arrays of a fit."""
    return (ARRAYS.fullmatch(name) or LABELS.fullmatch(name)) is not None


def holds_fit(folder: Path) -> bool:
    """Return whether the folder holds a saved fit."""
    return (folder / FIT_TEXT).is_file()


def holds_checkpoint(folder: Path) -> bool:
    """Return whether the folder of a run holds a checkpoint to go on from."""
    return (folder / CHECKPOINT / CHECKPOINT_TEXT).is_file()


def fit_folder(folder: str | os.PathLike) -> Path:
    """Return the folder of a fit: of what `link` wrote, the one within."""
    inner = Path(folder) / "fit"
    within = holds_fit(inner) or holds_checkpoint(inner)
    return inner if within and not holds_fit(Path(folder)) else Path(folder)


def check_run_folder(folder: str | os.PathLike, *, force: bool = False) -> None:
    """Raise where a fit cannot be saved in a folder: it holds something else, and ``force`` was not given.

    Raises
    ------
    OutputRefused : with the reason.
    """
    check_folder(folder)
    if not (force or is_ours(Path(folder)) or is_free(Path(folder))):
        raise OutputRefused(
            f"{folder} exists and is not a saved fit; give a new folder, or {{force}} to write a fit beside what "
            "is in it",
            Remedy("force", True),
        )


def is_ours(folder: Path) -> bool:
    """Return whether a folder is that of a fit or a run of ours: a `FIT_TEXT` may be somebody else's."""
    if not holds_fit(folder):
        return holds_checkpoint(folder)
    try:
        text = json.loads((folder / FIT_TEXT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(text, dict) and {"format", "arrays", "contract", "model"} <= text.keys()


def is_free(folder: Path) -> bool:
    """Return whether nothing is there but a checkpoint and what a kill while saving a fit left behind."""
    if not folder.exists():
        return True
    return folder.is_dir() and all(_is_left_over(file.name) for file in folder.iterdir())


def _is_left_over(name: str) -> bool:
    return name == CHECKPOINT or made_for(name) == FIT_TEXT or is_array_file(made_for(name) or name)
