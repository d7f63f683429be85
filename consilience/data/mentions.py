"""Mentions: what annotators say each mention of a text refers to.

An annotation is a class with or without an antecedent: ``DN`` (discourse new), ``DO(ne12)`` (discourse old, last
mentioned as ne12), ``NR`` (non-referring), ``PR(ne3)`` (a property of ne3), ``PR`` (a property, not said of what).
``DN()`` and ``NR()`` mean the same as without brackets.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from consilience.data.annotations import Annotations
from consilience.data.cells import Table
from consilience.data.codes import compact, object_array, repeated
from consilience.data.columns import Column, choose_columns
from consilience.data.contract import Contract, codes, ids, of_file, per, size, values
from consilience.data.files import holds_coded
from consilience.data.mas_xml import mas_xml_table
from consilience.data.mentions_table import table_of
from consilience.data.policies import filled_rows, flag_or_warn, keep_repeated, require_rows, said_first
from consilience.data.problems import check_option, warn_input
from consilience.data.tables import read_table
from consilience.errors import UnsupportedRequest
from consilience.notes import Remedy

MENTION_TYPES = ("DN", "DO", "NR", "PR")
_ANNOTATION = re.compile(r"(?:(DO|PR)\(\s*([^()]+?)\s*\)|(DN|NR|PR)(?:\(\s*\))?)", re.IGNORECASE)
_MALFORMED = "an annotation has to be DN, NR, PR, DO(mention) or PR(mention)"


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Mentions(Contract):
    """Annotated mentions, as codes; made by `read_mentions`.

    Parameters
    ----------
    mention, annotator : int32, shape ``(annotation,)``
        Codes into ``mentions`` and ``annotators``.
    type : int32, shape ``(annotation,)``
        Code into `MENTION_TYPES`.
    antecedent : int32, shape ``(annotation,)``
        The mention that the annotation points to, -1 for DN, NR and some PR.
    gold_type, gold_antecedent : int32, shape ``(mention,)``
        The same of the known label, -1 where unknown; ``None`` where the input has no such column.
    document : int32, shape ``(mention,)``
        Code into ``documents``. One document where the input names none.
    start, end : int32, shape ``(mention,)``
        First and last token, counted from 0; ``None`` where the input has none.
    num_annotations, num_mentions, num_annotators, num_documents : int
        sizes.
    mentions, annotators, documents : sequence, optional
        Object arrays of the user's own ids, in code order; ``None`` in a copy that went through JAX. Mention ids that
        occur in several documents are written ``document/mention``.

    Examples
    --------
    >>> import consilience as cs
    >>> mentions = cs.read_mentions({
    ...     "mention_id": ["m1", "m2", "m2"],
    ...     "annotator_id": ["Ann", "Ann", "Bob"],
    ...     "annotation": ["DN", "DO(m1)", "DN"],
    ... })
    >>> mentions.classes[mentions.type].tolist()
    ['DN', 'DO', 'DN']
    >>> mentions.antecedent.tolist()
    [-1, 0, -1]
    """

    columns = (
        Column("mention_id", ("mention", "markable"), "mention", "the mention, within its document"),
        Column("annotator_id", ("annotator", "worker", "coder", "player"), "annotator", "who annotated it"),
        Column("annotation", ("label",), help="DN, NR, PR, DO(mention) or PR(mention)"),
        Column("gold", ("truth", "true_label", "ground_truth"), help="the known annotation", optional=True),
        Column("document_id", ("document", "doc_id"), "document", "the document", optional=True),
        Column("start", help="its first token, counted from 0", optional=True),
        Column("end", help="its last token", optional=True),
    )
    reader = "read_mentions"
    command = "chains"
    rows = "annotation"
    unit = "mention"
    mention: Any = codes("mention")
    annotator: Any = codes("annotator")
    type: Any = values(codes=len(MENTION_TYPES))
    antecedent: Any = codes("mention", missing=True)
    gold_type: Any = per("mention", codes=len(MENTION_TYPES), missing=True, default=None)
    gold_antecedent: Any = per("mention", codes="mention", missing=True, default=None)
    document: Any = per("mention", codes="document")
    start: Any = per("mention", default=None)
    end: Any = per("mention", default=None)
    num_annotations: int = size()
    num_mentions: int = size()
    num_annotators: int = size()
    num_documents: int = size()
    mentions: Any = ids("mention")
    annotators: Any = ids("annotator")
    documents: Any = ids("document")

    @property
    def classes(self) -> np.ndarray:
        """The names of the types, in code order."""
        return object_array(MENTION_TYPES)

    @property
    def gold(self) -> Any:
        """The known type of each mention, -1 where it is unknown; ``None`` where the input has no such column."""
        return self.gold_type

    @property
    def gold_codes(self) -> Any:
        """The known label of each mention, antecedent and all, as `label_codes` counts them."""
        return None if self.gold_type is None else self.label_codes().gold

    @property
    def ids(self) -> dict[str, np.ndarray]:
        """The user's ids by dimension; the classes are the types of mentions."""
        return {**super().ids, "class": self.classes}

    def label_codes(self, more: tuple[Any, Any] | None = None) -> MentionLabels:
        """Return the distinct labels by type and antecedent, and behind them ``more``: types and antecedents."""
        width = self.num_mentions + 1
        key = np.asarray(self.type, np.int64) * width + np.asarray(self.antecedent) + 1
        gold = np.full(self.num_mentions, -1, np.int64)
        if self.gold_type is not None:
            known = np.asarray(self.gold_type) >= 0
            gold[known] = (np.asarray(self.gold_type, np.int64) * width + np.asarray(self.gold_antecedent) + 1)[known]
        # A mention without annotations may be new, if nothing else.
        blank = len(np.unique(self.mention)) < self.num_mentions
        keys = np.unique(np.concatenate([key, gold[gold >= 0], [MENTION_TYPES.index("DN") * width] * blank]))
        label, known_gold = np.searchsorted(keys, key), np.searchsorted(keys, gold)
        if more is not None:
            further = np.asarray(more[0], np.int64) * width + np.asarray(more[1]) + 1
            keys = np.concatenate([keys, np.setdiff1d(further, keys)])
        type_, antecedent = np.divmod(keys.astype(np.int64), width)
        return MentionLabels(
            label=label.astype(np.int32),
            gold=np.where(gold >= 0, known_gold, -1).astype(np.int32),
            type=type_.astype(np.int32),
            antecedent=(antecedent - 1).astype(np.int32),
            names=_label_names(type_, antecedent - 1, self.mentions),
        )

    def to_annotations(self) -> Annotations:
        """Return the same as annotations, where a label with its antecedent is a label like any other."""
        labels = self.label_codes()
        made = Annotations.from_codes(
            self.mention, self.annotator, labels.label, gold=None if self.gold_type is None else labels.gold,
            items=self.mentions, annotators=self.annotators, labels=labels.names,
            num_items=self.num_mentions, num_annotators=self.num_annotators,
        )  # fmt: skip
        vars(made).update((name, value) for name, value in vars(self).items() if name == "file")
        return made

    def _table(self, rows: slice = slice(None)) -> dict[str, np.ndarray]:
        return {name: np.asarray(values, object)[rows] for name, values in table_of(self).items()}

    @classmethod
    @of_file
    def read(
        cls, source: Any, *, columns: Mapping[str, str] | None = None, missing: str = "error",
        duplicates: str = "keep", antecedents: str = "error",
    ) -> Mentions:  # fmt: skip
        """Read annotated mentions.

        Parameters
        ----------
        source : path, data frame, dict of columns or list of rows
            A table with the columns mention_id, annotator_id and annotation, and perhaps gold (empty or "none" where
            unknown), document_id, start and end. Or the path of an ``.xml`` file, or of a folder of them, which
            `read_mas_xml` reads.
        columns : dict of str to str, optional
            Column names for these where the table has names of its own.
        missing : str, default "error"
            "error", or "drop" to leave out rows whose annotation is empty.
        duplicates : str, default "keep"
            What to do when an annotator annotates a mention again: "keep" counts every row, "first" keeps the first,
            "error" refuses.
        antecedents : str, default "error"
            What to do with labels that point to their own mention or to none of the document's mentions: "error", or
            "drop" to leave the row out (and take such a gold label for unknown). With "strict" it is an error too where
            ``DO`` points to a mention that begins later, or where the links of one annotator, or of the gold labels,
            lead back to where they began; else such labels are counted in a warning and kept, since for a model they
            are labels like any other.

        Returns
        -------
        mentions
            Mentions, annotators and documents in the order of their first appearance.

        Notes
        -----
        The order of mentions in a text is known from ``start`` alone: without that column no link is taken to point
        forward, because rows may come in any order. A property (``PR``) may well stand before what it is a property of.

        Examples
        --------
        >>> import consilience as cs
        >>> cs.read_mentions({
        ...     "mention_id": ["m1", "m2", "m2"],
        ...     "annotator_id": ["Ann", "Ann", "Bob"],
        ...     "annotation": ["DN", "DO(m1)", "DN"],
        ... })
        Mentions(annotations=3, mentions=2, annotators=2, documents=1)
        """
        check_option("missing", missing, ("error", "drop"))
        check_option("duplicates", duplicates, ("keep", "first", "error"))
        check_option("antecedents", antecedents, ("error", "drop", "strict"))
        if is_mas_xml(source):
            if columns is not None or missing != "error":
                text = "{columns} and {missing} are for tables, and XML is none; leave them out"
                raise UnsupportedRequest(text, Remedy("columns"), Remedy("missing"))
            return read_mas_xml(source, duplicates=duplicates, antecedents=antecedents)
        table = read_table(source, choose_columns(Mentions.columns, columns))
        filled_rows(table, "annotation", missing)
        return _of_table(table, duplicates=duplicates, antecedents=antecedents)

    @classmethod
    def recognises(cls, source: Any) -> bool:
        """Return whether a source is XML of Phrase Detectives' kind."""
        return is_mas_xml(source)


read_mentions = Mentions.read


class MentionLabels(NamedTuple):
    """The labels of mentions, each with a code of its own.

    Parameters
    ----------
    label : int32, shape ``(annotation,)``; code of the label.
    gold : int32, shape ``(mention,)``; the same of the known label, -1 where unknown.
    type, antecedent : int32, shape ``(label,)``; what each label consists of.
    names : object array; how each is written, such as ``DO(ne12)``.
    """

    label: np.ndarray
    gold: np.ndarray
    type: np.ndarray
    antecedent: np.ndarray
    names: np.ndarray


def _label_names(type_: np.ndarray, antecedent: np.ndarray, mentions: Any) -> np.ndarray:
    """Write labels as they are read: the class, and the antecedent in brackets where there is one."""
    types = np.array(MENTION_TYPES)[type_]
    ids = np.arange(antecedent.max(initial=0) + 1) if mentions is None else np.asarray(mentions)
    pointing = np.char.add(np.char.add(np.char.add(types, "("), ids[np.maximum(antecedent, 0)].astype(str)), ")")
    return np.where(antecedent < 0, types, pointing).astype(object)


def is_mas_xml(source: Any) -> bool:
    """Return whether a source is the path of an ``.xml`` file, or of a folder."""
    is_path = isinstance(source, str | os.PathLike)
    return is_path and (Path(source).suffix.lower() == ".xml" or (os.path.isdir(source) and not holds_coded(source)))


def read_mas_xml(
    source: Any, *, validations: str = "ignore", duplicates: str = "keep", antecedents: str = "error"
) -> Mentions:
    """Read what players and experts said about the mentions of documents in MAS-XML.

    Parameters
    ----------
    source : path, data frame, dict of columns or list of rows
        Path of an ``.xml`` file; of a folder, of which all ``.xml`` files are read, those in its subfolders too, sorted
        by path; or a list of files. Each is a document, called by the ``id`` of its outermost element, or else by the
        name of the file without ``.xml`` and ``-game``.
    validations : str, default "ignore"
        What to do with players' validations of somebody else's label: "ignore" leaves them out; with "rows" a player
        who agrees counts as one more annotator who gave that label, and who does not agree is left out.
    duplicates : str, default "keep"
        What to do when a player annotates a mention again, as `read_mentions` does.
    antecedents : str, default "error"
        What to do with labels that point to their own mention or to none of the document, likewise.

    Returns
    -------
    mentions
        Those of players' annotations. The gold label of a mention is the one that the experts favour, or else the only
        one that they gave; it is unknown where experts differ. ``start`` and ``end`` count the ``<W>`` of the document
        from 0; where a document has none, words between white space or tags. All markables are mentions, also those
        that nobody annotated, except hidden ones.

    Raises
    ------
    InputError : with file and line of everything that is not as `consilience.data.mas_xml` says.

    Notes
    -----
    A warning counts what was left out: hidden markables, labels that point to them, labels with several antecedents
    (a mention has one), answers of type ``SE``, and gold labels on which experts differ. It also counts the markables
    of which an administrator corrected the span by characters (``start_chr``, ``end_chr``); they keep the tokens that
    the text shows.

    Single decisions, such as validations are, have no place in `Mentions`, where every row names a label of its own.

    References
    ----------
    Poesio et al. (2019), "A Crowdsourced Corpus of Multiple Judgments and Disagreement on Anaphoric Interpretation".

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import consilience as cs
    >>> text = '''<text id="news">
    ... <ne id="ne1"><W>Mary</W></ne> <W>and</W> <ne id="ne2"><W>she</W></ne>
    ... <PDante id="ne2"><interpretation>
    ... <anchor mode="a" type="DO" ante="ne1" user_id="u1" />
    ... </interpretation></PDante>
    ... </text>'''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "news.xml")
    ...     _ = path.write_text(text)
    ...     mentions = cs.read_mas_xml(path)
    >>> mentions
    Mentions(annotations=1, mentions=2, annotators=1, documents=1)
    >>> mentions.start.tolist()
    [0, 2]
    """
    check_option("validations", validations, ("ignore", "rows"))
    check_option("duplicates", duplicates, ("keep", "first", "error"))
    check_option("antecedents", antecedents, ("error", "drop", "strict"))
    table = mas_xml_table(source, validations=validations)
    return _of_table(table, duplicates=duplicates, antecedents=antecedents)


def _of_table(table: Table, *, duplicates: str, antecedents: str) -> Mentions:
    """Return the mentions of a table with the columns of `read_mentions`, whose other options these are.

    A row without an annotation makes its mention known, and may hold its gold label.
    """
    mention, mentions, document_of_mention, documents = _identify(table)
    annotator, annotators = table.texts("annotator_id", required=True)
    kind, antecedent = _parse(table, "annotation", mention, mentions, document_of_mention)
    dangling = (kind >= 0) & (antecedent == -2)
    _report_dangling(table, "annotation", dangling, antecedents)
    gold_type, gold_antecedent = _gold(table, mention, mentions, document_of_mention, antecedents)
    start, end = _positions(table, mention, len(mentions))
    keep = (kind >= 0) & ~dangling
    keep &= keep_repeated(table, keep, (mention, annotator), duplicates, "mention and annotator")
    links = _links(keep, annotator, mention, kind, antecedent)
    _report_links(table, "annotation", links, start, antecedents)
    if gold_type is not None and gold_antecedent is not None:
        owner = np.zeros(table.num_rows, np.int32)
        links = _links(~table.empty("gold"), owner, mention, gold_type[mention], gold_antecedent[mention])
        _report_links(table, "gold", links, start, antecedents)
    table.problems.raise_any()
    require_rows(table, keep)
    annotator, annotator_ids = compact(annotator[keep], annotators)
    return Mentions(
        mention=mention[keep], annotator=annotator, type=kind[keep], antecedent=antecedent[keep],
        gold_type=gold_type, gold_antecedent=gold_antecedent, document=document_of_mention, start=start, end=end,
        num_annotations=int(keep.sum()), num_mentions=len(mentions), num_annotators=len(annotator_ids),
        num_documents=len(documents), mentions=_mention_ids(mentions, documents), annotators=annotator_ids,
        documents=object_array(documents),
    )  # fmt: skip


_Mention = tuple[int, str]      # document code and the id within the document


def _identify(table: Table) -> tuple[np.ndarray, list[_Mention], np.ndarray, list[str]]:
    """Return the mention code of each row, what the codes stand for, and the document of each mention."""
    name, names = table.texts("mention_id", required=True)
    if "document_id" in table.columns:
        document, documents = table.texts("document_id", required=True)
    else:
        document, documents = np.zeros(table.num_rows, np.int32), ["document"]
    pairs = document.astype(np.int64) * len(names) + name
    distinct, first, inverse = np.unique(pairs, return_index=True, return_inverse=True)
    by_appearance = np.argsort(first)
    position = np.empty(len(distinct), np.int32)
    position[by_appearance] = np.arange(len(distinct), dtype=np.int32)
    rows = first[by_appearance]
    mentions = [(int(document[row]), names[name[row]] if name[row] >= 0 else "") for row in rows.tolist()]
    return position[inverse], mentions, document[rows], documents


def _mention_ids(mentions: list[_Mention], documents: list[str]) -> np.ndarray:
    unique = len({name for _, name in mentions}) == len(mentions)
    return object_array(name if unique else f"{documents[document]}/{name}" for document, name in mentions)


def _parse(
    table: Table, role: str, mention: np.ndarray, mentions: list[_Mention], document_of_mention: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return type (-1 where empty or malformed) and antecedent (-2 where it is no other mention) of each row."""
    code, texts = table.texts(role)
    unknown = [role == "gold" and text.casefold() == "none" for text in texts]
    parsed = [_ANNOTATION.fullmatch(text) for text in texts]
    malformed = np.array([not match and not none for match, none in zip(parsed, unknown, strict=True)] + [False])
    table.flag(malformed[code], role, _MALFORMED, "correct it")
    kinds = [MENTION_TYPES.index((match[1] or match[3]).upper()) if match else -1 for match in parsed]
    targets = [match[2] if match and match[2] else None for match in parsed]
    kind = np.array([*kinds, -1], np.int32)[code]
    antecedent = np.full(table.num_rows, -1, np.int32)
    pointing = np.flatnonzero(np.array([target is not None for target in targets] + [False])[code])
    position = {identity: index for index, identity in enumerate(mentions)}
    document = document_of_mention[mention[pointing]]
    keys, inverse = np.unique(document.astype(np.int64) * max(len(texts), 1) + code[pointing], return_inverse=True)
    found = [position.get((int(key) // len(texts), targets[int(key) % len(texts)] or ""), -2) for key in keys]
    antecedent[pointing] = np.array(found, np.int32)[inverse] if len(pointing) else 0
    antecedent[(antecedent == mention) & (antecedent >= 0)] = -2
    return kind, antecedent


def _report_dangling(table: Table, role: str, dangling: np.ndarray, antecedents: str) -> None:
    flag_or_warn(
        table, dangling, role, "drop" if antecedents == "drop" else "error",
        "the antecedent is the mention itself or no mention of the document",
        "correct it, or pass {antecedents} to leave such labels out",
        f"labels in the column {role} point to no other mention ({{antecedents}})", Remedy("antecedents", "drop"),
    )  # fmt: skip


class _Links(NamedTuple):
    """Labels ``DO``, each once for whoever gave it: the row, that annotator, the mention and its antecedent."""

    row: np.ndarray
    owner: np.ndarray
    mention: np.ndarray
    antecedent: np.ndarray


def _links(
    usable: np.ndarray, owner: np.ndarray, mention: np.ndarray, kind: np.ndarray, antecedent: np.ndarray
) -> _Links:
    row = np.flatnonzero(usable & (owner >= 0) & (kind == MENTION_TYPES.index("DO")) & (antecedent >= 0))
    row = row[~repeated(owner[row], mention[row], antecedent[row])]
    return _Links(row, owner[row], mention[row], antecedent[row])


def _report_links(table: Table, role: str, links: _Links, start: np.ndarray | None, antecedents: str) -> None:
    """Report links that point forward, and those that lead back to where they began."""
    forward = np.zeros(len(links.row), bool) if start is None else start[links.antecedent] > start[links.mention]
    for which, message in (
        (forward, "the antecedent begins later than the mention"),
        (_on_circles(links), "followed from antecedent to antecedent, the links lead back to this mention"),
    ):
        rows = links.row[which]
        if antecedents == "strict":
            flagged = np.isin(np.arange(table.num_rows), rows)
            remedy = "correct it, or pass {antecedents} to keep such labels"
            table.flag(flagged, role, message, remedy, Remedy("antecedents", "error"))
        elif len(rows) and not table.problems.found:
            column = table.columns[role]
            example = f"{table.place(rows[0])}, {column.values[column.codes[rows[0]]]!r}"
            warn_input(f"{len(rows):,} labels in the column {role}, the first in {example}: {message}; they were kept")


def _on_circles(links: _Links) -> np.ndarray:
    """Return which links one comes back to by following the first link of each mention, those of one owner only."""
    first = np.flatnonzero(~repeated(links.owner, links.mention))
    size = 1 + max(links.mention.max(initial=0), links.antecedent.max(initial=0))
    owner = links.owner[first].astype(np.int64) * size
    here, there = owner + links.mention[first], owner + links.antecedent[first]
    order = np.argsort(here)
    place = np.minimum(np.searchsorted(here[order], there), max(len(order) - 1, 0))
    end = len(first)
    follower = np.append(np.where(here[order][place] == there, order[place], end), end)
    # Twice as far each time: what is reached after as many steps as there are links lies on a circle.
    for _ in range(end.bit_length()):
        follower = follower[follower]
    reached = np.zeros(end + 1, bool)
    reached[follower] = True
    result = np.zeros(len(links.row), bool)
    result[first] = reached[:end]
    return result


def _gold(
    table: Table, mention: np.ndarray, mentions: list[_Mention], document_of_mention: np.ndarray, antecedents: str
) -> tuple[np.ndarray | None, np.ndarray | None]:
    if "gold" not in table.columns:
        return None, None
    kind, antecedent = _parse(table, "gold", mention, mentions, document_of_mention)
    dangling = (kind >= 0) & (antecedent == -2)
    _report_dangling(table, "gold", dangling, antecedents)
    gold, conflict = said_first(np.stack([kind, antecedent]), (kind >= 0) & ~dangling, mention, len(mentions))
    message = "this gold label contradicts an earlier row of the same mention"
    table.flag(conflict, "gold", message, "keep one gold label per mention")
    return gold[0], gold[1]


def _positions(table: Table, mention: np.ndarray, num_mentions: int) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return first and last token of each mention."""
    found = [role for role in ("start", "end") if role in table.columns]
    if len(found) == 1:
        remedy = "add the other column or drop this one"
        table.problems.add("start and end are expected together", remedy, column=found[0])
    if len(found) < 2:
        return None, None
    first = np.flatnonzero(~repeated(mention))
    result = []
    for role in found:
        values = table.numbers(role, what="a token number")
        whole = (values >= 0) & (values == np.floor(values)) & (values <= np.iinfo(np.int32).max)
        table.flag(~whole & ~np.isnan(values), role, "a token number counts from 0", "write a whole number")
        table.flag(table.empty(role), role, "the token number is empty", "fill it in")
        of_mention = np.zeros(num_mentions)
        of_mention[mention[first]] = np.where(whole, values, 0)[first]
        differs = whole & (of_mention[mention] != values)
        table.flag(differs, role, "an earlier row of the same mention has another position", "make them agree")
        result.append(of_mention.astype(np.int32))
    start, end = result
    table.flag((start > end)[mention], "end", "the mention ends before it starts", "exchange or correct start and end")
    return start, end
