# mypy: allow-untyped-defs
"""Moves of a partition: one mention, the link of a tail, an exchange of tails.

A *tail* is a mention with all later ones of its entity. Every move leaves the tempered posterior of the document's
partition as it is, exactly:

* one mention is taken out and put into one of: a new entity, the entities of its candidates, those of mentions that
  have it as a candidate, and those of two mentions drawn without a look at the partition, for links that nobody named;
  or it is said not to refer, where anybody says so of any mention, or to be a property that somebody named. What there
  is to choose from does not depend on where the mention was; where that is not among it, it stays.
* a tail is linked to one of its first mention's candidates that is the last of its entity, or to nothing.
* two mentions that share a candidate exchange their tails, where both links are to earlier mentions of two entities.

Annotations of later mentions of an entity change with it, by the rank of their errors. A known link stays: no move
changes the link of a mention that is ``fixed``.
"""

from __future__ import annotations

import math

from consilience.models.block_linkage.densities import machine_code
from consilience.models.mpa.partition.annotations import LIMIT, kind_of, log_mention
from consilience.models.mpa.partition.field import log_prior
from consilience.models.truth.chains import NEW, NOTHING

_AT_RANDOM = 2
"""Mentions of the document whose entities are offered to one that is moved, beside those that labels name."""


@machine_code
def sweep(random, visited, exponents, state, texts, given, work):
    """Try all three moves at the visited mentions, on all rungs.

    Parameters
    ----------
    visited : codes of mentions, in the order of visits.
    exponents : shape ``(rung, document)``.
    work : ``choice`` (place, 4), ``weight`` (place,) and ``seen`` (mention,), the last of -1.
    """
    for rung in range(len(exponents)):
        for mention in visited:
            exponent = exponents[rung, texts.document[mention]]
            _move(random, mention, exponent, rung, state, texts, given, work)
            if state.link[rung, mention] >= NEW and not texts.fixed[mention]:
                _relink(random, mention, exponent, rung, state, texts, given, work)
            if state.link[rung, mention] >= NEW and not texts.fixed[mention]:
                _exchange(random, mention, exponent, rung, state, texts, given)


@machine_code
def energies(state, texts, given, energy):
    """Set the logarithm of the weight of every rung and document."""
    for rung in range(len(energy)):
        links, ordinals = state.link[rung], state.ordinal[rung]
        for document in range(energy.shape[1]):
            low, high = texts.first[document], texts.first[document + 1]
            total = log_prior(links, state.size[rung], low, high, given)
            for mention in range(low, high):
                total += log_mention(mention, links[mention], ordinals[mention], links, texts, given)
            energy[rung, document] = total


@machine_code
def _drawn(random, number, weight, exponent):
    """Return which of some choices is drawn, from logarithms of weights."""
    highest, total = weight[0], 0.0
    for at in range(1, number):
        highest = max(highest, weight[at])
    for at in range(number):
        weight[at] = math.exp(exponent * (weight[at] - highest))
        total += weight[at]
    left, at = random.random() * total, 0
    while at < number - 1 and left >= weight[at]:
        left -= weight[at]
        at += 1
    return at


@machine_code
def _log_tail(first, link, below, shift, most, rung, state, texts, given):
    """Return the log probability of what is said of a tail, where it depends on what is before it in the entity.

    Parameters
    ----------
    first, link : its first mention, -1 of none, and the link of that.
    below : mentions before this one may come and go: annotations that do not reach so far hold the same ranks.
    shift, most : by how much more mentions are before each of it than are now, and at most.
    """
    if first < 0:
        return 0.0
    links, ordinals = state.link[rung], state.ordinal[rung]
    held = links[first]
    links[first] = link
    total = log_mention(first, link, ordinals[first] + shift, links, texts, given)
    mention = state.following[rung, first] if given.any else -1
    while mention >= 0:
        own = ordinals[mention]
        if texts.reach[mention] < below or texts.position[mention] - own - most <= LIMIT:
            total += log_mention(mention, links[mention], own + shift, links, texts, given)
        mention = state.following[rung, mention]
    links[first] = held
    return total


@machine_code
def _renamed(mention, entity, ordinal, rung, state):
    """Say of a tail which entity it is of, and how many mentions are before; return how many it has."""
    number = 0
    while mention >= 0:
        state.entity[rung, mention] = entity
        state.ordinal[rung, mention] = ordinal + number
        number += 1
        mention = state.following[rung, mention]
    return number


# ---- one mention ----


@machine_code
def _move(random, mention, exponent, rung, state, texts, given, work):
    links, following, entities = state.link[rung], state.following[rung], state.entity[rung]
    if texts.fixed[mention]:
        return
    low = texts.first[texts.document[mention]]
    high = texts.first[texts.document[mention] + 1]
    link, after, entity, kind = links[mention], following[mention], entities[mention], kind_of(links[mention])
    if after >= 0 and texts.fixed[after]:
        return
    alone = kind < 2 and link < 0 and after < 0
    # A choice: link, next mention, other mentions of the entity, and how many of these are before. The first is new.
    choice, weight = work.choice, work.weight
    _choose(choice[0], NEW, -1, 0, 0)
    number, current = 1, (0 if alone else -1)
    for place in range(texts.begin[mention], texts.begin[mention + 1]):
        target = texts.target[place]
        if target >= 0:
            number, current = _offer(target, mention, number, current, rung, state, texts, work)
        elif target < NOTHING:
            current = number if target == link else current
            _choose(choice[number], target, -1, 0, 0)
            number += 1
    for place in range(texts.first_namer[mention], texts.first_namer[mention + 1]):
        number, current = _offer(texts.namer[place], mention, number, current, rung, state, texts, work)
    for place in range(_AT_RANDOM):
        other = low + int(random.random() * (high - low))
        number, current = _offer(other, mention, number, current, rung, state, texts, work)
    if texts.unreferring:
        current = number if kind == 2 else current
        _choose(choice[number], NOTHING, -1, 0, 0)
        number += 1
    for at in range(number):
        if choice[at, 0] >= NEW and choice[at, 2] > 0:
            other = choice[at, 0] if choice[at, 0] >= 0 else choice[at, 1]
            work.seen[entities[other]] = -1
    if current < 0 or number == 1:
        return
    # Out of its entity.
    if kind < 2:
        if link >= 0:
            following[link] = after
        if after >= 0:
            links[after] = link
    others = state.entities[rung, texts.document[mention]] - alone
    for at in range(number):
        before, later, size, ordinal = choice[at, 0], choice[at, 1], choice[at, 2], choice[at, 3]
        log_weight = log_mention(mention, before, ordinal, links, texts, given)
        if before < NEW:
            weight[at] = log_weight + (given.nothing if before == NOTHING else given.of - given.log[high - low])
            continue
        if size == 0:
            log_weight += given.by_number[others + 1] - given.by_number[others]
        else:
            log_weight += given.by_size[size + 1] - given.by_size[size]
            if before >= 0:
                log_weight -= given.recency * given.log[mention - before]
            if later >= 0:
                own = -1 if at == current else 0
                log_weight -= _log_tail(later, before, mention + 1, own, 1, rung, state, texts, given)
                links[mention] = before
                log_weight += _log_tail(later, mention, mention + 1, own + 1, 1, rung, state, texts, given)
                log_weight -= given.recency * given.log[later - mention]
                if before >= 0:
                    log_weight += given.recency * given.log[later - before]
        weight[at] = log_weight
    links[mention] = link
    at = _drawn(random, number, weight, exponent)
    if at == current:
        if kind < 2:
            if link >= 0:
                following[link] = mention
            if after >= 0:
                links[after] = mention
        return
    # Its old entity closes, and the new one opens.
    if kind < 2 and not alone:
        size = state.size[rung, entity] - 1
        state.size[rung, entity] = 0
        if link >= 0:
            _renamed(after, entity, state.ordinal[rung, mention], rung, state)
            state.size[rung, entity] = size
        else:
            _renamed(after, after, 0, rung, state)
            state.size[rung, after] = size
    elif alone:
        state.size[rung, mention] = 0
        state.entities[rung, texts.document[mention]] -= 1
    before, later, size, ordinal = choice[at, 0], choice[at, 1], choice[at, 2], choice[at, 3]
    links[mention], following[mention] = before, later
    if before < NEW:
        entities[mention], state.ordinal[rung, mention] = mention, 0
        return
    if size == 0:
        state.entities[rung, texts.document[mention]] += 1
    if before >= 0:
        following[before] = mention
    if later >= 0:
        links[later] = mention
    first = entities[before] if before >= 0 else mention
    if before < 0 and later >= 0:
        state.size[rung, entities[later]] = 0
    state.size[rung, first] = size + 1
    _renamed(mention, first, ordinal, rung, state)


@machine_code
def _choose(choice, before, later, size, ordinal):
    choice[0], choice[1], choice[2], choice[3] = before, later, size, ordinal


@machine_code
def _offer(other, mention, number, current, rung, state, texts, work):
    """Add the entity of another mention to the choices, unless it is there or is none; return their number too."""
    links, following, ordinals = state.link[rung], state.following[rung], state.ordinal[rung]
    if other == mention or links[other] < NEW:
        return number, current
    entity = state.entity[rung, other]
    if work.seen[entity] >= 0:
        return number, current
    size, own = state.size[rung, entity], entity == state.entity[rung, mention] and links[mention] >= NEW
    if own:
        before, later, ordinal, size = links[mention], following[mention], ordinals[mention], size - 1
    elif other < mention:
        before = other
        while following[before] >= 0 and following[before] < mention:
            before = following[before]
        later, ordinal = following[before], ordinals[before] + 1
    else:
        later = other
        while links[later] > mention:
            later = links[later]
        before, ordinal = links[later], ordinals[later]
    if later >= 0 and texts.fixed[later]:
        return number, current
    work.seen[entity] = number
    _choose(work.choice[number], before, later, size, ordinal)
    return number + 1, (number if own else current)


# ---- tails ----


@machine_code
def _relink(random, mention, exponent, rung, state, texts, given, work):
    """Link a tail to the end of another entity, or to nothing."""
    links, following, ordinals, sizes = state.link[rung], state.following[rung], state.ordinal[rung], state.size[rung]
    choice, weight = work.choice, work.weight
    link, entity, document = links[mention], state.entity[rung, mention], texts.document[mention]
    choice[0, 0] = NEW
    number, current, most = 1, (0 if link < 0 else -1), 0
    for place in range(texts.begin[mention], texts.begin[mention + 1]):
        target = texts.target[place]
        if target < 0 or target > mention or links[target] < NEW or (following[target] >= 0 and target != link):
            continue
        current = number if target == link else current
        choice[number, 0] = target
        most = max(most, ordinals[target] + 1)
        number += 1
    if current < 0 or number == 1:
        return
    head = ordinals[mention]
    tail = sizes[entity] - head
    entities = state.entities[rung, document] + (link >= 0)     # where the tail is an entity
    for at in range(number):
        target = choice[at, 0]
        before = ordinals[target] + 1 if target >= 0 else 0
        weight[at] = _log_tail(mention, target, mention, before - head, most - head, rung, state, texts, given)
        if target < 0:
            weight[at] += given.by_number[entities] - given.by_number[entities - 1] + given.by_size[tail]
        else:
            weight[at] += given.by_size[before + tail] - given.by_size[before]
            weight[at] -= given.recency * given.log[mention - target]
    at = _drawn(random, number, weight, exponent)
    if at != current:
        _cut(mention, rung, state)
        state.entities[rung, document] = entities
        if at > 0:
            _join(mention, choice[at, 0], rung, state)
            state.entities[rung, document] -= 1


@machine_code
def _cut(mention, rung, state):
    """Make a tail an entity."""
    link = state.link[rung, mention]
    if link < 0:
        return
    head, entity = state.ordinal[rung, mention], state.entity[rung, mention]
    state.following[rung, link], state.link[rung, mention], state.size[rung, entity] = -1, NEW, head
    state.size[rung, mention] = _renamed(mention, mention, 0, rung, state)


@machine_code
def _join(mention, target, rung, state):
    """Link an entity to the last mention of another, an earlier one."""
    entity = state.entity[rung, target]
    state.size[rung, mention] = 0
    state.link[rung, mention], state.following[rung, target] = target, mention
    state.size[rung, entity] += _renamed(mention, entity, state.ordinal[rung, target] + 1, rung, state)


@machine_code
def _exchange(random, mention, exponent, rung, state, texts, given):
    """Exchange the tails of a mention and of another one that has a candidate in common with it."""
    links, ordinals = state.link[rung], state.ordinal[rung]
    begin, number = texts.begin[mention], texts.begin[mention + 1] - texts.begin[mention]
    if number == 0:
        return
    target = texts.target[begin + int(random.random() * number)]
    if target < 0:
        return
    first, number = texts.first_namer[target], texts.first_namer[target + 1] - texts.first_namer[target]
    other = texts.namer[first + int(random.random() * number)]
    link, other_link = links[mention], links[other]
    if (
        texts.fixed[other] or other_link < NEW or link == other_link or link >= other or other_link >= mention
        or state.entity[rung, mention] == state.entity[rung, other]
    ):  # fmt: skip
        return
    sizes, entity, other_entity = state.size[rung], state.entity[rung, mention], state.entity[rung, other]
    head, other_head = ordinals[mention], ordinals[other]
    tail, other_tail = sizes[entity] - head, sizes[other_entity] - other_head
    most, shift = max(head, other_head), other_head - head
    gain = (
        given.by_size[other_head + tail] + given.by_size[head + other_tail]
        - given.by_size[head + tail] - given.by_size[other_head + other_tail]
    )  # fmt: skip
    for one, now, then in ((mention, link, other_link), (other, other_link, link)):
        gain += given.recency * (given.log[one - now if now >= 0 else 0] - given.log[one - then if then >= 0 else 0])
    for one, now, then, by, at in (
        (mention, link, other_link, shift, head), (other, other_link, link, -shift, other_head),
    ):  # fmt: skip
        gain += _log_tail(one, then, one, by, most - at, rung, state, texts, given)
        gain -= _log_tail(one, now, one, 0, most - at, rung, state, texts, given)
    if math.log(1 - random.random()) < exponent * gain:
        _cut(mention, rung, state)
        _cut(other, rung, state)
        if other_link >= 0:
            _join(mention, other_link, rung, state)
        if link >= 0:
            _join(other, link, rung, state)
