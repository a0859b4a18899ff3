import pytest

from timekit.formatting import format_duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59, "59s"), (60, "1m"), (3600, "1h"), (5400, "1h30m"), (3725, "1h2m5s")],
)
def test_text(seconds, text):
    assert format_duration(seconds) == text


def test_negative():
    with pytest.raises(ValueError):
        format_duration(-1)
