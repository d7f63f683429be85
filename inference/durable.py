"""Arrays and records in files, with digests that tell a file that was changed later.

Saved fits and checkpoints are written in this way, into folders of their own, where a file may be replaced.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from consilience.data.files import digest
from consilience.output import write_output


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> str:
    """Write arrays to an ``.npz`` file, and return its SHA-256."""
    write_output(path, lambda file: np.savez(file, **arrays), force=True)  # type: ignore[arg-type]
    return digest(path)


def write_text(path: Path, text: Mapping[str, Any], *, force: bool = True) -> None:
    """Write a record as JSON."""
    write_output(path, lambda file: file.write(json.dumps(text, indent=1).encode()), force=force)


def text_digest(text: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a record, whatever the white space and the order in its file."""
    return hashlib.sha256(json.dumps(text, sort_keys=True).encode()).hexdigest()
