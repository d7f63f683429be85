"""Pieces and piles: the same from one process and from several, from memory and from files."""

import os
from pathlib import Path

import numpy as np
import pytest

from consilience.errors import UnsupportedRequest
from consilience.models.block_linkage.workers import Piles, Workers


def scaled(arrays, piece, factor):
    return factor * arrays["numbers"][piece]


def piled(arrays, piece, piles):
    piles.add(piece % 2, arrays["numbers"][[piece]])
    return piece


def refused(arrays, piece):
    raise UnsupportedRequest("too many")


def killed(arrays, piece):
    os._exit(1)


@pytest.mark.parametrize("number", [1, 2])
def test_answers_come_in_the_order_of_the_pieces(number, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[3])  # other processes import this file, and take this path over
    with Workers(number) as workers:
        workers.share(numbers=np.arange(10.0))
        assert list(workers.map(scaled, [3, 1, 2], 2.0)) == [6, 2, 4]
        workers.share(numbers=np.arange(10.0) + 1)
        assert list(workers.map(scaled, [3, 1, 2], 2.0)) == [8, 4, 6]
        piles = workers.piles()
        assert list(workers.map(piled, range(10), piles)) == list(range(10))
        assert sorted(piles.take(1, float)) == [2, 4, 6, 8, 10]
        assert len(piles.take(1, float)) == 0
        with pytest.raises(UnsupportedRequest, match="too many"):
            list(workers.map(refused, [1]))
        if number > 1:
            with pytest.raises(UnsupportedRequest, match="a process ended before its work was done"):
                list(workers.map(killed, [1]))
        folder = workers.folder()
    assert not folder.exists()


@pytest.mark.parametrize("in_files", [False, True])
def test_a_pile_is_taken_whole_and_once(tmp_path, in_files):
    piles = Piles(tmp_path / "piles" if in_files else None)
    piles.add(3, np.array([5, 1], np.uint64))
    piles.add(13, np.array([7], np.uint64))
    piles.add(3, np.array([2**64 - 1], np.uint64))
    taken = piles.take(3, np.uint64)
    assert taken.dtype == np.uint64
    assert taken.tolist() == [5, 1, 2**64 - 1]
    assert piles.take(3, np.uint64).tolist() == []
    assert piles.take(13, np.uint64).tolist() == [7]


def test_no_files_are_left_when_a_piece_fails():
    workers = Workers()
    folder = workers.folder()
    with pytest.raises(UnsupportedRequest, match="too many"), workers:
        list(workers.map(refused, [1]))
    assert not folder.exists()
