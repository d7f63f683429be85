"""In which precision an ascent of `fit` runs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import consilience as cs
from consilience.errors import UnsupportedRequest
from consilience.inference import precision
from consilience.inference.precision import prepared_ascent
from consilience.models import member

ANNOTATIONS = cs.Annotations.from_codes([0, 0, 1, 1, 2, 2], [0, 1, 0, 1, 0, 1], [0, 0, 1, 1, 0, 1], num_labels=2)
SETTINGS = {"method": "cavi", "progress": False, "max_steps": 60}


@pytest.mark.parametrize(
    ("asked", "dtype"), [({}, "float64"), ({"dtype": "float32"}, "float32"), ({"dtype": "float64"}, "float64")]
)
def test_on_a_cpu_it_is_double_unless_single_is_asked_for(asked, dtype):
    with jax.enable_x64(False):
        fit = cs.fit("mace", ANNOTATIONS, **SETTINGS, **asked)
        assert fit.attributes["dtype"] == fit.describe()["dtype"] == dtype
        assert fit.posterior.probability.dtype == fit.posterior.value("guess").dtype == dtype
        # Nothing of it reaches what runs afterwards in JAX's own precision.
        assert jnp.result_type(float) == jnp.float32
        assert jnp.asarray(fit.posterior.probability).dtype == jnp.float32
        assert all(draws.dtype == np.float32 for draws in fit.samples(draws=3).values())


def test_a_user_who_has_switched_to_double_keeps_it():
    with jax.enable_x64(True):
        assert cs.fit("mace", ANNOTATIONS, **SETTINGS).attributes["dtype"] == "float64"
        assert cs.fit("mace", ANNOTATIONS, dtype="float32", **SETTINGS).posterior.probability.dtype == np.float32


def test_precisions_agree():
    single, double = (cs.fit("mace", ANNOTATIONS, dtype=dtype, **SETTINGS) for dtype in ("float32", "float64"))
    np.testing.assert_allclose(single.posterior.probability, double.posterior.probability, atol=1e-3)


# The state of this problem: of two annotators two numbers each, of each and the two labels one, of the labels one each;
# of the three items one a label; and the number of the step.
@pytest.mark.parametrize(("most", "dtype"), [(17, "float64"), (16, "float32"), (2, "float32")])
@pytest.mark.usefixtures("exact_sizes")
def test_a_large_state_is_single(monkeypatch, most, dtype):
    monkeypatch.setattr(precision, "MOST_IN_FLOAT64", most)
    mace = member("mace")
    with jax.enable_x64(False):
        problem, chosen = prepared_ascent(mace.engine("cavi"), mace.resolve(ANNOTATIONS), None)
    assert chosen == dtype
    arrays = [leaf for leaf in map(np.asarray, jax.tree.leaves(problem)) if leaf.size]
    floats = {leaf.dtype.name for leaf in arrays if leaf.dtype.kind == "f"}
    assert floats == {dtype}
    with jax.enable_x64(False):
        assert cs.fit("mace", ANNOTATIONS, **SETTINGS).attributes["dtype"] == dtype
        # Whoever asks for it gets it.
        assert cs.fit("mace", ANNOTATIONS, dtype="float64", **SETTINGS).attributes["dtype"] == "float64"


def test_another_type_or_another_method_is_refused():
    with pytest.raises(UnsupportedRequest, match="give 'float32' or 'float64'"):
        cs.fit("mace", ANNOTATIONS, dtype="float16")
    with pytest.raises(UnsupportedRequest, match="by gibbs does not"):
        cs.fit("mace", ANNOTATIONS, method="gibbs", dtype="float64")
    assert "dtype" not in cs.fit("majority-vote", ANNOTATIONS).attributes
