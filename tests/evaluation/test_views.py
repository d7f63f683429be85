from types import SimpleNamespace

import numpy as np
import pytest

from consilience.errors import UnsupportedRequest
from consilience.evaluation import views
from consilience.models.truth.partitions import DrawnPartitions
from consilience.models.truth.views import Views


def test_views_that_have_an_expert_are_counted():
    methods = dict.fromkeys(Views.__abstractmethods__)
    methods |= {"num_views": lambda self: np.array([2, 2, 3, 1]), "used_views": lambda self: np.array([0, 2])}
    truth = type("Few", (Views,), methods)()
    found = views.num_views(SimpleNamespace(truth=truth, method="cavi"))
    assert (found.value, found.point, found.interval) == (2, 2, (pytest.approx(1.075), pytest.approx(2.925)))
    assert found.table.to_dict("list") == {"views": [1, 2, 3], "probability": [0.25, 0.5, 0.25]}
    assert repr(found).startswith("number of views, cavi: 2.0 ± 0.8")
    with pytest.raises(UnsupportedRequest):
        views.num_views(DrawnPartitions(np.zeros((1, 2), int)))
