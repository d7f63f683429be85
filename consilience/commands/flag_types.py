"""What the values of flags are read as, by `argparse`, and flags of several commands."""

from __future__ import annotations

import argparse
import math
import re
from typing import Any


def by_name(text: str) -> str | dict[str, str]:
    """Read one word for all, or words by name: ``A=word,B=word``."""
    return dict(one.split("=", 1) for one in text.split(",")) if "=" in text else text


def numbered(text: str) -> str | dict[str, float]:
    """Read labels as numbers: ``label=number,…``, or the word labels.

    Raises
    ------
    argparse.ArgumentTypeError : the text is something else.
    """
    if text == "labels":
        return text
    try:
        return {label: number(value) for label, value in (pair.rsplit("=", 1) for pair in text.split(","))}
    except (ValueError, argparse.ArgumentTypeError):
        raise argparse.ArgumentTypeError(f"{text!r}: write label=number,label=number or labels") from None


def typed_fields(text: str) -> list[str] | dict[str, str]:
    """Read a,b:date,… or a,b=date,… as names, or as types by name where one is given."""
    parts = [_pair(part) for part in text.split(",") if part.strip()]
    if not any(type_ for _, type_ in parts):
        return [name for name, _ in parts]
    return {name: type_ or "string" for name, type_ in parts}


def of_columns(text: str) -> dict[str, str]:
    """Read a word for each column: ``name=string,born=date``, or with ``:``.

    Raises
    ------
    argparse.ArgumentTypeError : the text is something else.
    """
    parts = [_pair(part) for part in text.split(",")]
    if not all(name and word for name, word in parts):
        raise argparse.ArgumentTypeError(f"{text!r}: write column=word,column=word")
    return dict(parts)


def _pair(text: str) -> tuple[str, str]:
    """Split a name and a word; the name may hold a colon where the word comes after =."""
    name, _, word = text.partition("=" if "=" in text else ":")
    return name.strip(), word.strip()


def column_of_source(text: str) -> tuple[str, str, str]:
    """Read right:surname=last_name as a source, its column and the name of that.

    Raises
    ------
    argparse.ArgumentTypeError : the text is something else.
    """
    source, _, names = text.rpartition(":")
    column, _, name = names.partition("=")
    if not (source.strip() and column.strip() and name.strip()):
        raise argparse.ArgumentTypeError(f"{text!r}: give SOURCE:COLUMN=NAME, such as right:surname=last_name")
    return source.strip(), column.strip(), name.strip()


_MOST = 10**12
_WHOLE, _DECIMAL = re.compile(r"-?[0-9]+"), re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def count(text: str) -> int:
    """Read a whole number as it is usually written; not 1_0, which Python takes, nor more than 10^12.

    Raises
    ------
    argparse.ArgumentTypeError : the text is something else.
    """
    if not _WHOLE.fullmatch(text) or abs(int(text)) > _MOST:
        raise argparse.ArgumentTypeError(f"{text!r}: give a whole number, such as 100")
    return int(text)


def number(text: str) -> float:
    """Read a decimal number; not nan, inf or 1_0, which Python takes.

    Raises
    ------
    argparse.ArgumentTypeError : the text is something else.
    """
    if not _DECIMAL.fullmatch(text) or not math.isfinite(float(text)):
        raise argparse.ArgumentTypeError(f"{text!r}: give a number, such as 0.5")
    return float(text)


def whole(text: str) -> list[int]:
    """Read whole numbers with commas between them; raises as `decimals` does."""
    return _numbers(text, count, "whole numbers")


def decimals(text: str) -> list[float]:
    """Read numbers with commas between them.

    Raises
    ------
    argparse.ArgumentTypeError : the text is something else.
    """
    return _numbers(text, number, "numbers")


def _numbers(text: str, kind: Any, words: str) -> list[Any]:
    try:
        return [kind(part) for part in text.split(",")]
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"{text!r}: write {words} with commas between them") from None


def seed(text: str) -> int:
    """Read a seed.

    Raises
    ------
    argparse.ArgumentTypeError : the text is something else.
    """
    if (found := count(text)) < 0:
        raise argparse.ArgumentTypeError(f"{text!r}: give a whole number, 0 or more")
    return found


def listed(text: str) -> list[str]:
    """Read texts with commas between them."""
    return text.split(",")


def renamed(text: str) -> dict[str, str]:
    """Read pairs, such as names of columns: ``item=its_name,label=its_name``.

    Raises
    ------
    argparse.ArgumentTypeError : the text is something else.
    """
    pairs = [pair.split("=", 1) for pair in text.split(",")]
    if not all(len(pair) == 2 and all(pair) for pair in pairs):
        raise argparse.ArgumentTypeError(f"{text!r}: write item=its_name,label=its_name")
    return {role.strip(): name.strip() for role, name in pairs}


def add_absent(sub: argparse.ArgumentParser, missing: str, unknown: str) -> None:
    """Add the flags that say what to do with what one side lacks, and what the other; the texts are their help."""
    sub.add_argument("--missing", choices=("drop", "error"), default="error", help=missing)
    sub.add_argument("--unknown", choices=("keep", "error"), default="error", help=unknown)
