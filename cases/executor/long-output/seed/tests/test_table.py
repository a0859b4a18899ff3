import pytest

from numerals.reading import value
from numerals.table import TABLE


@pytest.fixture
def numeral(number):
    return TABLE[number]


@pytest.mark.parametrize("number", range(1, 301))
def test_entry(numeral, number):
    assert value(numeral) == number
