"""Members in files that belong to no package, such as those of the contributor's page."""

import functools
import importlib.util
import sys
from pathlib import Path


@functools.cache
def load(file):
    """Import a file, relative to the repository; once, under its own name, as pickles need it."""
    path = Path(__file__).parents[1] / file
    specification = importlib.util.spec_from_file_location(path.stem, path)
    sys.modules[path.stem] = module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module
