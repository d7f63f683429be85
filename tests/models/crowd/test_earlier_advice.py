"""What is said of priors."""

import json

import numpy as np
import numpyro.distributions as dist
import pytest

import consilience as cs
from consilience.data import Annotations
from consilience.inference.durable import text_digest, write_text
from consilience.models.dawid_skene import Priors

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")


def test_an_earlier_fit_says_what_it_said_of_priors_that_are_known_in_words_only(tmp_path):
    """Before notes were stored, what was said of the priors was an attribute, and the rest was asked anew."""
    data = Annotations.from_codes([0, 0, 1], [0, 1, 0], [0, 1, 2])
    flat = Priors(confusion=lambda data: dist.Dirichlet(np.ones(data.num_labels)).expand([data.num_labels]))
    fit = cs.fit("dawid-skene", data, flat, "cavi")
    fit.save(tmp_path / "fit")
    said = [note.words() for note in fit.findings()]
    assert [note.words() for note in cs.load_fit(tmp_path / "fit").findings()] == said
    text = json.loads((tmp_path / "fit" / "fit.json").read_text())
    del text["notes"], text["text_sha256"]
    text["attributes"]["advice"] = ["the prior is flat"]
    write_text(tmp_path / "fit" / "fit.json", {**text, "text_sha256": text_digest(text)})
    earlier = cs.load_fit(tmp_path / "fit")
    assert earlier.priors is None
    assert sorted(note.words() for note in earlier.findings()) == sorted([*said, "the prior is flat"])
    assert "advice" not in earlier.attributes
