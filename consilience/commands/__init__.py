"""What each command does: read, call the library, print; one file a group of verbs.

Every function takes the parsed arguments. Input is looked at in the order of what it costs: names, folders and files
first, then the content of files, and only then JAX.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """What the command returns to the shell."""

    success = 0
    error = 1
    usage = 2
    poor = 3
    interrupted = 130
