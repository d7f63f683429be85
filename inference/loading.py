"""Saved fits as fits again."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path

from consilience.inference.result import Fit
from consilience.inference.run_folder import fit_folder
from consilience.inference.saved import read
from consilience.models.interface import Model


def load_fit(path: str | os.PathLike, *, model: Model | Callable | None = None, truth: Callable | None = None) -> Fit:
    """Read a fit from a folder.

    Parameters
    ----------
    path : str or path
        The folder.
    model, truth : Model or callable, optional
        For a fit of your own NumPyro function, the same as were given to `fit`; inference is not repeated.

    Returns
    -------
    Fit
        As `Fit.save` wrote it.

    Raises
    ------
    InvalidFit : the folder is missing, torn, changed since it was written, or of a later version.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import consilience as cs
    >>> fit = cs.fit("majority-vote", cs.Annotations.from_counts([[3, 0], [1, 2]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fit.save(Path(folder, "votes"))
    ...     again = cs.load_fit(Path(folder, "votes"))
    >>> again.data
    Annotations(annotations=3, items=2, annotators=0, labels=2)
    >>> again.labels().equals(fit.labels())
    True
    """
    fields, advice = read(path, model, truth)
    folder = Path(path).resolve()  # commands take what `link` wrote by the folder around the fit
    outer = folder.parent if folder.name == "fit" and fit_folder(folder.parent) == folder else folder
    found = Fit(**fields, folder=outer.name)
    return dataclasses.replace(found, said=(*found.findings(), *advice)) if advice else found
