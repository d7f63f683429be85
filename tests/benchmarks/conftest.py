"""The benchmarks are a package of the checkout that is never installed: put its root on the path."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))
