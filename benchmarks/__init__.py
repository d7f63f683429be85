"""Benchmarks: the tables and figures of papers on public data, and races against peers; `python -m benchmarks`.

They run from a checkout and are not part of the installed package. Each writes what it measured, with the machine and
the versions, to ``benchmarks/results/``. The measured figures are never asserted in tests: a race is a ratio to a peer
in the same run.
"""
