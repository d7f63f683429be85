"""Files that are whole or absent, whatever happens to the process or the power while they are written.

A file is written under another name, flushed to the disk, and renamed; then the folder is flushed too, so that the
rename lasts. Digests tell a file that was changed later. Saved fits and checkpoints are written in this way.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from consilience.inference.run_folder import PARTIAL

__all__ = ["digest", "text_digest", "write_arrays", "write_text"]


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> str:
    """Write arrays to an ``.npz`` file, and return its SHA-256."""
    _write(path, lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]
    return digest(path)


def write_text(path: Path, text: Mapping[str, Any]) -> None:
    """Write a record as JSON."""
    _write(path, lambda file: file.write(json.dumps(text, indent=1).encode()))


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def text_digest(text: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a record, whatever the white space and the order in its file."""
    return hashlib.sha256(json.dumps(text, sort_keys=True).encode()).hexdigest()


def _write(path: Path, write: Callable[[BinaryIO], Any]) -> None:
    partial = path.with_name(path.name + PARTIAL)
    try:
        with open(partial, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    _flush_folder(path.parent)


def _flush_folder(folder: Path) -> None:
    with contextlib.suppress(PermissionError):  # Windows opens no folders, and makes renames last by itself
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
