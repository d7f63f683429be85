# mypy: allow-untyped-defs
"""Moves of a partition: one mention, the link of a tail, an exchange of tails.

A *tail* is a mention with all later ones of its entity. Every move takes something out, which is then an entity by
itself, weighs where it may go, and puts it there or back; it leaves the tempered posterior of the document's partition
as it is, exactly:

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

import numpy as np

from consilience.models.machine_code import inner, machine_code
from consilience.models.mpa.partition import annotators

_AT_RANDOM = 2
"""Mentions of the document whose entities are offered to one that is moved, beside those that labels name."""


@machine_code
def sweep(random, visited, exponents, places, given):
    """Try all moves at the visited mentions, on all rungs.

    Parameters
    ----------
    visited : codes of mentions whose links are not known, in the order of visits.
    exponents : shape ``(rung,)``.
    places : records `state.PLACE`, shape ``(rung, mention)``.
    """
    for rung in range(len(exponents)):
        row, exponent = places[rung], exponents[rung]
        for mention in visited:
            _move(random, mention, exponent, row, given)
            if row[mention]["link"] >= -1:
                _relink(random, mention, exponent, row, given)
                _stray(random, mention, exponent, row, given)
                _exchange(random, mention, exponent, row, given)


@machine_code
def weigh(places, given, priors, likelihoods):
    """Set the logarithms of the prior weight and of the likelihood of every rung and document.

    What `log_mention` finds of candidates is, after it, that of the last rung.
    """
    for rung in range(len(places)):
        row, prior, likelihood = places[rung], priors[rung], likelihoods[rung]
        prior[:] = likelihood[:] = 0.0
        for mention in range(len(row)):
            own, place, link = given.mention[mention], row[mention], row[mention]["link"]
            document = own["document"]
            likelihood[document] += log_mention(mention, link, place["ordinal"], row, given)
            if link >= 0:
                prior[document] -= given.field[1] * given.log[mention - link]
            elif link == -1:
                prior[document] += given.by_size[place["size"]]
            else:
                prior[document] += _log_apart(link, mention, given)
            if own["last"]:
                prior[document] += given.by_number[row[own["low"]]["entities"]]


@inner
def _log_apart(link, mention, given):
    """Return what a mention that does not refer, or is a property, adds to the logarithm of the prior weight."""
    own = given.mention[mention]
    return given.field[4] if link == -2 else given.field[5] - given.log[own["high"] - own["low"]]


@machine_code
def log_mention(mention, link, ordinal, row, given):
    """Return the log probability of the annotations of a mention, and set what its candidates are.

    Parameters
    ----------
    link, ordinal : of the mention, as if it stood there.
    row : places of all mentions, `state.PLACE`.
    """
    own = given.mention[mention]
    begin, end = own["begin"], own["end"]
    if begin == end:
        return 0.0
    kind = 1 if link >= 0 else 0 if link == -1 else 2 if link == -2 else 3
    others = mention - own["low"] - (0 if kind > 1 else ordinal if given.any else kind)
    whole = given.whole[kind, min(others, annotators.LIMIT), own["last"]]
    if whole <= 0:
        return 0.0  # nothing else could be said
    total, errors = given.wrong[mention, min(kind, 2)], 0
    before, passed = (link if kind == 1 else -1), 0
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
            candidate["what"] = annotators.OWN if passed > 0 and target >= 0 else annotators.NEAREST
            continue
        its, available = candidate["bin"], candidate["available"]
        if 0 <= target < mention:
            its = annotators.BIN[min(mention - target - passed, annotators.LIMIT)]
            available = min(others - annotators.LOWEST_RANK[its] + 1, annotators.WIDTH[its])
            candidate["bin"], candidate["available"] = its, available
        elif its == annotators.BIN_PROPERTY:
            available -= kind == 3
        candidate["what"] = annotators.ERROR
        errors += votes
        if available == annotators.WIDTH[its]:
            total += given.rising[kind, its, votes]
        else:
            each = given.base[kind, its] / available
            for vote in range(votes):
                total += math.log(each + vote)
    for error in range(errors):
        total -= math.log(whole + error)
    return total


@inner
def _link(mention, link, row, mentions):
    """Give a tail another link: with -1 it is an entity. One mention that is an entity may also be in none.

    Of all that is given it takes ``mentions`` alone: a call that hands over many arrays takes as long as what it does.
    """
    held, entity, number = row[mention]["link"], mention, 0
    if held == link:
        return
    if held == -1 or link == -1:
        row[mentions[mention]["low"]]["entities"] += 1 if link == -1 else -1
    if held >= 0:
        row[held]["following"], row[row[mention]["entity"]]["size"] = -1, row[mention]["ordinal"]
    if link >= 0:
        row[link]["following"], entity, number = mention, row[link]["entity"], row[link]["ordinal"] + 1
    row[mention]["link"] = link
    while mention >= 0:
        row[mention]["entity"], row[mention]["ordinal"] = entity, number
        mention, number = row[mention]["following"], number + 1
    row[entity]["size"] = number


@inner
def _put(mention, before, later, row, given):
    """Put an entity between two neighbours of another, either -1 of none; one mention may also be in none."""
    if later >= 0:
        _link(later, mention, row, given.mention)
    _link(mention, before, row, given.mention)


@inner
def _log_put(mention, before, later, most, row, given):
    """Return the log weight of an entity that `_put` puts there; ``most`` may be before it, wherever it is put."""
    if before < -1:
        return log_mention(mention, before, 0, row, given) + _log_apart(before, mention, given)
    weight, own = _log_tail(mention, before, mention, most, row, given), row[mention]["size"]
    if before < 0 and later < 0:
        number = row[given.mention[mention]["low"]]["entities"]
        return weight + given.by_number[number] - given.by_number[number - 1] + given.by_size[own]
    size = row[row[max(before, later)]["entity"]]["size"]
    weight += given.by_size[size + own] - given.by_size[size]
    if before >= 0:
        weight -= given.field[1] * given.log[mention - before]
    if later >= 0:                                          # only a single mention has later ones
        weight -= _log_tail(later, before, mention, 1, row, given)
        row[mention]["link"], row[mention]["ordinal"] = before, row[later]["ordinal"]
        weight += _log_tail(later, mention, mention, 1, row, given)
        row[mention]["link"], row[mention]["ordinal"] = -1, 0
        weight -= given.field[1] * given.log[later - mention]
        if before >= 0:
            weight += given.field[1] * given.log[later - before]
    return weight


@inner
def _log_tail(first, link, changed, most, row, given):
    """Return the log probability of what is said of a tail, where it depends on what is before it in the entity.

    Mentions later than ``changed`` do not come and go: annotations that reach no further hold the same ranks. One that
    is as far back as the open bin of ranks shares it with all that are there, and these change. Before each of the tail
    may be ``most`` mentions more than are now.
    """
    held, shift = row[first]["link"], -row[first]["ordinal"]
    if link >= 0:
        shift += row[link]["ordinal"] + 1
    row[first]["link"] = link
    total = log_mention(first, link, row[first]["ordinal"] + shift, row, given)
    mention, second = row[first]["following"] if given.any else -1, True
    while mention >= 0:
        ordinal, now, own = row[mention]["ordinal"], row[mention]["link"], given.mention[mention]
        near = own["reach"] <= changed or mention - own["low"] - ordinal - most <= annotators.LIMIT
        open_bin = mention - own["reach"] >= annotators.LIMIT
        # The second of a tail may have one earlier mention, or several.
        if near or second or open_bin or _names_own(mention, row, given):
            total += log_mention(mention, now, ordinal + shift, row, given)
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
def _settle(random, mention, number, exponent, most, row, given):
    """Put an entity where one of the choices is, drawn by their weights."""
    choice, weight, total = given.choice, given.weight, 0.0
    for at in range(number):
        weight[at] = _log_put(mention, choice[at, 0], choice[at, 1], most, row, given)
    highest = weight[:number].max()
    for at in range(number):
        weight[at] = math.exp(exponent * (weight[at] - highest))
        total += weight[at]
    left, at = random.random() * total, 0
    while at < number - 1 and left >= weight[at]:
        left -= weight[at]
        at += 1
    _put(mention, choice[at, 0], choice[at, 1], row, given)


@inner
def _move(random, mention, exponent, row, given):
    """Move one mention. A choice is the two neighbours that it comes between, or what it is in no entity."""
    own, choice = given.mention[mention], given.choice
    link, after = row[mention]["link"], row[mention]["following"]
    if after >= 0 and given.mention[after]["fixed"]:
        return
    _link(mention, -1, row, given.mention)
    if after >= 0:
        _link(after, link, row, given.mention)
    choice[0], number = -1, 1
    for place in range(own["begin"], own["end"]):
        target = given.candidate[place]["target"]
        if target >= 0 or target < -2:
            number = _offer(target, mention, number, row, given)
    for place in range(own["first_namer"], own["last_namer"]):
        number = _offer(given.namer[place], mention, number, row, given)
    for _ in range(_AT_RANDOM):
        other = own["low"] + int(random.random() * (own["high"] - own["low"]))
        number = _offer(other, mention, number, row, given)
    if given.base[1, annotators.BIN_NOTHING] > 0:                      # somebody says so of some mention
        number = _offer(-2, mention, number, row, given)
    among = False
    for at in range(number):
        among |= choice[at, 0] == link and choice[at, 1] == after
        if choice[at, 0] >= 0 or choice[at, 1] >= 0:
            given.seen[row[max(choice[at, 0], choice[at, 1])]["entity"]] = 0
    if among and number > 1:
        _settle(random, mention, number, exponent, 1, row, given)
    else:
        _put(mention, link, after, row, given)


@inner
def _offer(other, mention, number, row, given):
    """Add to the choices the place in the entity of another mention, unless it is there; or a code of being in none."""
    if other < -1:
        given.choice[number, 0], given.choice[number, 1] = other, -1
        return number + 1
    entity = row[other]["entity"]
    if other == mention or row[other]["link"] < -1 or given.seen[entity]:
        return number
    before, later = -1, other
    if other < mention:
        before, later = other, row[other]["following"]
        while 0 <= later < mention:
            before, later = later, row[later]["following"]
    else:
        before = row[later]["link"]
        while before > mention:
            before, later = row[before]["link"], before
    if later >= 0 and given.mention[later]["fixed"]:
        return number
    given.seen[entity] = 1
    given.choice[number, 0], given.choice[number, 1] = before, later
    return number + 1


@inner
def _relink(random, mention, exponent, row, given):
    """Link a tail to the end of another entity, or to nothing."""
    choice, own, link = given.choice, given.mention[mention], row[mention]["link"]
    choice[0], number, among, most = -1, 1, link < 0, 0
    for place in range(own["begin"], own["end"]):
        target = given.candidate[place]["target"]
        if target < 0 or target > mention or row[target]["link"] < -1:
            continue
        if row[target]["following"] < 0 or target == link:
            among |= target == link
            choice[number, 0], choice[number, 1] = target, -1
            most = max(most, row[target]["ordinal"] + 1)
            number += 1
    if among and number > 1:
        _link(mention, -1, row, given.mention)
        _settle(random, mention, number, exponent, most, row, given)


@inner
def _stray(random, mention, exponent, row, given):
    """Cut a tail off a link that nobody named, or link it so: to a mention d before with probability ∝ 1 / d."""
    own, link = given.mention[mention], row[mention]["link"]
    earlier, target = mention - own["low"], link
    if earlier == 0:
        return
    whole = given.harmonic[earlier]
    if link < 0:
        target = mention - np.searchsorted(given.harmonic[:earlier], random.random() * whole, side="right")
        if row[target]["link"] < -1 or row[target]["following"] >= 0:
            return
    for place in range(own["begin"], own["end"]):
        if given.candidate[place]["target"] == target:
            return
    _link(mention, -1, row, given.mention)
    most = row[target]["ordinal"] + 1
    gain = _log_put(mention, target, -1, most, row, given) - _log_put(mention, -1, -1, most, row, given)
    gain = exponent * gain + given.log[mention - target] + math.log(whole)
    taken = math.log(1 - random.random()) < (gain if link < 0 else -gain)
    if taken == (link < 0):
        _link(mention, target, row, given.mention)


@inner
def _exchange(random, mention, exponent, row, given):
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
    if given.mention[other]["fixed"] or other_link < -1 or link == other_link:
        return
    if row[mention]["entity"] == row[other]["entity"] or link >= other or other_link >= mention:
        return
    most = max(row[mention]["ordinal"], row[other]["ordinal"])
    _link(mention, -1, row, given.mention)
    _link(other, -1, row, given.mention)
    gain = _log_put(mention, other_link, -1, most, row, given) - _log_put(mention, link, -1, most, row, given)
    gain += _log_put(other, link, -1, most, row, given) - _log_put(other, other_link, -1, most, row, given)
    if math.log(1 - random.random()) < exponent * gain:
        link, other_link = other_link, link
    _link(mention, link, row, given.mention)
    _link(other, other_link, row, given.mention)
