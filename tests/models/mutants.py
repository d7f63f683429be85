"""One harness for hand-written samplers: the joint-distribution test passes them, and finds any one bug planted.

Every chain starts at values of the prior from which its data were drawn (Geweke 2004; see `evaluation.calibration`).
Sweeps of a correct sampler, and data drawn anew in between, leave the joint distribution as it is. A member is a row::

    MUTANTS = {"counts transposed": (gibbs, "concentrations", counts_transposed), …}
    test_the_sampler_passes, test_a_mutant_is_found = joint_tests(replicated(MODEL, PRIORS), MUTANTS)

A mutant is a module, the name of a function in it, and what makes the wrong function of the right one; without a module
(None) it is of the sweep itself, also where that is made by a function and stands in no module. It is planted
while the sweep is compiled and at no other time: start, new data and what is looked at stay right.
"""

import contextlib
import dataclasses
import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import pytest

from consilience.evaluation.calibration import joint_distribution_test, with_second_moments
from consilience.replications import Chain, replications_of

PASSES, FOUND = 4.5, 8.0
"""Largest |z| of a right sampler, and what a wrong one exceeds."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """A sampler among its chains; all but ``sweep`` work on all of them at once.

    Parameters
    ----------
    start : ``start(key)`` -> `Chain`, at the prior, with data of its own.
    redraw : ``redraw(key, chains)`` -> chains with data drawn anew.
    quantities : ``quantities(chains)`` -> dict of ``(chain,)``, the log likelihood among them.
    sweep : the sampler's ``sweep(key, state, problem)``; found again by its name, so that it may be a mutant too.
    num_chains, sweeps, rounds : how many chains, sweeps of a round, and rounds.
    together : whether chains are the items of one problem, which one call of the sweep moves.
    """

    start: Callable[[Any], Chain]
    redraw: Callable[[Any, Chain], Chain]
    quantities: Callable[[Chain], dict[str, Any]]
    sweep: Callable[..., Any]
    num_chains: int = 20_000
    sweeps: int = 10
    rounds: int = 4
    together: bool = False

    def moved(self, mutant=None):
        """Return the compiled sweeps of all chains, with a mutant planted."""
        module, name, own = sys.modules[self.sweep.__module__], self.sweep.__name__, self.sweep
        if mutant and mutant[0] is None:
            own, mutant, module = mutant[2](own), None, None

        def one(key, state, problem):
            sweep = getattr(module, name, own)
            step = lambda number, state: sweep(jax.random.fold_in(key, number), state, problem)  # noqa: E731
            return jax.lax.fori_loop(0, self.sweeps, step, state)

        @jax.jit
        def sweeps(key, chains):
            keys = key if self.together else jax.random.split(key, self.num_chains)
            with planted(*mutant) if mutant else contextlib.nullcontext():
                return (one if self.together else jax.vmap(one))(keys, *chains)

        return sweeps


@contextlib.contextmanager
def planted(module, name, wrong):
    """Put a wrong function in the place of the right one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, name, wrong(getattr(module, name)))
        yield


def given(change):
    """Return a mutant's ``wrong`` of a sweep that reads a problem changed by ``change(problem)``."""
    return lambda right: lambda key, state, problem: right(key, state, change(problem))


def replicated(member, priors, *, sizes=(), num_chains=20_000, sweeps=10, rounds=4, **settings):
    """Return a function that makes the `Case` of a member whose sampler draws data anew.

    Data sets have the sizes of `consilience.replications`, and ``sizes`` of what else the simulation asks for.
    """
    simulation = dataclasses.replace(member.simulation, sizes={**member.simulation.sizes, **dict(sizes)})
    member = dataclasses.replace(member, simulation=simulation)

    @functools.cache
    def make():
        own = replications_of(
            member, priors, settings, key=jax.random.key(0), sweeps=sweeps, warmup=0, draws=1, thinning=1
        )
        return Case(
            start=lambda key: own.start(jax.random.split(key, num_chains)),
            redraw=lambda key, chains: own.redraw(jax.random.split(key, num_chains), chains),
            quantities=own.quantities, sweep=member.engine("gibbs").sweep, num_chains=num_chains, sweeps=sweeps,
            rounds=rounds,
        )  # fmt: skip

    return make


def largest(case, seed=0, mutant=None):
    """Return the largest |z| of the quantities, their squares and products."""
    sweeps = case.moved(mutant)
    found = joint_distribution_test(
        jax.random.key(seed),
        lambda key: (case.start(key), None),
        lambda key, chains, _: chains._replace(state=sweeps(key, chains)),
        lambda key, chains, _: (case.redraw(key, chains), None),
        lambda chains, _: with_second_moments(
            {name: np.asarray(values, float) for name, values in case.quantities(chains).items()}
        ),
        rounds=case.rounds,
    )
    return found.largest


def joint_tests(make, mutants, *, quick=0):
    """Return the two tests of a sampler.

    Parameters
    ----------
    make : returns the `Case`.
    mutants : name -> (module, name of a function, ``wrong(right)``).
    quick : how many mutants, and with them the right sampler, a quick run tries: each has to be compiled anew.
    """
    slow, ids = pytest.mark.slow, list(mutants)

    @pytest.mark.parametrize("seed", [pytest.param(0, marks=() if quick else slow), pytest.param(1, marks=slow)])
    def passes(seed):
        assert largest(make(), seed) < PASSES

    @pytest.mark.parametrize("name", [pytest.param(name, marks=slow) if at >= quick else name
                                      for at, name in enumerate(ids)])  # fmt: skip
    def finds(name):
        assert largest(make(), mutant=mutants[name]) > FOUND

    return passes, finds
