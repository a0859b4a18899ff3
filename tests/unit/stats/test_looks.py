"""Levels of looks."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_modelbench.stats import Stage, e_process, look_alpha


def test_the_level_of_each_look() -> None:
    assert look_alpha(Stage.INTERIM, 3) == 0.001
    assert look_alpha(Stage.DECLARED, 30) == 0.05
    assert look_alpha(Stage.EXTENDED, 2) == 0.025
    assert look_alpha(Stage.INTERIM, 1, alpha=0.0005) == 0.0005
    with pytest.raises(ValueError, match="looks"):
        look_alpha(Stage.DECLARED, 0)


@given(st.integers(0, 40), st.integers(0, 40))
def test_the_e_value_is_the_mixed_likelihood_ratio(a_only: int, b_only: int) -> None:
    # B(a + 1/2, b + 1/2) / B(1/2, 1/2) by its recurrence, in exact fractions.
    ratio = Fraction(1)
    for i in range(a_only):
        ratio *= Fraction(2 * i + 1, 2 * (i + 1))
    for j in range(b_only):
        ratio *= Fraction(2 * j + 1, 2 * (a_only + j + 1))
    exact = float(ratio * 2 ** (a_only + b_only))
    result = e_process(a_only, b_only)
    assert result.e == pytest.approx(exact, rel=1e-10)
    assert result.decided is (exact >= 20)
    assert e_process(b_only, a_only).e == pytest.approx(exact, rel=1e-10)


def test_an_e_value_too_large_for_a_float_keeps_its_logarithm() -> None:
    result = e_process(4000, 0)
    assert result.e == math.inf
    assert result.decided
    assert 2700 < result.log_e < 2800


def test_counts_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="counts of cases"):
        e_process(-1, 3)
