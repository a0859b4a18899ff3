"""Cost per pass and time."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_modelbench.stats import cost_per_pass, cost_ratio, time_quantile, time_ratio
from pytest_modelbench.stats.resources import order_statistics


def test_cost_per_pass_is_a_ratio_of_totals() -> None:
    costs, passes = [1.0, 2.0, 3.0, 2.0], [1, 0, 1, 2]
    result = cost_per_pass(costs, passes, [2] * 4)
    assert result is not None
    assert (result.value, result.spent, result.at_least) == (2.0, 8.0, None)
    # exp(log R -+ t sqrt(vC/C^2 + vK/K^2 - 2 cov/(CK))), on means over the 4 cases.
    cost_var, pass_var, covariance = 2 / 3, 2 / 3, 1 / 3 * (0 + 0 + 0 + 0)
    error = math.sqrt((cost_var / 4 + pass_var / 1 - 2 * covariance / 2) / 4)
    assert result.interval is not None
    assert result.interval.high == pytest.approx(2 * math.exp(3.182446305284263 * error))
    assert result.interval.low == pytest.approx(2 / math.exp(3.182446305284263 * error))


def test_without_a_pass_there_is_a_lower_bound_only() -> None:
    result = cost_per_pass([0.5] * 20, [0] * 20, [1] * 20)
    assert result is not None
    assert (result.value, result.interval, result.spent) == (None, None, 10.0)
    assert result.at_least == pytest.approx(0.5 / 0.16113, rel=1e-4)


def test_an_unknown_price_is_never_0() -> None:
    assert cost_per_pass([0.5, None], [1, 1], [1, 1]) is None
    assert cost_ratio([0.5, None], [1, 1], [0.5, 0.5], [1, 1]) is None
    assert cost_per_pass([], [], []) is None


def test_costs_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="cost is negative"):
        cost_per_pass([-1.0], [1], [1])
    with pytest.raises(ValueError, match="2 costs for 1 cases"):
        cost_per_pass([1.0, 1.0], [1], [1])


def test_a_single_case_or_free_cases_have_no_interval() -> None:
    single = cost_per_pass([2.0], [1], [1])
    assert single is not None
    assert (single.value, single.interval) == (2.0, None)
    free = cost_per_pass([0.0, 0.0], [1, 1], [1, 1])
    assert free is not None
    assert (free.value, free.interval) == (0.0, None)


def test_the_ratio_of_a_candidate_to_itself_is_1_without_doubt() -> None:
    costs, passes = [1.0, 2.0, 3.0, 2.0], [1, 0, 1, 2]
    ratio = cost_ratio(costs, passes, costs, passes)
    assert ratio is not None
    assert (ratio.value, ratio.interval.low, ratio.interval.high) == (1, 1, 1)
    assert cost_ratio(costs, passes, costs, [0] * 4) is None


def test_exchanging_a_and_b_inverts_the_ratio() -> None:
    a, b = ([1.0, 2.0, 3.0, 2.0], [1, 0, 1, 2]), ([2.0, 2.5, 1.0, 1.0], [1, 1, 0, 1])
    forward, backward = cost_ratio(*a, *b), cost_ratio(*b, *a)
    assert forward is not None
    assert backward is not None
    assert forward.value == pytest.approx(1 / backward.value)
    assert forward.interval.low == pytest.approx(1 / backward.interval.high)


@given(
    st.lists(st.floats(0, 1000), min_size=1, max_size=150),
    st.sampled_from([0.5, 0.9, 0.95]),
    st.sampled_from([0.9, 0.95]),
)
def test_order_statistics_are_those_of_scipy(times: list[float], share: float, conf: float) -> None:
    from scipy.stats import quantile_test

    expected: Any = quantile_test(times, p=share).confidence_interval(conf)  # typed as a float
    result = time_quantile(times, share, conf)
    assert result is not None
    if result.interval is None:
        assert math.isnan(expected.low) or math.isnan(expected.high)
    else:
        assert (result.interval.low, result.interval.high) == tuple(expected)


def test_the_least_cases_for_an_interval() -> None:
    assert order_statistics(5, 0.5) is None
    assert order_statistics(6, 0.5) == (0, 5)
    assert order_statistics(71, 0.95) is None
    assert order_statistics(72, 0.95) is not None


def test_few_cases_show_their_range() -> None:
    result = time_quantile([3.0, 1.0, 2.0])
    assert result is not None
    assert (result.value, result.interval, result.range) == (2.0, None, (1.0, 3.0))
    assert time_quantile([]) is None


def test_the_median_survives_stopped_attempts_and_says_so() -> None:
    times = [1.0, 2.0, 3.0, 4.0, 10.0, 10.0, 10.0]
    result = time_quantile(times, censored=[False] * 4 + [True] * 3)
    assert result is not None
    assert (result.value, result.value_censored, result.high_censored) == (4.0, False, True)
    p90 = time_quantile(times, 0.9, censored=[False] * 4 + [True] * 3)
    assert p90 is not None
    assert (p90.value, p90.value_censored) == (10.0, True)


def test_p90_is_an_observed_time() -> None:
    result = time_quantile([float(i) for i in range(1, 101)], 0.9)
    assert result is not None
    assert result.value == 90.0


@pytest.mark.parametrize("time", [-1.0, float("nan"), float("inf")])
def test_times_that_cannot_be_are_refused(time: float) -> None:
    with pytest.raises(ValueError, match="time is negative"):
        time_quantile([1.0, time])


def test_times_are_compared_by_the_median_of_their_ratios() -> None:
    result = time_ratio([2.0, 4.0, 9.0, 1.0, 2.0, 3.0, 8.0], [1.0, 2.0, 3.0, 1.0, 4.0, 1.5, 4.0])
    assert result is not None
    assert result.value == pytest.approx(2.0)
    assert result.interval is not None
    assert (result.interval.low, result.interval.high) == pytest.approx((0.5, 3.0))
    assert time_ratio([], []) is None
    with pytest.raises(ValueError, match="above 0"):
        time_ratio([0.0], [1.0])
