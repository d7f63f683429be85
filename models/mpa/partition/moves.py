# mypy: allow-untyped-defs
"""Moves of a partition: one mention, the link of a tail, an exchange of tails.

A *tail* is a mention with all later ones of its entity. Every move leaves the tempered posterior of the document's
partition as it is, exactly:

* one mention is taken out and put into one of: a new entity, the entities of its candidates, those of mentions that
  have it as a candidate, and those of two mentions drawn without a look at the partition, for links that nobody named;
  or it is said not to refer, where anybody says so of any mention, or to be a property that somebody named. What there
  is to choose from does not depend on where the mention was; where that is not among it, it stays.
* a tail is linked to one of its first mention's candidates that is the last of its entity, or to nothing.
* a tail is cut off a link that nobody named, or linked so.
* two mentions that share a candidate exchange their tails, where both links are to earlier mentions of two entities.

Annotations of later mentions of an entity change with it, by the rank of their errors. A known link stays: no move
changes the link of a mention that is ``fixed``.

What machine code calls is in this file: numba keeps the code of a file while that stands, whatever it calls elsewhere.
"""

from __future__ import annotations

import math

from consilience.models.machine_code import inner, machine_code
from consilience.models.mpa.partition.annotations import (
    BIN_LATER,
    BIN_PROPERTY,
    ERROR,
    FIRST_RANK,
    LIMIT,
    NEAREST,
    OWN,
)  # fmt: skip

_AT_RANDOM = 2
"""Mentions of the document whose entities are offered to one that is moved, beside those that labels name."""


@machine_code
def sweep(random, visited, exponents, places, entities, given, work):
    """Try all moves at the visited mentions, on all rungs.

    Parameters
    ----------
    visited : codes of mentions, in the order of visits.
    exponents : shape ``(rung, document)``.
    places, entities : of `state.State`.
    work : `Work`.
    """
    for rung in range(len(exponents)):
        row, numbers = places[rung], entities[rung]
        for mention in visited:
            own = given.mention[mention]
            if own["fixed"]:
                continue
            exponent = exponents[rung, own["document"]]
            _move(random, mention, exponent, row, numbers, given, work)
            if row[mention]["link"] >= -1:
                _relink(random, mention, exponent, row, numbers, given, work)
                _stray(random, mention, exponent, row, numbers, given, work)
                _exchange(random, mention, exponent, row, given, work)


@machine_code
def energies(places, first, given, found, energy):
    """Set the logarithm of the weight of every rung and document; see `log_mention`."""
    for rung in range(len(energy)):
        row = places[rung]
        for document in range(energy.shape[1]):
            low, high = first[document], first[document + 1]
            total = log_prior(row, low, high, given)
            for mention in range(low, high):
                total += log_mention(mention, row[mention]["link"], row[mention]["ordinal"], row, given, found)
            energy[rung, document] = total


@inner
def kind_of(link):
    """Return the kind of a mention: new, old, NR or PR."""
    return 1 if link >= 0 else 0 if link == -1 else 2 if link == -2 else 3


@machine_code
def log_mention(mention, link, ordinal, row, given, found):
    """Return the log probability of the annotations of a mention.

    Parameters
    ----------
    link, ordinal : of the mention, as if it stood there.
    row : places of all mentions, `state.PLACE`.
    found : records `FOUND` to set, of all candidates, or none.
    """
    own = given.mention[mention]
    begin, end = own["begin"], own["end"]
    if begin == end:
        return 0.0
    kind = kind_of(link)
    others = mention - own["low"] - (0 if kind > 1 else ordinal if given.any else kind)
    whole = given.whole[kind, min(others, LIMIT)]
    if mention + 1 == own["high"]:
        whole -= given.base[kind, BIN_LATER]
    if whole <= 0:
        return 0.0  # nothing else could be said
    total, errors = given.wrong[mention, min(kind, 2)], 0
    before, passed, telling = (link if kind == 1 else -1), 0, len(found) > 0
    for place in range(begin, end):
        candidate = given.candidate[place]
        target, votes = candidate["target"], candidate["votes"]
        if target >= 0:
            while before > target:  # through the entity, back to the target
                passed += 1
                before = row[before]["link"] if given.any else -1
        if target == link or (target >= 0 and target == before):
            total += candidate["gain"]
            if passed > 0:
                total += votes * (given.other - given.log[ordinal - 1])
            elif target >= 0 and ordinal > 1 and given.any:
                total += votes * given.nearest
            if telling:
                found[place]["what"] = OWN if passed > 0 and target >= 0 else NEAREST
            continue
        if target > mention:
            its, available = BIN_LATER, own["high"] - mention - 1
        elif target >= 0:
            its = given.bins[mention - target - passed]
            available = min(others - given.lowest[its] + 1, given.width[its])
        elif target > -3:
            its, available = -1 - target, 1
        else:
            its, available = BIN_PROPERTY, own["high"] - own["low"] - (kind == 3)
        errors += votes
        if its >= FIRST_RANK and available == given.width[its]:
            total += given.rising[kind, its, votes]
        else:
            each = given.base[kind, its] / available
            for vote in range(votes):
                total += math.log(each + vote)
        if telling:
            found[place]["what"], found[place]["bin"], found[place]["available"] = ERROR, its, available
    for error in range(errors):
        total -= math.log(whole + error)
    return total


@machine_code
def log_prior(row, low, high, given):
    """Return the logarithm of the weight of the partition of the mentions of a document."""
    total, number = 0.0, 0
    for mention in range(low, high):
        link = row[mention]["link"]
        if link >= 0:
            total -= given.recency * given.log[mention - link]
        elif link == -1:
            number += 1
            total += given.by_size[row[mention]["size"]]
        elif link == -2:
            total += given.nothing
        else:
            total += given.of - given.log[high - low]
    return total + given.by_number[number]


@inner
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


@inner
def _log_tail(first, link, below, shift, most, row, given, work):
    """Return the log probability of what is said of a tail, where it depends on what is before it in the entity.

    Parameters
    ----------
    first, link : its first mention, -1 of none, and the link of that.
    below : mentions before this one may come and go: annotations that do not reach so far hold the same ranks.
    shift, most : by how much more mentions are before each of it than are now, and at most.
    """
    if first < 0:
        return 0.0
    held = row[first]["link"]
    row[first]["link"] = link
    total = log_mention(first, link, row[first]["ordinal"] + shift, row, given, work.none)
    mention, second = row[first]["following"] if given.any else -1, True
    while mention >= 0:
        ordinal = row[mention]["ordinal"]
        own = given.mention[mention]
        near = own["reach"] < below or mention - own["low"] - ordinal - most <= LIMIT
        # The second of a tail may have one earlier mention, or several.
        if near or second or _names_own(mention, row, given):
            total += log_mention(mention, row[mention]["link"], ordinal + shift, row, given, work.none)
        mention, second = row[mention]["following"], False
    row[first]["link"] = held
    return total


@inner
def _names_own(mention, row, given):
    """Return whether a label names a mention of the entity that is not the nearest: it shares with all of these."""
    own, link, entity = given.mention[mention], row[mention]["link"], row[mention]["entity"]
    if own["reach"] >= link:
        return False
    for place in range(own["begin"], own["end"]):
        target = given.candidate[place]["target"]
        if target < 0:
            return False
        if target < link and row[target]["entity"] == entity:
            return True
    return False


@inner
def _renamed(mention, entity, ordinal, row):
    """Say of a tail which entity it is of, and how many mentions are before; return how many it has."""
    number = 0
    while mention >= 0:
        row[mention]["entity"] = entity
        row[mention]["ordinal"] = ordinal + number
        number += 1
        mention = row[mention]["following"]
    return number


# ---- one mention ----


@inner
def _move(random, mention, exponent, row, numbers, given, work):
    own = given.mention[mention]
    link, after, entity = row[mention]["link"], row[mention]["following"], row[mention]["entity"]
    kind = kind_of(link)
    if after >= 0 and given.mention[after]["fixed"]:
        return
    alone = kind == 0 and after < 0
    # A choice: link, next mention, other mentions of the entity, and how many of these are before. The first is new.
    choice, weight = work.choice, work.weight
    _choose(choice, 0, -1, -1, 0, 0)
    number, current = 1, (0 if alone else -1)
    for place in range(own["begin"], own["end"]):
        target = given.candidate[place]["target"]
        if target >= 0:
            number = _offer(target, mention, number, row, given, work)
        elif target < -2:
            current = number if target == link else current
            _choose(choice, number, target, -1, 0, 0)
            number += 1
    for place in range(own["first_namer"], own["last_namer"]):
        number = _offer(given.namer[place], mention, number, row, given, work)
    for _ in range(_AT_RANDOM):
        other = own["low"] + int(random.random() * (own["high"] - own["low"]))
        number = _offer(other, mention, number, row, given, work)
    if given.unreferring:
        current = number if kind == 2 else current
        _choose(choice, number, -2, -1, 0, 0)
        number += 1
    if kind < 2 and not alone:
        current = work.seen[entity]
    for at in range(number):
        if choice[at, 2] > 0:
            work.seen[row[choice[at, 0] if choice[at, 0] >= 0 else choice[at, 1]]["entity"]] = -1
    if current < 0 or number == 1:
        return
    # Out of its entity.
    if link >= 0:
        row[link]["following"] = after
    if after >= 0:
        row[after]["link"] = link
    others = numbers[own["document"]] - alone
    for at in range(number):
        before, later, size, ordinal = choice[at, 0], choice[at, 1], choice[at, 2], choice[at, 3]
        log_weight = log_mention(mention, before, ordinal, row, given, work.none)
        if before < -1:
            log_weight += given.nothing if before == -2 else given.of - given.log[own["high"] - own["low"]]
            weight[at] = log_weight
            continue
        if size == 0:
            log_weight += given.by_number[others + 1] - given.by_number[others]
        else:
            log_weight += given.by_size[size + 1] - given.by_size[size]
            log_weight += _log_between(mention, before, later, -1 if at == current else 0, row, given, work)
        weight[at] = log_weight
    row[mention]["link"] = link
    at = _drawn(random, number, weight, exponent)
    if at == current:
        if link >= 0:
            row[link]["following"] = mention
        if after >= 0:
            row[after]["link"] = mention
        return
    _placed(mention, alone, choice[at], row, numbers, given)


@inner
def _log_between(mention, before, later, shift, row, given, work):
    """Return what a mention between two others of an entity, either -1 of none, adds to the log weight of the rest."""
    log_weight = 0.0
    if before >= 0:
        log_weight -= given.recency * given.log[mention - before]
    if later >= 0:
        log_weight -= _log_tail(later, before, mention + 1, shift, 1, row, given, work)
        row[mention]["link"] = before
        log_weight += _log_tail(later, mention, mention + 1, shift + 1, 1, row, given, work)
        log_weight -= given.recency * given.log[later - mention]
        if before >= 0:
            log_weight += given.recency * given.log[later - before]
    return log_weight


@inner
def _placed(mention, alone, chosen, row, numbers, given):
    """Put a mention where it was chosen to be, out of whose entity it was taken already."""
    link, after, entity = row[mention]["link"], row[mention]["following"], row[mention]["entity"]
    document = given.mention[mention]["document"]
    if alone:
        numbers[document] -= 1
    elif link >= 0:
        row[entity]["size"] -= 1
        _renamed(after, entity, row[mention]["ordinal"], row)
    elif link == -1:
        row[after]["size"] = row[entity]["size"] - 1
        _renamed(after, after, 0, row)
    before, later, size, ordinal = chosen[0], chosen[1], chosen[2], chosen[3]
    row[mention]["link"], row[mention]["following"] = before, later
    if before >= 0:
        row[before]["following"] = mention
    if later >= 0:
        row[later]["link"] = mention
    if before >= -1 and size == 0:
        numbers[document] += 1
    first = row[before]["entity"] if before >= 0 else mention
    row[first]["size"] = size + 1
    _renamed(mention, first, ordinal, row)


@inner
def _choose(choice, at, before, later, size, ordinal):
    choice[at, 0], choice[at, 1], choice[at, 2], choice[at, 3] = before, later, size, ordinal


@inner
def _offer(other, mention, number, row, given, work):
    """Add the entity of another mention to the choices, unless it is there or is none; return their number."""
    if other == mention or row[other]["link"] < -1:
        return number
    entity = row[other]["entity"]
    if work.seen[entity] >= 0:
        return number
    size = row[entity]["size"]
    if row[mention]["link"] >= -1 and entity == row[mention]["entity"]:
        before, later = row[mention]["link"], row[mention]["following"]
        ordinal, size = row[mention]["ordinal"], size - 1
    elif other < mention:
        before = other
        while 0 <= row[before]["following"] < mention:
            before = row[before]["following"]
        later, ordinal = row[before]["following"], row[before]["ordinal"] + 1
    else:
        later = other
        while row[later]["link"] > mention:
            later = row[later]["link"]
        before, ordinal = row[later]["link"], row[later]["ordinal"]
    if later >= 0 and given.mention[later]["fixed"]:
        return number
    work.seen[entity] = number
    _choose(work.choice, number, before, later, size, ordinal)
    return number + 1


# ---- tails ----


@inner
def _relink(random, mention, exponent, row, numbers, given, work):
    """Link a tail to the end of another entity, or to nothing."""
    choice, weight, own = work.choice, work.weight, given.mention[mention]
    link = row[mention]["link"]
    choice[0, 0] = -1
    number, current, most = 1, (0 if link < 0 else -1), 0
    for place in range(own["begin"], own["end"]):
        target = given.candidate[place]["target"]
        if target < 0 or target > mention or row[target]["link"] < -1:
            continue
        if row[target]["following"] >= 0 and target != link:
            continue
        current = number if target == link else current
        choice[number, 0] = target
        most = max(most, row[target]["ordinal"] + 1)
        number += 1
    if current < 0 or number == 1:
        return
    entities = numbers[own["document"]] + (link >= 0)       # where the tail is an entity
    for at in range(number):
        weight[at] = _log_linked(mention, choice[at, 0], most, entities, row, given, work)
    at = _drawn(random, number, weight, exponent)
    if at != current:
        _cut(mention, row)
        numbers[own["document"]] = entities - (at > 0)
        if at > 0:
            _join(mention, choice[at, 0], row)


@inner
def _log_linked(mention, target, most, entities, row, given, work):
    """Return the log weight of a tail that is linked to a mention, or to nothing.

    Parameters
    ----------
    most : of earlier mentions of the entity, whatever it is linked to.
    entities : of the document where it is linked to nothing.
    """
    head = row[mention]["ordinal"]
    tail, before = row[row[mention]["entity"]]["size"] - head, 0
    if target >= 0:
        before = row[target]["ordinal"] + 1
    weight = _log_tail(mention, target, mention, before - head, most - head, row, given, work)
    if target < 0:
        return weight + given.by_number[entities] - given.by_number[entities - 1] + given.by_size[tail]
    weight += given.by_size[before + tail] - given.by_size[before]
    return weight - given.recency * given.log[mention - target]


@inner
def _stray(random, mention, exponent, row, numbers, given, work):
    """Cut a tail off a link that nobody named, or link it so: to a mention d before with probability ∝ 1 / d."""
    own, link = given.mention[mention], row[mention]["link"]
    earlier, target = mention - own["low"], link
    if earlier == 0:
        return
    whole = given.harmonic[earlier]
    if link < 0:
        threshold, low, high = random.random() * whole, 0, earlier
        while high - low > 1:
            middle = (low + high) // 2
            if given.harmonic[middle] <= threshold:
                low = middle
            else:
                high = middle
        target = mention - high
        if row[target]["link"] < -1 or row[target]["following"] >= 0:
            return
    for place in range(own["begin"], own["end"]):
        if given.candidate[place]["target"] == target:
            return
    most, entities = row[target]["ordinal"] + 1, numbers[own["document"]] + (link >= 0)
    gain = _log_linked(mention, target, most, entities, row, given, work)
    gain -= _log_linked(mention, -1, most, entities, row, given, work)
    gain = exponent * gain + given.log[mention - target] + math.log(whole)
    if math.log(1 - random.random()) < (gain if link < 0 else -gain):
        numbers[own["document"]] = entities - (link < 0)
        if link < 0:
            _join(mention, target, row)
        else:
            _cut(mention, row)


@inner
def _cut(mention, row):
    """Make a tail an entity."""
    link, head, entity = row[mention]["link"], row[mention]["ordinal"], row[mention]["entity"]
    if link >= 0:
        row[link]["following"], row[mention]["link"], row[entity]["size"] = -1, -1, head
        row[mention]["size"] = _renamed(mention, mention, 0, row)


@inner
def _join(mention, target, row):
    """Link an entity to the last mention of another, an earlier one."""
    entity = row[target]["entity"]
    row[mention]["link"], row[target]["following"] = target, mention
    row[entity]["size"] += _renamed(mention, entity, row[target]["ordinal"] + 1, row)


@inner
def _exchange(random, mention, exponent, row, given, work):
    """Exchange the tails of a mention and of another one that has a candidate in common with it."""
    own = given.mention[mention]
    if own["begin"] == own["end"]:
        return
    target = given.candidate[own["begin"] + int(random.random() * (own["end"] - own["begin"]))]["target"]
    if target < 0:
        return
    first, last = given.mention[target]["first_namer"], given.mention[target]["last_namer"]
    other = given.namer[first + int(random.random() * (last - first))]
    link, other_link = row[mention]["link"], row[other]["link"]
    entity, other_entity = row[mention]["entity"], row[other]["entity"]
    if given.mention[other]["fixed"] or other_link < -1 or link == other_link or entity == other_entity:
        return
    if link >= other or other_link >= mention:
        return
    head, other_head = row[mention]["ordinal"], row[other]["ordinal"]
    tail, other_tail = row[entity]["size"] - head, row[other_entity]["size"] - other_head
    most, shift = max(head, other_head), other_head - head
    gain = given.by_size[other_head + tail] + given.by_size[head + other_tail]
    gain -= given.by_size[head + tail] + given.by_size[other_head + other_tail]
    for one, now, then, by, at in (
        (mention, link, other_link, shift, head), (other, other_link, link, -shift, other_head),
    ):  # fmt: skip
        gain += given.recency * (given.log[one - now if now >= 0 else 0] - given.log[one - then if then >= 0 else 0])
        gain += _log_tail(one, then, one, by, most - at, row, given, work)
        gain -= _log_tail(one, now, one, 0, most - at, row, given, work)
    if math.log(1 - random.random()) < exponent * gain:
        _cut(mention, row)
        _cut(other, row)
        if other_link >= 0:
            _join(mention, other_link, row)
        if link >= 0:
            _join(other, link, row)
