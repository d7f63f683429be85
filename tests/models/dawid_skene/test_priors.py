"""What is said of priors."""

import consilience as cs
from consilience.data import Annotations


def test_a_flat_prior_that_outweighs_the_data_is_spoken_of(tmp_path):
    data = Annotations.from_codes([0, 0, 1], [0, 1, 0], [0, 1, 2])
    fit = cs.fit("dawid-skene", data)
    (note,) = (note for note in fit.notes() if "flat prior" in note)
    assert "counts as 18 annotations, more than the 3 of the data" in note
    fit.save(tmp_path / "fit")
    assert note in cs.load_fit(tmp_path / "fit").notes()
    assert not any("flat prior" in note for note in cs.fit("dawid-skene", data, method="em").notes())
    assert not any("flat prior" in note for note in cs.fit("dawid-skene", data, diagonal=3.0).notes())
