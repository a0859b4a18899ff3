from pathlib import Path

import pytest

ORIGINAL = Path(__file__).parent / "original"


def test_the_reported_failure_is_gone(solution):
    report = solution.load("gauge.report")
    assert report.report("4\n1\n9\n2\n").splitlines() == [
        "mean       4.00",
        "median     3.00",
        "spread     8.00",
    ]


@pytest.mark.parametrize(
    ("readings", "expected"),
    [
        ([1.0, 2.0], 1.5),
        ([7.0, -1.0], 3.0),
        ([5.0, 1.0, 4.0, 2.0, 3.0, 0.0], 2.5),
        ([2.0, 2.0, 2.0, 9.0], 2.0),
        ([8.0, 6.0, 7.0, 5.0, 3.0, 0.0, 9.0, 1.0], 5.5),
    ],
    ids=["two", "two-falling", "six", "ties", "eight"],
)
def test_median_of_an_even_number(solution, readings, expected):
    summary = solution.load("gauge.summary")
    assert summary.median(readings) == expected


def test_median_of_an_odd_number(solution):
    summary = solution.load("gauge.summary")
    assert summary.median([4.0]) == 4.0
    assert summary.median([9.0, 1.0, 5.0]) == 5.0
    assert summary.median([5.0, 1.0, 4.0, 2.0, 3.0]) == 3.0


def test_median_of_nothing_is_refused(solution):
    summary = solution.load("gauge.summary")
    with pytest.raises(ValueError):
        summary.median([])


def test_the_list_is_not_changed(solution):
    script = (
        "from gauge.summary import median; "
        "readings = [3.0, 1.0, 2.0, 0.0]; median(readings); print(readings)"
    )
    ended = solution.run(["python", "-c", script])
    assert ended.status == 0
    assert ended.stdout.strip() == "[3.0, 1.0, 2.0, 0.0]"


def test_the_other_numbers_are_kept(solution):
    summary = solution.load("gauge.summary")
    assert summary.mean([1.0, 2.0, 6.0]) == 3.0
    assert summary.spread([4.0, -1.0, 2.0]) == 5.0


@pytest.mark.parametrize("name", ["test_readings", "test_report"])
def test_the_tests_are_untouched(solution, name):
    assert solution.files[f"tests/{name}.py"] == (ORIGINAL / f"{name}.txt").read_bytes()
