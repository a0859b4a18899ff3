from timekit.duration import parse_duration


def test_seconds():
    assert parse_duration("1h2m3s") == 3723
    assert parse_duration(" 1H ") == 3600
