"""The posterior of partitions: exact against all partitions of small documents, and what a fit says of it."""

import contextlib
import itertools
import math
import re
import signal
import types
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize

import consilience as cs
from consilience.errors import InputError, UnsupportedRequest
from consilience.evaluation.chains import spans_of
from consilience.models.mpa import BetaPrior, Priors
from consilience.models.mpa.partition import annotators, field, moves, sampler
from consilience.models.mpa.partition.annotators import BIN_LATER, BIN_NEW, FIRST_RANK
from consilience.models.mpa.partition.state import PROPERTY, linked, texts_of
from consilience.models.truth.chains import NEW, NOTHING, follow_links


def mentions(rows):
    columns = ("document_id", "mention_id", "annotator_id", "annotation")
    rows = [row if len(row) == 4 else ("d", *row) for row in rows]
    return cs.read_mentions(dict(zip(columns, zip(*rows, strict=True), strict=True)))


def random_mentions(seed, number, told=()):
    """Return mentions with three random labels each."""
    random = np.random.default_rng(seed)
    rows = []
    for mention in range(number):
        others = [f"m{one}" for one in range(number) if one != mention]
        labels = ["DN", *(f"DO({one})" for one in others[:mention])]
        labels += [label for kind in told for label in ([kind] if kind == "NR" else [f"PR({one})" for one in others])]
        for annotator in random.permutation(4)[:3]:
            rows.append((f"m{mention}", f"a{annotator}", labels[random.integers(len(labels))]))
    return mentions(rows)


def held(data, *, any_antecedent=True, rungs=3, field=(0.5, 1.0, 0.3, 0.4, -0.5, -0.3), seed=0):
    """Return a problem and a chain of random parameters that are not learned."""
    random, number = np.random.default_rng(seed), data.num_mentions
    texts = texts_of(data, "ignore")
    problem = sampler.problem_of(texts, any_antecedent=any_antecedent, rungs=rungs)._replace(
        learns=False, certain=np.zeros(number, bool)
    )
    chain = sampler.begun(problem, np.full(number, NEW))
    own = chain.parameters
    base = random.dirichlet(np.ones(own.base.shape[1]), size=4) * (own.base > 0)
    own = own._replace(
        sensitivity=random.uniform(0.3, 0.8, own.sensitivity.shape), nearest=0.7 if any_antecedent else 1.0,
        base=3 * base / base.sum(axis=1, keepdims=True), field=np.array(field),
    )  # fmt: skip
    return problem, chain._replace(parameters=own)


def every_link(texts, number, nothing):
    """Yield the links of all partitions, and of all that some mentions may be instead."""
    def partitions(left, blocks):
        if not left:
            yield [list(block) for block in blocks]
            return
        for block in blocks:
            block.append(left[0])
            yield from partitions(left[1:], blocks)
            block.pop()
        yield from partitions(left[1:], [*blocks, [left[0]]])

    told = [texts.target[(texts.of == one) & (texts.target <= PROPERTY)].tolist() for one in range(number)]
    apart = [[0, *([NOTHING] if nothing else []), *own] for own in told]
    for kind in itertools.product(*apart):
        for blocks in partitions([one for one in range(number) if kind[one] == 0], []):
            link = np.array(kind)
            for block in blocks:
                link[block] = [NEW, *block[:-1]]
            yield tuple(link.tolist())


def exact(problem, chain, nothing=False):
    """Return the logarithm of the weight of every state."""
    texts = problem.texts
    known = annotators.given(chain.parameters, texts, problem.any)
    links = every_link(texts, len(texts.mention), nothing)
    return {link: weight_of(linked(np.array(link), texts)[None], texts, known).item() for link in links}


def weight_of(places, texts, known):
    """Return the logarithms of the weights of documents, on each rung."""
    prior, likelihood = np.empty((2, len(places), len(texts.first) - 1))
    moves.weigh(places, known, prior, likelihood)
    return prior + likelihood


def largest_z(problem, chain, weights, sweeps, sweep=sampler.sweep, seed=1):
    """Return how far shares of states, on each rung, are from their probabilities, in standard errors of batches."""
    random, states = np.random.default_rng(seed), list(weights)
    place, log_weight = {state: at for at, state in enumerate(states)}, np.array(list(weights.values()))
    counts = np.zeros((20, problem.rungs, len(states)))
    for number in range(sweeps):
        chain = sweep(random, chain, problem)
        for rung, link in enumerate(chain.place["link"].tolist()):
            counts[number * 20 // sweeps, rung, place[tuple(link)]] += 20 / sweeps
    found, worst = counts.mean(axis=0), 0.0
    for rung, exponent in enumerate(chain.exponents):
        share = np.exp(exponent * (log_weight - log_weight.max()))
        share /= share.sum()
        error = np.maximum(counts[:, rung].std(axis=0, ddof=1), np.sqrt(share * (1 - share) * 20 / sweeps)) / 20**0.5
        worst = max(worst, float(np.max(np.abs(found[rung] - share)[share > 0.01] / error[share > 0.01])))
    return worst


# Six mentions have 203 partitions; the last case has mentions that refer to nothing.
@pytest.mark.parametrize(
    ("number", "told", "options"),
    [
        (6, (), {"rungs": 1}),
        (5, (), {"rungs": 3}),
        (5, (), {"any_antecedent": False}),
        (4, ("NR", "PR"), {}),
    ],
)
def test_draws_are_those_of_all_partitions(number, told, options):
    problem, chain = held(random_mentions(3, number, told), **options)
    weights = exact(problem, chain, "NR" in told)
    assert largest_z(problem, chain, weights, 4_000) < 4.5


@pytest.mark.parametrize(
    ("field", "together", "first", "second", "alone"),
    [
        ((0, 0, 0, 0), 1 / 5, 1 / 5, 2 / 5, 2 / 5),
        ((1, 0, 0, 0), 1 / 3, 1 / 6, 1 / 2, 1 / 3),
        ((0, 1, 0, 0), 1 / 4.5, 1 / 9, 2 / 4.5, 2 / 4.5),
        ((0, 0, math.log(2), 0), 1 / 11, 2 / 11, 3 / 11, 6 / 11),
    ],
)
@pytest.mark.parametrize("rungs", [1, 3])
def test_worked_numbers_of_the_prior(field, together, first, second, alone, rungs):
    # Three mentions of which nobody said anything; the third: all together, to the first, to the second, new.
    texts = texts_of(mentions([(f"m{one}", "a", "DN") for one in range(3)]), "ignore")
    texts = texts._replace(
        mention=texts.mention.copy(), target=texts.target[:0], of=texts.of[:0], votes=texts.votes[:0],
        row_candidate=texts.row_candidate[:0], row_annotator=texts.row_annotator[:0], num_annotators=1,
    )  # fmt: skip
    texts.mention["end"] = texts.mention["begin"]
    problem = sampler.problem_of(texts, any_antecedent=True, rungs=rungs)._replace(learns=False)
    chain = sampler.begun(problem, np.full(3, NEW))
    chain = chain._replace(parameters=chain.parameters._replace(field=np.array([*field, 0.0, 0.0])))
    weights = exact(problem, chain)
    total = sum(map(math.exp, weights.values()))
    share = {state: math.exp(weight) / total for state, weight in weights.items()}
    assert share[-1, 0, 1] == pytest.approx(together)
    for link, wanted in ((0, first), (1, second), (-1, alone)):
        assert sum(own for state, own in share.items() if state[2] == link) == pytest.approx(wanted)
    assert largest_z(problem, chain, weights, 2_000) < 4.5


def test_worked_number_of_errors():
    # Of four labels that are equally likely as errors two were given, twice and once: 1 / 60.
    rows = [(f"m{one}", "a0", "DN") for one in range(5)]
    rows += [("m5", f"a{one}", label) for one, label in enumerate(["DO(m4)", "DO(m4)", "DO(m3)"])]
    problem, chain = held(mentions(rows))
    base = np.zeros_like(chain.parameters.base)
    base[:, BIN_LATER] = 7.0  # there are no mentions after the last one
    base[0, FIRST_RANK : FIRST_RANK + 4] = base[1, [BIN_NEW, *range(FIRST_RANK, FIRST_RANK + 3)]] = 1.0
    own = chain.parameters._replace(base=base, sensitivity=np.full_like(chain.parameters.sensitivity, 0.5))
    known, place = annotators.given(own, problem.texts, True), chain.place[0]
    found = moves.log_mention(5, NEW, 0, place, known) - 3 * math.log(0.5)
    assert found == pytest.approx(math.log(1 / 60))
    sparse = moves.log_mention(5, 2, 1, place, known) - 3 * math.log(0.5)     # DN, and ranks 1 to 3 without m2
    assert sparse == pytest.approx(math.log(1 / 60))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, None), ({"method": "gibbs"}, None), ({"coreference": "links"}, ""), ({"method": "cavi"}, "use method="),
        ({"decisions": "joint"}, "leave out decisions="), ({"author": 1}, "leave out author="),
        ({"priors": Priors(sensitivity=BetaPrior(2.0, 1.0))}, "leave out priors="),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")
def test_partitions_are_the_default_where_they_can_be(options, said):
    fit = cs.fit("mpa", random_mentions(1, 6), **{"max_steps": 3, **options})
    assert ("link" in fit.posterior.hidden) == (said is None)
    notes = [note.words() for note in fit.findings() if "one by one" in note.text]
    assert len(notes) == bool(said)
    assert said in "".join(notes) if said else True


@pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")
def test_labels_of_items_are_fitted_as_before():
    fit = cs.fit("mpa", random_mentions(1, 6).to_annotations(), max_steps=3)
    assert fit.method == "cavi"
    assert not [note for note in fit.findings() if "one by one" in note.text]


def test_the_field_is_where_the_likelihood_of_the_choices_and_its_prior_are_largest():
    random, sizes = np.random.default_rng(0), [3, 4, 2, 5]
    features, begin = random.normal(size=(sum(sizes), len(field.START))), np.cumsum([0, *sizes[:-1]])
    own = begin + random.integers(0, sizes)

    def loss(value):
        chosen = features[own] @ value - np.logaddexp.reduceat(features @ value, begin)
        return ((value - field.START) ** 2).sum() / (2 * field.FREE**2) - chosen.sum()

    found = field._most_probable(field.START, features, begin, own)
    np.testing.assert_allclose(found, optimize.minimize(loss, field.START, tol=1e-10).x, atol=1e-4)


def test_a_setting_that_has_no_part_is_refused():
    data = random_mentions(1, 4)
    for options, words in (
        ({"decisions": "joint"}, "decisions has no part"), ({"method": "cavi"}, "no posterior of chains"),
        ({"method": "nuts"}, "a sampler of its own"),
        ({"priors": Priors(sensitivity=BetaPrior(2.0, 1.0))}, "priors have no part"),
    ):  # fmt: skip
        with pytest.raises(UnsupportedRequest, match=words):
            cs.fit("mpa", data, coreference="partition", **options)
    with pytest.raises(UnsupportedRequest, match="read_mentions"):
        cs.fit("mpa", data.to_annotations(), coreference="partition")


@pytest.fixture(scope="module")
def crowd():
    random = np.random.default_rng(5)
    entity = random.integers(30, size=160)
    document, place = np.arange(160) // 80, np.arange(160)
    key = cs.Chains.from_spans(document, place, place, entity + 30 * document, documents=["one", "two"])
    return cs.simulate_mentions(key, seed=3)


@pytest.mark.parametrize("any_antecedent", [True, False])
def test_what_a_move_weighs_is_the_whole_weight(crowd, any_antecedent):
    # At a very large exponent a move takes the best choice: were a change of the weight left out, one would lower it.
    problem, chain = held(crowd, any_antecedent=any_antecedent, rungs=1)
    texts, random = problem.texts, np.random.default_rng(0)
    known, places, last = annotators.given(chain.parameters, texts, any_antecedent), chain.place, -np.inf
    for _ in range(4):
        for mention in random.permutation(len(texts.mention)):
            moves.sweep(random, np.array([mention]), np.array([1e7]), places, known)
            now = weight_of(places, texts, known)
            assert (now >= last - 1e-7).all()
            last = now
    again, first = linked(places[0]["link"], texts), places[0]["ordinal"] == 0
    for name, where in (
        *((name, slice(None)) for name in ("link", "following", "entity", "ordinal")), ("size", first),
        ("entities", np.unique(texts.mention["low"])),
    ):  # fmt: skip
        np.testing.assert_array_equal(again[name][where], places[0][name][where])


def in_python(*changes):
    """Return the moves in plain Python, with changes of their source."""
    source = Path(moves.__file__).read_text()
    for old, new in changes:
        assert old in source
        source = source.replace(old, new)
    own = types.ModuleType("plain_moves")
    exec(compile(re.sub("@(inner|machine_code)\n", "", source), "plain_moves", "exec"), own.__dict__)
    return own


def test_plain_python_draws_the_same(monkeypatch):
    problem, chain = held(random_mentions(3, 6, ("NR", "PR")))
    compiled, random = chain, np.random.default_rng(1)
    for _ in range(10):
        compiled = sampler.sweep(random, compiled, problem)
    monkeypatch.setattr(sampler, "moves", in_python())
    random = np.random.default_rng(1)
    for _ in range(10):
        chain = sampler.sweep(random, chain, problem)
    np.testing.assert_array_equal(chain.place["link"], compiled.place["link"])


def test_where_an_entity_may_be_put_weighs_what_the_whole_does(monkeypatch):
    """In documents so long that labels far before share the open bin of ranks with all that is there."""
    problem, chain = held(random_mentions(2, 120), rungs=1)
    chain = sampler.begun(problem, np.maximum(np.arange(120) - 3, NEW))._replace(parameters=chain.parameters)
    known, plain, apart = annotators.given(chain.parameters, problem.texts, True), in_python(), []
    settle = plain._settle

    def checked(random, mention, number, exponent, most, row, given):
        found, whole = np.empty(number), np.empty(number)
        for at, choice in enumerate(given.choice[:number].tolist()):
            found[at] = plain._log_put(mention, *choice, most, row, given)
            there = row.copy()
            plain._put(mention, *choice, there, given)
            whole[at] = weight_of(there[None], problem.texts, known).item()
        apart.append(np.ptp(found - whole))
        settle(random, mention, number, exponent, most, row, given)

    monkeypatch.setattr(plain, "_settle", checked)
    plain.sweep(np.random.default_rng(0), np.arange(3, 120, 6), np.ones(1), chain.place, known)
    assert len(apart) > 20
    np.testing.assert_allclose(apart, 0, atol=1e-9)


MUTANTS = {
    "tails in any order": (" or link >= other or other_link >= mention:", ":"),
    "not put back": (
        "    _link(mention, link, row, given.mention)\n    _link(other, other_link, row, given.mention)\n", "",
    ),
    "put back anywhere": ("    _put(mention, choice[at, 0]", "    _put(mention, choice[0, 0]"),
    "annotations of the next forgotten": ("weight += _log_tail(later", "weight += 0 * _log_tail(later"),
    "sizes of tails forgotten": ("weight += given.by_size[size + own] - given.by_size[size]", "weight += 0"),
    "numbers of entities forgotten": ("+= 1 if link == -1 else -1", "+= 0"),
}  # fmt: skip


@contextlib.contextmanager
def processor_seconds(number):
    """Raise `TimeoutError` after so many: links that close to a ring have no end."""

    def late(*_):
        raise TimeoutError

    signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, number)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=() if name == "numbers of entities forgotten" else pytest.mark.slow) for name in MUTANTS
])  # fmt: skip
def test_mutants_are_found(name, monkeypatch):
    problem, chain = held(random_mentions(8, 5), rungs=1)   # by whose labels tails of any order are exchanged
    weights = exact(problem, chain)
    monkeypatch.setattr(sampler, "moves", in_python(MUTANTS[name]))
    try:
        with processor_seconds(8):
            found = largest_z(problem, chain, weights, 1_500)
    except (KeyError, IndexError, ValueError, RuntimeWarning, TimeoutError):
        return                                              # no partition any more
    assert found > 4.5


@pytest.mark.parametrize("move", ["_move", "_relink", "_stray", "_exchange"])
def test_draws_are_right_without_one_move(move, monkeypatch):
    problem, chain = held(random_mentions(3, 4), rungs=1)
    weights = exact(problem, chain)
    call = "(random, mention, exponent, row"
    without = in_python((f"  {move}{call}", f"  (lambda *_: None){call}"))
    monkeypatch.setattr(sampler, "moves", without)
    assert largest_z(problem, chain, weights, 1_500) < 4.5


@pytest.fixture(scope="module")
def fitted(crowd):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cs.fit("mpa", crowd, coreference="partition", draws=20, warmup=20)


@pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")
def test_a_run_that_was_interrupted_goes_on(fitted, crowd, tmp_path):
    run = {"coreference": "partition", "draws": 20, "warmup": 20, "checkpoint": tmp_path / "run"}
    part = cs.fit("mpa", crowd, **run, time_limit=0.0)
    assert str(part.result) == "interrupted"
    whole = cs.fit("mpa", crowd, **run, resume=True)
    for name in ("link", "field"):
        np.testing.assert_array_equal(whole.posterior.hidden[name], fitted.posterior.hidden[name])


def test_a_fit_says_the_same_in_labels_chains_and_partition(fitted, crowd):
    truth, silver = fitted.truth, cs.silver_chains(fitted)
    drawn = truth.chains.entities
    for draw in (0, 39):
        label = cs.silver_chains(fitted, draw=draw)
        np.testing.assert_array_equal(label.entity, drawn[draw])
        together = truth.clusters()[draw][:, None] == truth.clusters()[draw]
        np.testing.assert_array_equal(together, drawn[draw][:, None] == drawn[draw])
    link = silver.labels.antecedent[silver.label]
    assert len(np.unique(link[link >= 0])) == (link >= 0).sum()
    size = np.bincount(silver.entity)[silver.entity]
    np.testing.assert_array_equal(np.isnan(silver.together), size == 1)
    assert "together" in silver.table
    candidates = fitted.candidates()
    assert (candidates.phi >= candidates.probability - 1e-12).all()
    named = candidates.groupby("item").probability.sum()
    assert (named <= 1 + 1e-9).all()
    assert named.mean() > 0.9
    assert set(fitted.chains_prior().parameter) >= {"size", "recency", "new", "new_growth", "nearest"}
    grid = annotators.points(2)[:, 1]
    assert f"one of {grid[0]:.2f}, {grid[1]:.2f}, …, {grid[-1]:.2f};" in fitted.truth.beliefs["sensitivities"]
    assert "right links (λ)" in fitted.truth.beliefs
    assert "right links (λ)" not in annotators.beliefs(any_antecedent=False)
    assert fitted.annotators().specificity.isna().all()


def test_a_witness_who_knows_is_believed(fitted, crowd):
    key = spans_of(crowd, follow_links(np.asarray(crowd.gold_antecedent)[None])[0])
    alone = cs.evaluate(fitted, key, responses="ignored")
    asked = cs.evaluate(fitted, key, responses="annotator")
    assert asked.value > alone.value
    assert "knows no more than the crowd" in alone.title
    assert "the system is a witness" in asked.title
    both = {"key": key, "silver": cs.silver_chains(fitted).to_chains()}
    ranked = cs.compare(fitted, both, responses="annotator")
    own = ranked.table.set_index("system")
    np.testing.assert_allclose(own.value_alone["key"], alone.value)
    np.testing.assert_allclose(own.value_own_look["key"], asked.value)
    assert (own.value_own_look >= own.value_alone).all()
    assert "is a witness" in ranked.notes[0]
    assert "know no more than the crowd" in ranked.notes[0]
    assert 'responses="annotator"' in cs.compare(fitted, both).notes[0]
    strange = np.full(crowd.num_mentions, NEW)
    strange[100] = 7
    with pytest.raises(InputError, match="“.*” of document “two” to “.*” of document “one”"):
        fitted.truth.witnessed(strange)
    with pytest.raises(UnsupportedRequest, match="witness of chains alone"):
        cs.evaluate(cs.fit("majority-vote", crowd), key, responses="annotator")


def test_gold_links_stand(crowd):
    half = np.arange(crowd.num_mentions) % 2 == 0
    data = crowd.replace(
        gold_type=np.where(half, crowd.gold_type, -1), gold_antecedent=np.where(half, crowd.gold_antecedent, -1)
    )
    texts = texts_of(data, "use")
    problem = sampler.problem_of(texts, any_antecedent=True, rungs=2)
    random, chain = np.random.default_rng(0), sampler.start(np.random.default_rng(0), problem, 1)
    for _ in range(5):
        chain = sampler.sweep(random, chain, problem)
    link = chain.place["link"]
    np.testing.assert_array_equal(link[:, half], np.tile(np.asarray(crowd.gold_antecedent)[half], (2, 1)))
