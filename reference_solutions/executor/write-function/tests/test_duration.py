import pytest

from timekit.duration import parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2h", 7200),
        ("5m", 300),
        ("90s", 90),
        ("0s", 0),
        ("90m", 5400),
        ("1h2m3s", 3723),
        ("1h5s", 3605),
        (" 1h  30m ", 5400),
        ("1H30M5S", 5405),
    ],
)
def test_seconds(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "   ", "15", "3d", "5s1h", "1m2m", "-5s", "1.5h", "5 m", "1h30", "h"]
)
def test_refused(text):
    with pytest.raises(ValueError):
        parse_duration(text)
