"""What may be in the folder of a run: a saved fit, the checkpoint of a run that did not end, or both.

Names only: neither NumPy nor JAX is needed to look at a folder before anything is read or run.
"""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["ARRAYS", "CHECKPOINT", "CHECKPOINT_TEXT", "FIT_TEXT", "PARTIAL", "holds_checkpoint", "holds_fit", "is_free"]

FIT_TEXT = "fit.json"
ARRAYS = re.compile(r"arrays-[0-9a-f]{8}\.npz")
CHECKPOINT = "checkpoint"
"""Folder within that of the run, where the command keeps its checkpoint."""
CHECKPOINT_TEXT = "checkpoint.json"
PARTIAL = ".partial"
"""Ending of the name of a file that is not complete."""


def holds_fit(folder: Path) -> bool:
    """Return whether the folder holds a saved fit."""
    return (folder / FIT_TEXT).is_file()


def holds_checkpoint(folder: Path) -> bool:
    """Return whether the folder of a run holds a checkpoint to go on from."""
    return (folder / CHECKPOINT / CHECKPOINT_TEXT).is_file()


def is_free(folder: Path) -> bool:
    """Return whether nothing is there but a checkpoint and what a kill while saving a fit left behind."""
    if not folder.exists():
        return True
    return folder.is_dir() and all(_is_left_over(file.name) for file in folder.iterdir())


def _is_left_over(name: str) -> bool:
    return name in (CHECKPOINT, FIT_TEXT + PARTIAL) or ARRAYS.fullmatch(name.removesuffix(PARTIAL)) is not None
