"""Numbers as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_modelbench.stats import (
    Interval,
    format_interval,
    format_p,
    format_percent,
    format_points,
    format_points_interval,
    format_rate,
    mcnemar_exact,
    wilson,
)


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (mcnemar_exact(42, 25), "0.0498"),
        (mcnemar_exact(22, 10), "0.0501"),
        (mcnemar_exact(12, 2), "0.013"),
        (mcnemar_exact(6, 5), "1"),
        (mcnemar_exact(5, 0), "0.063"),
        (0.0009999, "<0.001"),
        (0.001, "0.001"),
        (0.0, "<0.001"),
        (0.5, "0.5"),
        (0.999, "0.999"),
        (0.04999999, "0.04999999"),
        (0.05, "0.05"),
    ],
)
def test_p(p: float, text: str) -> None:
    assert format_p(p) == text


def test_p_at_the_level_of_an_interim_look_and_below_it() -> None:
    assert format_p(0.0010004, 0.001) == "0.0010004"
    assert format_p(0.0009996, 0.001) == "<0.001"
    assert format_p(0.0007, 0.0005) == "0.0007"
    assert format_p(0.0003, 0.0005) == "<0.0005"


@given(st.floats(0, 1), st.sampled_from([0.05, 0.01, 0.001, 0.025, 0.05 / 3, 0.0001]))
def test_a_printed_p_never_contradicts_the_decision(p: float, alpha: float) -> None:
    text = format_p(p, alpha)
    if text.startswith("<"):
        assert p < float(text[1:]) <= alpha
    else:
        assert (float(text) < alpha) == (p < alpha)
        assert (float(text) == 1) == (p == 1)
        assert float(text) == pytest.approx(p, rel=0.06)


@pytest.mark.parametrize(
    ("share", "decimals", "text"),
    [
        (0.74, 0, "74"),
        (0.125, 0, "13"),
        (1, 0, "100"),
        (0, 1, "0"),
        (0.9991, 0, "99.9"),
        (0.9991, 1, "99.9"),
        (0.9996, 1, "99.96"),
        (0.0004, 0, "0.04"),
        (1e-9, 0, "0.0000001"),
        (0.5, 1, "50.0"),
        (None, 0, "-"),
    ],
)
def test_percent(share: float | None, decimals: int, text: str) -> None:
    assert format_percent(share, decimals) == text


@given(st.floats(0, 1), st.integers(0, 3))
def test_percent_claims_no_certainty(share: float, decimals: int) -> None:
    text = format_percent(share, decimals)
    assert (float(text) == 0) == (share == 0)
    assert (float(text) == 100) == (share == 1)
    assert "-" not in text
    assert float(text) == pytest.approx(share * 100, abs=0.51)


def test_rate_with_counts_and_interval() -> None:
    assert format_rate(37, 50, wilson(37, 50)) == "37/50 74% [60-84]"
    assert format_rate(20, 20, wilson(20, 20)) == "20/20 100% [84-100]"
    assert format_rate(0, 0, wilson(0, 0)) == "-"
    assert format_interval(wilson(997, 1000), 1) == "[99.1-99.9]"
    assert format_interval(wilson(997, 1000)) == "[99-99.9]"
    assert format_interval(None) == "-"


@pytest.mark.parametrize(
    ("difference", "text"),
    [(0.096, "+9.6"), (-0.096, "-9.6"), (0.0, "0"), (-0.0, "0"), (0.0002, "+0.02"), (None, "-")],
)
def test_points(difference: float | None, text: str) -> None:
    assert format_points(difference) == text


def test_the_end_at_a_margin_is_on_its_own_side() -> None:
    interval = Interval(-0.05004, 0.0, "")
    shown = format_points_interval(interval, apart_from=(0.0, -0.05))
    assert shown == "[-5.004 to 0]"
    assert format_points_interval(Interval(0.021, 0.17, "")) == "[+2.1 to +17.0]"
    assert format_points_interval(None) == "-"


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan")])
def test_numbers_that_cannot_be_are_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="not a p-value"):
        format_p(wrong)
    with pytest.raises(ValueError, match="not a share"):
        format_percent(wrong)
