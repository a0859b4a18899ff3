import pytest

from gauge.report import report


def test_report_of_an_odd_number_of_readings():
    assert report("3\n1\n8\n").splitlines() == [
        "mean       4.00",
        "median     3.00",
        "spread     7.00",
    ]


def test_report_of_an_even_number_of_readings():
    assert report("4\n1\n9\n2\n").splitlines() == [
        "mean       4.00",
        "median     3.00",
        "spread     8.00",
    ]


def test_no_readings():
    with pytest.raises(ValueError, match="no readings"):
        report("# nothing\n")
