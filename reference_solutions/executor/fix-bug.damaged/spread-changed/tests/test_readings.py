import pytest

from gauge.readings import parse_readings


def test_numbers_comments_and_blank_lines():
    assert parse_readings("# height\n1.5\n\n 2\n") == [1.5, 2.0]


def test_a_line_that_is_no_number():
    with pytest.raises(ValueError, match="line 2"):
        parse_readings("1\ntwo\n")

