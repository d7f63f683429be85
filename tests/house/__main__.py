"""Lower the ceilings of the facts about the house to today's values: ``python -m tests.house``.

A ceiling is never raised here: that is an edit of ceilings.json by hand, for a reviewer to see.
"""

import json
from pathlib import Path

from tests.house.house_facts import GOALS, gather

HERE = Path(__file__).parent


def main() -> None:
    """Write the better of today's value and the ceiling, and print what changed."""
    path = HERE / "ceilings.json"
    ceilings = json.loads(path.read_text()) if path.exists() else {}
    _, facts, _ = gather(HERE.parents[1])
    for fact, (sign, _) in GOALS.items():
        before, today = ceilings.get(fact, facts[fact]), facts[fact]
        ceilings[fact] = min(before, today) if sign == "<=" else max(before, today)
        if today != before:
            print(f"{fact}: {before}, today {today}{'' if ceilings[fact] == today else ' which is worse: kept'}")
    path.write_text(json.dumps({fact: ceilings[fact] for fact in GOALS}, indent=1) + "\n")


if __name__ == "__main__":
    main()
