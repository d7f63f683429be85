"""What a report says of annotators of mentions who may agree with the others by chance alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import special

from consilience.models.crowd.gate import BLIND, signal
from consilience.models.majority_vote import as_annotations
from consilience.pages import Section, Table
from consilience.pages.run import changed, driven
from consilience.printing import counted

TITLE = "Agreement with the others"


_MOST_LABELS = 40  # of annotators that are looked at
_LOOKED_AT = 2  # annotators


def agreement_with_others(fit: Any, named: Any = None) -> list[Section]:
    """Tabulate how far annotators agree with the others beyond chance; nothing where that cannot be told.

    Parameters
    ----------
    fit : of mentions.
    named : its truth, as `worded` writes it; its own by default.
    """
    import pandas

    data = fit.data
    z = signal(as_annotations(data)).annotator_z
    known = np.flatnonzero(np.isfinite(z))
    if not len(known):
        return []
    order = known[np.argsort(z[known], kind="stable")]
    names = np.arange(data.num_annotators) if data.annotators is None else np.asarray(data.annotators)
    labels = np.bincount(np.asarray(data.annotator), minlength=data.num_annotators)
    weak = order[z[order] < BLIND]
    passed = 1 - float(special.ndtr(BLIND)) ** len(known)
    frame = pandas.DataFrame({"annotator": names[order], "labels": labels[order], "z": z[order]})
    words = (
        "z counts by how many standard errors an annotator agrees with the others on the same mentions more than "
        f"chance would. If all {len(known):,} annotators guessed, one or more would reach {BLIND:g} in about "
        f"{100 * passed:.0f} % of cases. A z below {BLIND:g} is weak evidence that the annotator reads the mentions; "
        "it does not prove guessing. No model is involved."
    )
    table = Table(frame, "Agreement beyond chance, lowest first.", texts={"z": [f"{one:.1f}" for one in z[order]]})
    blocks: list[Any] = [words, table]
    for one in weak[:_LOOKED_AT].tolist():
        blocks.append(_labels(fit, named or fit.truth, one, str(names[one])))
    return [Section(TITLE, blocks, f"{len(weak):,} of {counted(len(known), 'annotators')} below {BLIND:g}")]


def _labels(fit: Any, named: Any, who: int, name: str) -> Table:
    """Tabulate the labels of an annotator beside the leading ones, those that differ first."""
    import pandas

    data = fit.data
    own = np.flatnonzero(np.asarray(data.annotator) == who)
    mention, label = np.asarray(data.mention)[own], data.label_codes().label[own]
    lead = np.asarray(named.lead.label)[mention]
    order = np.lexsort([mention, label == lead])[:_MOST_LABELS]
    words, texts = named.names(), named.ids["class"]
    frame = pandas.DataFrame({
        "mention": words[mention[order]], f"label of {name}": [str(texts[code]) for code in label[order]],
        "leading label": [str(texts[code]) for code in lead[order]],
        "same": np.where(label == lead, "yes", "no")[order],
    })  # fmt: skip
    same = int((label == lead).sum())
    cut = f" ({len(order)} shown)" * (len(order) < len(own))
    caption = f"Labels of {name}{cut}: {same:,} of {len(own):,} match the leading label of the model."
    return Table(frame, caption)


def left_out(fit: Any, names: Sequence[str]) -> str:
    """Return the line of Python that fits again without some annotators."""
    known = fit.attributes.get("data_file")
    read = f"cs.read_mentions({known!r})" if known and fit.folder else "data"
    rows = f"{read}.to_pandas().query({f'annotator_id not in {list(names)!r}'!r})"
    settings = "".join(f", {name}={value!r}" for name, value in (driven(fit) | changed(fit)).items())
    return f"cs.fit({fit.member.name!r}, cs.read_mentions({rows}){settings})"
