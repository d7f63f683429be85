"""Tables that are written: what the module csv would write, however the lines are made."""

import csv
import io

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from consilience.printing import write_columns

TEXTS = st.sampled_from(["a", "Zoë", "r 1", "", "'"]) | st.text('ab ,";\r\n', max_size=3)
PLAIN = st.sampled_from(["a", "Zoë", "r 1", "", "'"])
CELLS = st.one_of(
    st.lists(PLAIN, min_size=3, max_size=3).map(lambda own: np.array(own, object)),
    st.lists(TEXTS, min_size=3, max_size=3).map(lambda own: np.array(own, object)),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3).map(np.array),
    st.lists(st.integers(-5, 10**9), min_size=3, max_size=3).map(np.array),
    st.lists(st.booleans(), min_size=3, max_size=3).map(np.array),
)


@given(st.lists(CELLS, min_size=1, max_size=4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_columns_are_written_as_csv_writes_them(tmp_path, columns):
    named = {f"c{place}": column for place, column in enumerate(columns)}
    write_columns(named, tmp_path / "table.csv", force=True)
    expected = io.StringIO(newline="")
    writer = csv.writer(expected)
    writer.writerow(named)
    writer.writerows(zip(*(column.tolist() for column in columns), strict=True))
    assert (tmp_path / "table.csv").read_bytes().decode() == expected.getvalue()
