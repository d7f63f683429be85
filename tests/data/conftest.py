"""What tests of readers share."""

import pytest


@pytest.fixture(params=[False, True], ids=["as rows", "by Arrow"])
def either_reader(request, monkeypatch):
    """Run a test twice: with small files read as large ones are, by Arrow where it surely reads the same."""
    if request.param:
        monkeypatch.setattr("consilience.data.tables._LARGE_BYTES", 0)
        monkeypatch.setattr("consilience.data.tables._BLOCK_BYTES", 1000)
