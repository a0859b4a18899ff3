"""Intervals of one proportion."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_modelbench.stats import Interval, clopper_pearson, jeffreys, jeffreys_raw, wilson
from pytest_modelbench.stats.proportion import normal_quantile, student_quantile


def ends(interval: Interval | None) -> tuple[float, float]:
    assert interval is not None
    return interval.low, interval.high


@st.composite
def counts(draw: st.DrawFn) -> tuple[int, int]:
    cases = draw(st.integers(1, 3000))
    return draw(st.integers(0, cases)), cases


@pytest.mark.parametrize(
    ("passes", "cases", "low", "high"),
    [
        (0, 20, 0, 0.1611),
        (20, 20, 0.8389, 1),
        (1, 1, 0.2065, 1),
        (12, 16, 0.5050, 0.8982),
        (37, 50, 0.6045, 0.8413),
    ],
)
def test_wilson_has_width_at_both_ends(passes: int, cases: int, low: float, high: float) -> None:
    assert ends(wilson(passes, cases)) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(
    ("passes", "cases", "low", "high"),
    [(0, 20, 0, 0.1166), (20, 20, 0.8834, 1), (1, 1, 0.1467, 1), (12, 16, 0.5093, 0.9092)],
)
def test_jeffreys_has_conventional_ends(passes: int, cases: int, low: float, high: float) -> None:
    assert ends(jeffreys(passes, cases)) == pytest.approx((low, high), abs=5e-5)


def test_raw_jeffreys_reaches_neither_end() -> None:
    assert ends(jeffreys_raw(0, 10)) == pytest.approx((4.8e-5, 0.217), rel=0.01)


@pytest.mark.parametrize("method", [wilson, jeffreys, clopper_pearson])
def test_outer_ends_are_exactly_0_and_1_at_every_size(method: type) -> None:
    for cases in range(1, 400):
        low, high = ends(method(0, cases))
        assert (str(low), high < 1) == ("0.0", True)
        low, high = ends(method(cases, cases))
        assert (low > 0, str(high)) == (True, "1.0")


@pytest.mark.parametrize("method", [wilson, jeffreys, jeffreys_raw, clopper_pearson])
def test_no_cases_give_no_estimate(method: type) -> None:
    assert method(0, 0) is None


@pytest.mark.parametrize("method", [wilson, jeffreys, jeffreys_raw, clopper_pearson])
@pytest.mark.parametrize(("passes", "cases"), [(-1, 3), (4, 3), (0, -1)])
def test_counts_that_are_no_proportion_are_refused(method: type, passes: int, cases: int) -> None:
    with pytest.raises(ValueError, match="is not a proportion"):
        method(passes, cases)


@pytest.mark.parametrize("conf", [0, 1, 95, float("nan")])
def test_a_confidence_that_is_none_is_refused(conf: float) -> None:
    with pytest.raises(ValueError, match="confidence level"):
        wilson(1, 2, conf)


def test_the_method_names_itself() -> None:
    methods = [f(1, 2, 0.9) for f in (wilson, jeffreys, clopper_pearson)]
    assert [m.method for m in methods if m] == [
        "90% Wilson",
        "90% Jeffreys",
        "90% Clopper-Pearson",
    ]


@given(counts(), st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_wilson_is_that_of_scipy(count: tuple[int, int], conf: float) -> None:
    from scipy.stats import binomtest

    expected = binomtest(*count).proportion_ci(conf, method="wilson")
    assert ends(wilson(*count, conf)) == pytest.approx(tuple(expected), rel=1e-10, abs=1e-15)


@given(counts(), st.sampled_from([0.9, 0.95]))
def test_clopper_pearson_is_that_of_scipy(count: tuple[int, int], conf: float) -> None:
    from scipy.stats import binomtest

    expected = binomtest(*count).proportion_ci(conf, method="exact")
    assert ends(clopper_pearson(*count, conf)) == pytest.approx(tuple(expected), rel=1e-9)


@pytest.mark.parametrize("method", [wilson, jeffreys, jeffreys_raw, clopper_pearson])
@given(counts())
def test_exchanging_passes_and_failures_mirrors_it(method: type, count: tuple[int, int]) -> None:
    passes, cases = count
    low, high = ends(method(passes, cases))
    assert ends(method(cases - passes, cases)) == pytest.approx((1 - high, 1 - low), abs=1e-12)


@pytest.mark.parametrize("method", [wilson, jeffreys, jeffreys_raw, clopper_pearson])
@given(counts())
def test_ends_rise_with_the_passes_and_hold_the_rate(method: type, count: tuple[int, int]) -> None:
    passes, cases = count
    low, high = ends(method(passes, cases))
    assert 0 <= low <= passes / cases <= high <= 1 or method is jeffreys_raw
    if passes < cases:
        next_low, next_high = ends(method(passes + 1, cases))
        assert low <= next_low
        assert high <= next_high


@given(st.floats(0.001, 0.999_999))
def test_the_normal_quantile_is_that_of_scipy(conf: float) -> None:
    from scipy.special import ndtri

    expected = -float(ndtri((1 - conf) / 2))
    assert normal_quantile(conf) == pytest.approx(expected, rel=1e-12)


@given(st.floats(0.01, 0.999), st.integers(1, 5000))
def test_students_quantile_is_that_of_scipy(conf: float, freedom: int) -> None:
    from scipy.special import stdtrit

    expected = -float(stdtrit(freedom, (1 - conf) / 2))
    assert student_quantile(conf, freedom) == pytest.approx(expected, rel=1e-10)


def test_students_quantile_needs_two_cases() -> None:
    with pytest.raises(ValueError, match="0 degrees of freedom"):
        student_quantile(0.95, 0)
