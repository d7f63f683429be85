"""Golden figures: what every member says by every method, recorded before the house is rebuilt, and compared after.

    python -m tests.golden record [MEMBER …]    # write tests/golden/figures/MEMBER.json
    python -m tests.golden check [MEMBER …]     # fit anew and compare; exit code 1 where figures differ

A figure holds where all bits are equal, where numbers are equal within 1e-6, or, of what was drawn, within five Monte
Carlo errors; the last are listed, and ``--strict`` counts them as differences too. A change that moves a figure for a
reason records that member anew, and says so in the CHANGELOG.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import sys
import time
import warnings

# In double precision, on one CPU device, and compiled in a hurry, which takes most of the time of small data. All are
# read when JAX is imported, and part of what decides the last bits. XLA ends the process for an option that it does not
# know, so that the older way to compile loops is for the versions that were looked at.
os.environ |= {"JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu", "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
_version = tuple(int(part) for part in importlib.metadata.version("jaxlib").split(".")[:2])
os.environ["XLA_FLAGS"] = "--xla_cpu_use_fusion_emitters=false" if (0, 8) <= _version <= (0, 10) else ""


def main() -> int:
    """Record or check, and return the exit code."""
    from tests.golden import running
    from tests.golden.cases import CASES

    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__.splitlines()[0])
    parser.add_argument("verb", choices=("record", "check"))
    parser.add_argument("members", nargs="*", metavar="MEMBER", help="all by default")
    parser.add_argument("--strict", action="store_true", help="what is within Monte Carlo error differs too")
    asked = parser.parse_args()
    members = asked.members or list(CASES)
    if unknown := set(members) - set(CASES):
        parser.error(f"no row in tests/golden/cases.py for {', '.join(sorted(unknown))}; it has {', '.join(CASES)}")
    warnings.simplefilter("ignore")  # short runs are poor, and say so
    began = time.perf_counter()
    if asked.verb == "record":
        for member in members:
            running.record(member)
        return 0
    differ = [member for member in members if not running.check(member, strict=asked.strict)]
    print(f"{len(members)} members in {time.perf_counter() - began:.0f} s; {', '.join(differ) or 'none'} differ")
    return int(bool(differ))


if __name__ == "__main__":
    sys.exit(main())
