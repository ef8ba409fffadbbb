import math
from datetime import timedelta

import pytest

from sessions_app.tools.durations import duration_seconds, parse_duration


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("250ms", 0.25),
        ("2s", 2),
        ("30m", 1800),
        ("1h", 3600),
        ("1d", 86400),
        ("1h30m", 5400),
        ("1.5 h", 5400),
        (" 10 ", 10),
        (2, 2),
        (0.5, 0.5),
        (0, 0),
        (timedelta(minutes=1), 60),
    ],
)
def test_a_duration_is_read_as_people_write_it(written, seconds):
    assert parse_duration(written) == timedelta(seconds=seconds)
    assert duration_seconds(written) == seconds


@pytest.mark.parametrize(
    "written",
    ["", "soon", "2 fortnights", "-1s", "1m x", "m", -1, True, None, [], math.inf, math.nan, 1e300],
)
def test_anything_else_is_refused_with_what_to_write(written):
    with pytest.raises(ValueError, match="write 250ms, 2s, 30m"):
        parse_duration(written)
