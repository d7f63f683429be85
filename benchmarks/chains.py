"""Coreference as a posterior of partitions against its bars: `python -m benchmarks chains`."""

from __future__ import annotations

import numpy as np

from consilience.data.codes import object_array
from consilience.data.mentions import MENTION_TYPES, Mentions
from consilience.models.mpa.partition import sampler
from consilience.models.mpa.partition.annotations import BIN_NEW, FIRST_RANK, KINDS, LOWEST_RANK, WIDTH, bins_of_ranks
from consilience.models.mpa.partition.state import texts_of
from consilience.models.mpa.scenarios import SYNTHETIC_PROFILES, _shared_out
from consilience.models.truth.chains import NEW

_FIELD = np.array([0.5, 1.0, 0.2, 0.3, -2.0, -2.0])
_SWEEPS = 300
_NEAREST, _CONCENTRATION = 0.9, 8.0


def _mentions(link: np.ndarray, document: np.ndarray, rows: tuple[np.ndarray, np.ndarray, np.ndarray]) -> Mentions:
    """Return mentions of one token each; rows are mention, annotator and link."""
    mention, annotator, given = (np.asarray(one, np.int32) for one in rows)
    number, (new, old) = len(link), (MENTION_TYPES.index(one) for one in ("DN", "DO"))
    annotators, documents = int(annotator.max(initial=0)) + 1, int(document.max()) + 1
    return Mentions(
        mention=mention, annotator=annotator, type=np.where(given < 0, new, old).astype(np.int32), antecedent=given,
        gold_type=np.where(link < 0, new, old).astype(np.int32), gold_antecedent=link.astype(np.int32),
        document=document.astype(np.int32), start=np.arange(number, dtype=np.int32),
        end=np.arange(number, dtype=np.int32), num_annotations=len(mention), num_mentions=number,
        num_annotators=annotators, num_documents=documents,
        mentions=object_array(f"m{one}" for one in range(number)),
        annotators=object_array(f"a{one}" for one in range(annotators)),
        documents=object_array(f"d{one}" for one in range(documents)),
    )  # fmt: skip


def drawn_mentions(seed: int, documents: int = 50, length: int = 60) -> Mentions:
    """Return annotations drawn from the whole model: partitions, profiles, λ and errors."""
    random = np.random.default_rng(seed)
    document, number = np.repeat(np.arange(documents), length), documents * length
    nothing = np.zeros(0, int)
    texts = texts_of(_mentions(np.full(number, NEW), document, (nothing, nothing, nothing)), "ignore")
    empty = sampler.problem_of(texts, 1, np.full(number, NEW), any_antecedent=True, rungs=1)._replace(learns=False)
    chain = sampler.begun(empty, np.full(number, NEW))
    chain = chain._replace(parameters=chain.parameters._replace(field=_FIELD))
    for _ in range(_SWEEPS):
        chain = sampler.sweep(random, chain, empty)
    place = chain.state.place[0]
    link, entity = place["link"].astype(int), place["entity"].astype(int)
    annotator = _shared_out(number, 10, 20, random)
    skills = np.array(SYNTHETIC_PROFILES)[:, ::-1] - 0.05  # new, old; points of the grid
    skill = skills[random.integers(len(skills), size=annotator.max() + 1)]
    base = np.zeros((KINDS, len(LOWEST_RANK)))
    base[1:, BIN_NEW] = 0.3
    base[:, FIRST_RANK:] = 0.6 ** np.arange(len(LOWEST_RANK) - FIRST_RANK)
    base *= _CONCENTRATION / base.sum(axis=1, keepdims=True)
    given = np.empty(annotator.shape, int)
    for mention in range(number):
        low, kind = mention - mention % length, int(link[mention] >= 0)
        earlier = np.arange(mention - 1, low - 1, -1)
        own = entity[earlier] == entity[mention]
        other, members = earlier[~own], earlier[own][1:]
        bins = bins_of_ranks(length)[1 : len(other) + 1]
        each = base[kind, bins] / np.minimum(len(other) - LOWEST_RANK[bins] + 1, WIDTH[bins])
        labels = np.append(other, NEW) if kind else other
        each = np.append(each, base[1, BIN_NEW]) if kind else each
        right = random.random(annotator.shape[1]) < skill[annotator[mention], kind]
        right |= len(labels) == 0
        named = np.full(annotator.shape[1], link[mention])
        if len(members):
            far = random.random(len(named)) > _NEAREST
            named[far] = random.choice(members, far.sum())
        if len(labels):
            share = random.dirichlet(each)
            named[~right] = random.choice(labels, (~right).sum(), p=share)
        given[mention] = named
    rows = np.repeat(np.arange(number), annotator.shape[1]), annotator.ravel(), given.ravel()
    return _mentions(link, document, rows)


__all__ = ["drawn_mentions"]
