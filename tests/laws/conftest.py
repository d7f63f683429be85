"""Which members the battery runs over."""

import pytest

from tests.laws.subjects import ITEMS, RECORDS, subject_of


@pytest.fixture(scope="session", params=[*ITEMS, *RECORDS])
def any_subject(request):
    """Return a member and its row."""
    return subject_of(request.param)


@pytest.fixture(scope="session", params=ITEMS)
def subject(request):
    """Return a member of items and their classes, and its row."""
    return subject_of(request.param)


@pytest.fixture(scope="session", params=RECORDS)
def record_subject(request):
    """Return a member that links records, and its row: the laws of items and their classes mean nothing to it."""
    return subject_of(request.param)
