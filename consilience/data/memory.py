"""Memory that was freed, given back to the system."""

from __future__ import annotations

import contextlib
import ctypes

# Of fewer rows there is nothing worth a call.
_MANY = 1 << 18


def release(num_rows: int) -> None:
    """Give memory back that was freed after work on so many rows: the C library would keep blocks of up to 32 MiB.

    Only glibc does it when it is asked; elsewhere nothing happens.
    """
    if num_rows >= _MANY:
        with contextlib.suppress(AttributeError, OSError, TypeError):
            ctypes.CDLL(None).malloc_trim(0)
