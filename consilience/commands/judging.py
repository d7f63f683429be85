"""`verdicts`: systems ranked by what judges say of their outputs."""

from __future__ import annotations

from argparse import Namespace as Arguments

from consilience.commands.files import write_csv
from consilience.printing import json_text, rows_of, table_text


def verdicts(arguments: Arguments) -> None:
    """Print the leaderboard, on gold labels where the file has any, and how sure one may be of each pair.

    Raises
    ------
    InputError : the file does not exist or cannot be used.
    UnsupportedRequest : outputs were not judged, or there are too few gold labels for what is asked.
    """
    from consilience.data import read_verdicts

    found = read_verdicts(arguments.file, arguments.columns, duplicates=arguments.duplicates)
    from consilience.evaluation.anchoring import compare_verdicts

    comparison = compare_verdicts(
        found, gold=arguments.gold or ("ignore" if found.gold is None else "use"), anchor=arguments.anchor,
        missing=arguments.missing, level=arguments.level, seed=arguments.seed,
    )  # fmt: skip
    leaderboard, pairs = rows_of(comparison.table), rows_of(comparison.pairs)
    write_csv(comparison.table, arguments)
    if arguments.json:
        print(json_text({"leaderboard": leaderboard, "pairs": pairs, "notes": comparison.notes}))
        return
    print(f"{comparison.title}, {comparison.num_items:,} items\n{table_text(leaderboard, limit=None)}")
    for note in comparison.notes:
        print(f"\nnote  {note}")
    if pairs:
        print(f"\npairs\n{table_text(pairs, limit=20)}")
