import pytest

BROKEN = ("minutes-as-hundred", "case-matters", "empty-is-zero", "any-order")


def test_each_unit_alone(solution):
    duration = solution.load("timekit.duration")
    assert duration.parse_duration("2h") == 7200
    assert duration.parse_duration("5m") == 300
    assert duration.parse_duration("90s") == 90
    assert duration.parse_duration("0s") == 0
    assert duration.parse_duration("120m") == 7200


def test_units_together(solution):
    duration = solution.load("timekit.duration")
    assert duration.parse_duration("1h2m3s") == 3723
    assert duration.parse_duration("1h5s") == 3605
    assert duration.parse_duration("2m10s") == 130
    assert duration.parse_duration("10h0m1s") == 36001


def test_white_space_and_upper_case(solution):
    duration = solution.load("timekit.duration")
    assert duration.parse_duration(" 1h  30m ") == 5400
    assert duration.parse_duration("2M 5S") == 125
    assert duration.parse_duration("1H2m3S") == 3723


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("  ", id="blank"),
        pytest.param("15", id="no-unit"),
        pytest.param("1h30", id="no-unit-at-the-end"),
        pytest.param("h", id="no-number"),
        pytest.param("3d", id="unknown-unit"),
        pytest.param("1h3d", id="unknown-unit-at-the-end"),
        pytest.param("-5s", id="sign"),
        pytest.param("1.5h", id="fraction"),
    ],
)
def test_refuses_what_is_no_duration(solution, text):
    duration = solution.load("timekit.duration")
    with pytest.raises(ValueError):
        duration.parse_duration(text)


def test_refuses_wrong_order_and_repeats(solution):
    duration = solution.load("timekit.duration")
    for text in ("5s1h", "3m1h", "1m2m", "1h2h", "1h5s2m"):
        with pytest.raises(ValueError):
            duration.parse_duration(text)


def test_refuses_space_within_a_part(solution):
    duration = solution.load("timekit.duration")
    for text in ("5 m", "1h 30 m", "1 0s"):
        with pytest.raises(ValueError):
            duration.parse_duration(text)


def test_what_was_there_still_works(solution):
    formatting = solution.load("timekit.formatting")
    assert formatting.format_duration(5400) == "1h30m"
    assert formatting.format_duration(0) == "0s"


def test_own_tests_tell_right_from_broken(solution):
    outcomes = solution.judge_tests(
        "tests/test_duration.py",
        implementations={name: f"implementations/{name}" for name in ("right", *BROKEN)},
    )
    assert outcomes == {"right": "passed"} | dict.fromkeys(BROKEN, "failed")
