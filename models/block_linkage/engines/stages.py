"""What linkage asks of an engine, one text for all: keys, pairs that share one, their log odds, and all partitions.

Functions of batches get all they need by `functools.partial`, so that an engine can send them to other processes.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from consilience.arrays import Float, Int
from consilience.models.block_linkage.engines import Engine
from consilience.models.block_linkage.enumeration import enumerate_blocks
from consilience.models.block_linkage.join import CandidatePairs, pair_log_odds
from consilience.models.block_linkage.keys import MOST_OF_KEY, JoinRule, Keys, entered_keys, unions
from consilience.models.block_linkage.likelihood import Likelihood
from consilience.models.block_linkage.parameters import Parameters

_ENTERED = pa.schema([("key", pa.int64()), ("record", pa.int32()), ("lacks", pa.int16()), ("lacking", pa.int16())])
_PAIRS = pa.schema([("first", pa.int32()), ("second", pa.int32()), ("log_odds", pa.float64())])
_LISTED = pa.schema(
    [("part", pa.int64()), ("evidence", pa.float64()), ("probability", pa.list_(pa.float32()))]
)
_SELF_JOIN = """
SELECT DISTINCT a.record AS first, b.record AS second FROM {keys} a JOIN {keys} b ON a.key = b.key
WHERE a.record < b.record
"""
_LACKING_TOGETHER = "AND (a.lacks | b.lacks) = a.lacking"  # where there is a join for each set of fields
# Groups of keys with some equal bits are counted first: hardly any has so many, and there are fewer of them than keys.
_COMMON = """
SELECT k.key, count(*) AS records FROM {keys} k
JOIN (SELECT key & {mask} AS low FROM {keys} GROUP BY key & {mask} HAVING count(*) > {most}) c ON k.key & {mask} = c.low
GROUP BY k.key HAVING count(*) > {most}
"""
_SOMEBODY_LACKS = "AND bit_or(k.lacks) = min(k.lacking)"
_OTHERS = "SELECT k.* FROM {keys} k LEFT JOIN {common} c ON k.key = c.key WHERE c.key IS NULL"


def candidates(
    engine: Engine,
    value: Int[np.ndarray, "field record"],
    rule: JoinRule,
    parameters: Parameters,
    likelihood: Likelihood,
    first_value: Int[np.ndarray, " fields_and_one"],
    threshold: float,
) -> CandidatePairs:
    """Return the pairs that share a key and have log odds above ``-threshold``; see `join`."""
    columns = {f"f{field}": codes for field, codes in enumerate(value)}
    records = engine.persist(engine.table(pa.table({"record": np.arange(value.shape[1], dtype=np.int32), **columns})))
    pairs, unseen = _shared_keys(engine, records, Keys.of(rule, first_value), unions(rule.lacking(value)))
    fields = range(len(value))
    own, other = (", ".join(f"{table}.f{field} AS {table}{field}" for field in fields) for table in "ab")
    both = engine.sql(
        f"SELECT p.first, p.second, {own}, {other} FROM {{pairs}} p JOIN {{records}} a ON p.first = a.record "
        "JOIN {records} b ON p.second = b.record", pairs=pairs, records=records,
    )  # fmt: skip
    compare = functools.partial(
        _compare, parameters=parameters, likelihood=likelihood, first_value=first_value, threshold=threshold
    )
    found = engine.collect(engine.map(both, compare, _PAIRS), ["first", "second"])
    first, second, log_odds = (found[name].to_numpy() for name in _PAIRS.names)
    return CandidatePairs(first, second, log_odds, unseen)


def _shared_keys(engine: Engine, records: Any, keys: Keys, lacking: list[int]) -> tuple[Any, int]:
    """Return rows of the pairs that share a key, and how many at most share one of too many records alone."""
    join, too_many, schema = _SELF_JOIN, _COMMON, _ENTERED
    if lacking == [0]:
        schema = pa.schema(list(_ENTERED)[:2])
    else:
        join, too_many = join + _LACKING_TOGETHER, too_many + _SOMEBODY_LACKS
    mask = (1 << max(_count(engine, records), 1).bit_length()) - 1
    statement = too_many.replace("{mask}", str(mask)).replace("{most}", str(MOST_OF_KEY))

    def entered(own: Keys) -> tuple[Any, Any]:
        rows = engine.persist(engine.map(records, functools.partial(_enter, keys=own, lacking=lacking), schema))
        return rows, engine.collect(engine.sql(statement, keys=rows), ["key"])

    rows, common = entered(keys)
    if not len(common):
        return engine.persist(engine.sql(join, keys=rows)), 0
    size = common["records"].to_numpy()
    unseen = int(size @ (size - 1)) // 2
    pairs = engine.sql(join, keys=engine.sql(_OTHERS, keys=rows, common=engine.table(common)))
    while len(common):
        keys = keys.extending(common["key"].to_numpy().view(np.uint64))
        rows, common = entered(keys)
    more = engine.persist(engine.sql(join, keys=rows))
    unseen -= _count(engine, more)
    both = engine.persist(engine.sql("SELECT * FROM {pairs} UNION SELECT * FROM {more}", pairs=pairs, more=more))
    total = _count(engine, records)
    return both, max(min(unseen, total * (total - 1) // 2 - _count(engine, both)), 0)


def _count(engine: Engine, rows: Any) -> int:
    return int(engine.collect(engine.sql("SELECT count(*) AS number FROM {rows}", rows=rows), ["number"])["number"][0])


def _enter(batch: Any, *, keys: Keys, lacking: list[int]) -> Iterator[Any]:
    """Yield who of a batch of records enters which keys."""
    record = batch["record"].to_numpy()
    value = np.stack([batch[f"f{field}"].to_numpy() for field in range(batch.num_columns - 1)])
    lacks = keys.rule.lacking(value)
    for sets in lacking:
        among = np.flatnonzero((lacks & ~np.int16(sets)) == 0)
        place, key = entered_keys(value[:, among], keys, sets)
        own = among[place]
        columns = {"key": key.view(np.int64), "record": record[own]}
        if lacking != [0]:
            columns |= {"lacks": lacks[own], "lacking": np.full(len(own), sets, np.int16)}
        yield pa.record_batch(columns)


def _compare(
    batch: Any, *, parameters: Parameters, likelihood: Likelihood, first_value: np.ndarray, threshold: float
) -> Iterator[Any]:
    """Yield the pairs of a batch that are above the threshold, with their log odds."""
    number = batch.num_rows
    value = np.stack([
        np.concatenate([batch[f"{table}{field}"].to_numpy() for table in "ab"]) for field in range(len(first_value) - 1)
    ])  # fmt: skip
    place = np.arange(number, dtype=np.int32)
    found = pair_log_odds(value, place, place + np.int32(number), parameters, likelihood, first_value)
    keep = found.log_odds > -threshold
    columns = [batch["first"].to_numpy()[keep], batch["second"].to_numpy()[keep], found.log_odds[keep]]
    yield pa.record_batch(columns, schema=_PAIRS)


def partitions(
    engine: Engine,
    values: Int[np.ndarray, "member field part"],
    value_share: Float[np.ndarray, " value"],
    distortion: Float[np.ndarray, " field"],
    size_term: Float[np.ndarray, " members"],
    likelihood: Likelihood,
    pair_terms: Any = None,
) -> tuple[Float[np.ndarray, "part partition"], Float[np.ndarray, " part"]]:
    """Return the probabilities of all partitions of parts of one size, and the log evidence of each part.

    The parameters are those of `enumerate_blocks`.
    """
    number = values.shape[2]
    columns = {"part": np.arange(number), "codes": _lists(values.astype(np.int32))}
    if pair_terms is not None:
        terms = np.asarray(pair_terms)
        columns["terms"] = _lists(terms.astype(np.int8) if terms.dtype == bool else terms)
    given = value_share, distortion, size_term, likelihood
    function = functools.partial(_enumerate, shape=values.shape[:2], given=given)
    found = engine.collect(engine.map(engine.table(pa.table(columns)), function, _LISTED), ["part"])
    probability = found["probability"].combine_chunks().flatten().to_numpy()
    return probability.reshape(number, -1), found["evidence"].to_numpy()


def _enumerate(batch: Any, *, shape: tuple[int, int], given: tuple[Any, Any, Any, Any]) -> Iterator[Any]:
    """Yield the probabilities of all partitions of the parts of a batch."""
    pair_terms = None
    if "terms" in batch.schema.names:
        pair_terms = _matrices(batch["terms"], (shape[0], shape[0]))
        pair_terms = pair_terms.astype(bool) if pair_terms.dtype == np.int8 else pair_terms
    found = enumerate_blocks(_matrices(batch["codes"], shape), *given, pair_terms)
    listed = _lists(np.asarray(found.partition, np.float32))
    yield pa.record_batch([batch["part"], np.asarray(found.log_evidence, float), listed], schema=_LISTED)


def _lists(values: np.ndarray) -> Any:
    """Return what the last axis holds for each place as an Arrow array of lists."""
    rows = np.moveaxis(values, -1, 0).reshape(values.shape[-1], -1)
    starts = np.arange(len(rows) + 1, dtype=np.int32) * rows.shape[1]
    return pa.ListArray.from_arrays(pa.array(starts), pa.array(rows.ravel()))


def _matrices(lists: Any, shape: tuple[int, int]) -> np.ndarray:
    """Return lists as matrices of a shape, one for each place of the last axis."""
    return np.moveaxis(lists.flatten().to_numpy().reshape(-1, *shape), 0, -1)
