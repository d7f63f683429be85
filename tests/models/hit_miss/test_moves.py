"""Both ways to draw a partition against all partitions, one by one: where independent chains are after some sweeps."""

import functools

import jax
import numpy as np
import pytest
from scipy import stats

from consilience.models.hit_miss import blocks, split_merge
from consilience.models.hit_miss.blocks import draw_blocks_anew
from consilience.models.hit_miss.gibbs import MOVES
from tests.models.hit_miss.wrong_moves import NO_LABELS_IN_ACCEPTANCE, NO_WAYS_TO_SPLIT
from tests.models.mutants import planted

pytestmark = pytest.mark.usefixtures("double_precision")

NUM_CHAINS, SWEEPS, STEPS = 3_000, 6, 60  # sweeps of blocks, steps of splits and mergers
ALL, PARTS = (tuple(range(6)),), ((0, 1, 2), (3, 4))
SETTINGS = [
    {"prior": "labels"},
    {"prior": "labels", "components": PARTS},
    {"prior": "labels", "components": ((0, 1), (2, 3), (4, 5)), "restriction": "across"},
    {"prior": "partitions", "restriction": "across"},
    {"prior": "entities", "components": PARTS},
    {"prior": "entities", "restriction": "within", "largest": 2},
]


QUICK = SETTINGS[1:2]
"""The others take long to compile."""


def slowly(settings, quick):
    return [one if one in quick else pytest.param(one, marks=pytest.mark.slow) for one in settings]


def name(settings):
    return " ".join(map(str, settings.values()))


def final(tiny, moves, seed=0, num_chains=NUM_CHAINS):
    """Return the partitions in which chains are that started with all records apart."""
    most = max(split_merge.sizes(tiny.data))
    sweeps = SWEEPS if moves == "blocks" else -(-STEPS // (most * (most - 1) // 2))

    @jax.jit
    @jax.vmap
    def run(key):
        # Chains share all but their partitions, so that components are enumerated once for all of them.
        def step(number, cluster):
            state = tiny.state._replace(cluster=cluster)
            return MOVES[moves](jax.random.fold_in(key, number), state, tiny.data, prior=tiny.prior)

        return jax.lax.fori_loop(0, sweeps, step, tiny.state.cluster)

    return np.asarray(run(jax.random.split(jax.random.key(seed), num_chains)))


def p_value(cluster, tiny):
    """Return the p-value of a chi-square test; partitions that are rare are taken together."""
    place = {one.tobytes(): number for number, one in enumerate(tiny.partitions.astype(np.int64))}
    drawn = [place[one.tobytes()] for one in cluster.astype(np.int64)]  # of one that is not allowed there is none
    observed = np.bincount(drawn, minlength=len(tiny.partitions))
    expected = tiny.probability * len(cluster)
    rare = expected < 10
    observed, expected = (np.append(numbers[~rare], numbers[rare].sum()) for numbers in (observed, expected))
    kept = expected > 0
    return stats.chisquare(observed[kept], expected[kept]).pvalue


@pytest.mark.parametrize("moves", MOVES)
@pytest.mark.parametrize("settings", slowly(SETTINGS, QUICK), ids=name)
def test_partitions_are_as_frequent_as_they_are_probable(tiny, settings, moves):
    made = tiny(**settings)
    assert p_value(final(made, moves), made) > 1e-5


@pytest.mark.parametrize("settings", slowly(SETTINGS, QUICK), ids=name)
def test_partitions_are_drawn_that_no_chain_came_before(tiny, settings):
    made = tiny(**settings)
    draw = jax.jit(jax.vmap(functools.partial(draw_blocks_anew, state=made.state, data=made.data, prior=made.prior)))
    assert p_value(np.asarray(draw(jax.random.split(jax.random.key(1), NUM_CHAINS))), made) > 1e-5


@pytest.mark.slow
def test_single_precision_draws_the_same_partitions(tiny):
    with jax.enable_x64(False):
        made = tiny("labels", PARTS)
        for moves in MOVES:
            assert p_value(final(made, moves), made) > 1e-5


def test_equal_keys_give_equal_bits(tiny):
    made = tiny("labels", PARTS)
    for moves in MOVES:
        one, again, other = (final(made, moves, seed, 50) for seed in (3, 3, 4))
        assert one.tobytes() == again.tobytes() != other.tobytes()


def test_split_and_merger_of_one_pair_are_inverse(tiny):
    """The ratio of a split is the inverse of that of the merger back, also in what links add."""
    made = tiny("labels")
    where = split_merge.layout(made.data)
    records = split_merge.shown(
        made.data.value.T[where.member], made.state.value_share, made.state.distortion, made.data.field
    )
    one = records._replace(**{part: getattr(records, part)[0] for part in ("value", "log_share", "log_ratio")})
    parts = np.array([[1, 1, 1, 0, 0, 0], [1, 0, 1, 0, 0, 0], [0, 1, 0, 0, 0, 0]], bool)
    terms = np.zeros(7)
    gain = jax.jit(split_merge.log_ratio_of_split)(parts, where.conflict[0], one, terms)
    cluster = [made.partitions[i].tolist() for i in range(len(made.partitions))]
    together, apart = (made.probability[cluster.index(one)] for one in ([0, 0, 0, 3, 4, 5], [0, 1, 0, 3, 4, 5]))
    # One of two ways to split, and a second link that becomes one: 2! / 1!.
    np.testing.assert_allclose(gain + np.log(2), np.log(apart / together) + np.log(2), rtol=1e-10)


# ---- planted bugs ----


def no_factor_of_labels(right):
    def wrong(key, before, log_weight):
        return jax.vmap(lambda noise, own: (own + noise).argmax())(
            jax.random.gumbel(key, log_weight.shape), log_weight
        ).astype(before.dtype)

    return wrong


def all_components_at_once(right):
    """Each is drawn given the links that the others had, not those that they have by then."""

    def wrong(key, before, log_weight):
        own = np.arange(log_weight.shape[1])
        others = before.sum() - before
        factor = -jax.scipy.special.gammaln(others[:, None] + own + 1.0)
        return jax.random.categorical(key, log_weight + factor).astype(before.dtype)

    return wrong


def links_of_before(right):
    """All components are accepted with the number of links that there was before any of them moved."""

    def wrong(key, proposal, links, *, prior):
        log_uniform = -jax.random.exponential(key, proposal.log_ratio.shape)
        factor = -proposal.links * jax.numpy.log(links + (proposal.links > 0))
        takes = log_uniform < proposal.log_ratio + factor
        return takes, links + (takes * proposal.links).sum()

    return wrong


def true_values_copied_without_their_density(right):
    """As the published program: the true value is that of the first member, and how it was proposed does not count."""

    def marginals(inside, records):
        def of_set(inside):
            true = inside.argmax()
            share, ratio = records.log_share, records.log_ratio
            there = inside[:, None] & (records.value >= 0)
            same = there & (records.value == records.value[true])
            seen = records.value[true] >= 0
            total = (same * ratio + there * records.log_distortion).sum(axis=0)
            return jax.numpy.where(seen, total + share[true], 0.0).sum()

        return jax.vmap(of_set)(inside)

    return marginals


TWO_PARTS = ((0, 1), (2, 3, 4))
BUGS = {
    "no factor of labels": ("blocks", PARTS, (blocks, "draw_links", no_factor_of_labels)),
    "all components at once": ("blocks", TWO_PARTS, (blocks, "draw_links", all_components_at_once)),
    "no ways to split": ("split-merge", PARTS, NO_WAYS_TO_SPLIT),
    "no factor of labels in acceptance": ("split-merge", PARTS, NO_LABELS_IN_ACCEPTANCE),
    "links of before": ("split-merge", TWO_PARTS, (split_merge, "accepted", links_of_before)),
    "true values copied without their density": (
        "split-merge", PARTS, (split_merge, "log_marginals", true_values_copied_without_their_density)
    ),
}  # fmt: skip


@pytest.mark.parametrize("bug", slowly(BUGS, ["no factor of labels", "no ways to split"]))
def test_a_planted_bug_is_found(tiny, bug):
    moves, components, mutant = BUGS[bug]
    made = tiny("labels", components)
    with planted(*mutant):
        assert p_value(final(made, moves), made) < 1e-8
