"""What the commands of coreference do: read, call the library, print.

Every function takes the parsed arguments. Nothing is imported before it is needed, so that a wrong word is answered at
once.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import TYPE_CHECKING

from consilience.errors import UnsupportedRequest
from consilience.printing import json_text

if TYPE_CHECKING:
    from consilience.data.conll import Chains

__all__ = ["SCENARIOS", "read_key", "simulate"]

SCENARIOS = ("synthetic-uniform", "synthetic-sparse", "profiles-uniform", "profiles-sparse")
"""Names of `consilience.models.mpa.scenarios`, which imports JAX."""


def read_key(source: str) -> Chains:
    """Read a key: a CoNLL file, a folder of them, or public data by name.

    Raises
    ------
    UnsupportedRequest : for public data of another kind.
    """
    from consilience import data
    from consilience.data.conll import read_conll

    if Path(source).exists() or source not in data.names():
        return read_conll(source)
    found = data.describe(source).contract
    if found != "Chains":
        fitting = ", ".join(name for name in data.names() if data.describe(name).contract == "Chains")
        raise UnsupportedRequest(f"a key holds Chains, and {source} holds {found}; there is {fitting}")
    return data.load(source)


def simulate(arguments: argparse.Namespace) -> None:
    """Write annotations of the mentions of a key, as a crowd would give them."""
    target = Path(arguments.output)
    if target.exists() and not arguments.force:
        raise UnsupportedRequest(f"{target} exists; give a new file, or --force to replace it")
    key = read_key(arguments.key)
    from consilience.data.mentions import MENTION_TYPES, write_mentions
    from consilience.models.mpa.scenarios import simulate_mentions

    mentions = simulate_mentions(key, arguments.scenario, profiles=arguments.profiles, seed=arguments.seed)
    write_mentions(mentions, target)
    new = float((mentions.gold_type == MENTION_TYPES.index("DN")).mean())
    described = {
        "file": str(target), "key": arguments.key, "scenario": arguments.scenario, "seed": arguments.seed,
        **mentions.counts, "gold_share_of_DN": new,
    }  # fmt: skip
    if arguments.json:
        print(json_text(described))
        return
    sizes = ", ".join(itertools.starmap(_counted, mentions.counts.items()))
    of_key = ", ".join(_counted(name, key.counts[name]) for name in ("mentions", "documents"))
    print(f"read     {arguments.key}: {of_key}")
    print(f"made     {arguments.scenario}, seed {arguments.seed}: {sizes}")
    print(f"gold     {new:.1%} of the mentions are new (DN)")
    print(f"saved    {target}\n\nnext     consilience fit mpa {target} -o run")


def _counted(plural: str, size: int) -> str:
    return f"{size:,} {plural.removesuffix('s') if size == 1 else plural}"
