"""`verdicts`: systems ranked by what judges say of their outputs."""

from __future__ import annotations

from argparse import Namespace as Arguments

from consilience.commands.systems import print_comparison


def verdicts(arguments: Arguments) -> None:
    """Print the leaderboard, on gold labels where the file has any, and how sure one may be of each pair.

    Raises
    ------
    InputError : the file does not exist or cannot be used.
    UnsupportedRequest : outputs were not judged, or there are too few gold labels for what is asked.
    """
    from consilience.data import read_verdicts

    found = read_verdicts(arguments.file, arguments.columns, missing=arguments.missing, duplicates=arguments.duplicates)
    from consilience.evaluation.comparison import compare

    comparison = compare(
        found, gold=arguments.gold, anchor=arguments.anchor, missing=arguments.missing, level=arguments.level,
        seed=arguments.seed,
    )  # fmt: skip
    print_comparison(comparison, arguments)
