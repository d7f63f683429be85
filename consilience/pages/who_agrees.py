"""What a report says of annotators of mentions who may agree with the others by chance alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.models.crowd.gate import BLIND, signal
from consilience.models.majority_vote import as_annotations
from consilience.pages import Section, Table
from consilience.printing import counted

TITLE = "Agreement with the others"


def agreement_with_others(fit: Any) -> list[Section]:
    """Tabulate how far annotators agree with the others beyond chance; nothing where that cannot be told."""
    import pandas

    data = fit.data
    z = signal(as_annotations(data)).annotator_z
    known = np.flatnonzero(np.isfinite(z))
    if not len(known):
        return []
    order = known[np.argsort(z[known], kind="stable")]
    names = np.arange(data.num_annotators) if data.annotators is None else np.asarray(data.annotators)
    labels = np.bincount(np.asarray(data.annotator), minlength=data.num_annotators)
    blind = int((z[known] < BLIND).sum())
    frame = pandas.DataFrame({"annotator": names[order], "labels": labels[order], "z": z[order]})
    words = (
        "How far the labels of each annotator agree with those of the others on the same mentions: z is by how many "
        f"standard errors that is more than by chance. From {BLIND:g} on it is hardly chance. Below, nothing tells "
        "that the annotator looks at the mentions, and nothing tells of the opposite either. No model has a part in it."
    )
    table = Table(frame, "Agreement beyond chance, the least first.", texts={"z": [f"{one:.1f}" for one in z[order]]})
    return [Section(TITLE, [words, table], f"{blind:,} of {counted(len(known), 'annotators')} below {BLIND:g}")]
