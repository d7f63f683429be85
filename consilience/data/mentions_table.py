"""Annotated mentions as columns that `read_mentions` reads."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from consilience.data.codes import object_array
from consilience.errors import UnsupportedRequest

_UNREADABLE = re.compile(r"[()\0]|^\s|\s$|^$")


def table_of(mentions: Any) -> dict[str, list[Any]]:
    """Return the columns of a table of mentions, one entry for each annotation.

    Raises
    ------
    UnsupportedRequest : the id of a mention could not be read again.
    """
    mention, documents = np.asarray(mentions.mention), _ids(mentions.documents, mentions.num_documents)
    document = np.asarray(mentions.document)
    names = _own_names(_ids(mentions.mentions, mentions.num_mentions), documents[document])
    labels = mentions.replace(mentions=names).label_codes()
    targets = names[np.unique(labels.antecedent[labels.antecedent >= 0])]
    unreadable = [name for name in targets.tolist() if _UNREADABLE.search(name)]
    if unreadable:
        raise UnsupportedRequest(
            f"an annotation points to {unreadable[0]!r}, which could not be read again; give ids without brackets"
        )
    # The last one stands for unknown gold labels, whose code is -1.
    texts = np.append(labels.names, "")
    annotators = _ids(mentions.annotators, mentions.num_annotators)
    table = {"mention_id": names[mention], "annotator_id": annotators[np.asarray(mentions.annotator)]}
    if mentions.gold_type is not None:
        table["gold"] = texts[labels.gold[mention]]
    table |= {"annotation": texts[labels.label], "document_id": documents[document[mention]]}
    if mentions.start is not None:
        table |= {"start": np.asarray(mentions.start)[mention], "end": np.asarray(mentions.end)[mention]}
    return {name: values.tolist() for name, values in table.items()}


def _ids(names: Any, size: int) -> np.ndarray:
    return object_array(map(str, range(size))) if names is None else np.asarray(names)


def _own_names(names: np.ndarray, documents: np.ndarray) -> np.ndarray:
    """Return ids as they were within their documents, if these had to be put before them to make them unique."""
    prefixes = [f"{document}/" for document in documents.tolist()]
    if not all(map(str.startswith, names.tolist(), prefixes)):
        return names
    own = object_array(map(str.removeprefix, names.tolist(), prefixes))
    # Ids that are unique without their documents are read as they stand, and have to keep them.
    return own if len(set(own.tolist())) < len(own) else names
