"""`python -m benchmarks NAME`: run one benchmark and record its results."""

from __future__ import annotations

import argparse
import importlib
import shlex
import sys
from pathlib import Path

from consilience.errors import ConsilienceError

BENCHMARKS = {
    "dermatology": "differential diagnoses of 1,947 cases (Stutz and others 2023): certainty, risk, agreement, speed",
    "plackett_luce": "speed of the Plackett-Luce sampler, against the authors' from a checkout of theirs",
    "cifar10h": "labels of 10,000 images by about 51 people each (Stutz and others 2023, Figure 3)",
    "crowd": "can the certainty of crowd models be believed? Public sets, noise, intervals, speed, beside crowd-kit",
    "another_label": "is another label worth what is expected of it? Nine public sets with gold labels",
    "leaderboard": "can a leaderboard be believed? Coverage, provenance, gold labels, judges, beside two peers",
    "annotators": "crowd models against what is published (Paun and others 2018, Table 7) and crowd-kit's late steps",
    "mpa": "simulated annotations of coreference (Paun and others 2018, Tables 2 and 5), on LitBank",
    "chains": "posterior of partitions of mentions: coverage on data of the model, and on LitBank",
    "coreference": "speed and scores of coreference on LitBank, against the official scorer and scorch",
    "agreement_oracles": "coefficients of agreement, against the packages that compute some of them",
    "spa": "weights of sparse probability of agreement on six crowd sets (Nørregaard and Derczynski 2022, Table 1)",
    "annotators_speed": "speed and memory of crowd models, streamed from Parquet, beside crowd-kit",
    "linkage": "records of the same entity, beside splink; the method of Broderick and Steorts (2014) on RLdata500",
    "linkage_bars": "linkage by default on public lists, its interval, and engines beside splink on a million records",
    "linkage_strings": "records with misspelt names, compared by similarity, beside splink with Jaro–Winkler",
    "coverage": "whether intervals for the number of entities hold it, on simulated records",
    "views": "several clusterings from uncertain experts (Chang and others 2017), beside clusterings of one view",
    "views_bars": "groupings of experts that are honest by default: exactness, coverage, evidence, time",
    "hostile": "full disks, devices, signals, kills, forged files, names that are code; tracebacks, silent errors",
    "waiting": "what a user waits for after a fit: certainty, report; as a share of the fit",
    "device": "all that there is to measure on an accelerator, unattended, in 45 minutes",
    "mutants": "errors that people make, planted one at a time: do the tests notice?",
    "agreement_speed": "speed and memory of agreement of 10⁸ annotations, against krippendorff",
}


# What stands for a place on the user's machine, beside paths.
_PLACES = ("PYTHON", "INTERPRETER", "COMMAND")


def command_of(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> str:
    """Return how to run a benchmark again: with all options that are not the default, but for where the results go.

    Where files and interpreters lie is nobody's business: in the place of each is what it is.
    """
    words = [parser.prog]
    for action in parser._actions:
        value = getattr(arguments, action.dest, action.default)
        if value == action.default or action.dest == "output":
            continue
        if isinstance(value, bool):
            words.append(action.option_strings[0 if value else -1])
            continue
        place = action.type is Path or action.metavar in _PLACES
        values = [action.metavar] if place else value if isinstance(value, list) else [value]
        words += [action.option_strings[0], *(shlex.quote(str(one)) for one in values)]
    return " ".join(words)


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark that the command line names; returns the exit status."""
    listed = "\n".join(f"  {name:16} {line}" for name, line in BENCHMARKS.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Reproduce the tables and figures of papers on public data, and measure speed.",
        epilog=f"benchmarks:\n{listed}\n\n`python -m benchmarks NAME --help` lists the options of one.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=BENCHMARKS, metavar="NAME", help="the benchmark to run")
    parser.add_argument("options", nargs=argparse.REMAINDER, metavar="…", help="options of the benchmark")
    chosen = parser.parse_args(arguments)
    benchmark = importlib.import_module(f"benchmarks.{chosen.name}")
    own = argparse.ArgumentParser(prog=f"python -m benchmarks {chosen.name}", description=BENCHMARKS[chosen.name])
    benchmark.add_arguments(own)
    own.add_argument("--output", type=Path, help="folder for the results; benchmarks/results/… by default")
    settings = own.parse_args(chosen.options)
    settings.command = command_of(own, settings)
    try:
        benchmark.run(settings)
    except ConsilienceError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
