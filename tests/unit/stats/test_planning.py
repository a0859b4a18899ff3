"""What a grid can show."""

import math

import pytest

from pytest_modelbench.stats import (
    RepeatPlan,
    cases_needed,
    gate_pass_chance,
    gate_pass_chance_repeats,
    least_detectable_difference,
    power,
    repeat_plan,
)


@pytest.mark.parametrize(
    ("disagreement", "difference", "cases"),
    [
        (0.1, 0.03, 920),
        (0.1, 0.05, 337),
        (0.2, 0.03, 1800),
        (0.2, 0.05, 658),
        (0.2, 0.10, 168),
        (0.2, 0.15, 72),
        (0.3, 0.03, 2677),
        (0.3, 0.05, 975),
        (0.3, 0.10, 249),
        (0.3, 0.15, 112),
    ],
)
def test_cases_needed_by_the_exact_test(disagreement: float, difference: float, cases: int) -> None:
    assert cases_needed(disagreement, difference) == cases
    assert power(cases, disagreement, difference) >= 0.8
    assert power(cases - 1, disagreement, difference) < 0.8


@pytest.mark.parametrize(
    ("disagreement", "cases", "half_points"),
    [
        (0.1, 100, 18),
        (0.1, 300, 11),
        (0.2, 50, 36),
        (0.2, 100, 26),
        (0.2, 300, 15),
        (0.3, 50, 44),
        (0.3, 100, 32),
        (0.3, 300, 19),
    ],
)
def test_least_detectable_difference(disagreement: float, cases: int, half_points: int) -> None:
    least = least_detectable_difference(cases, disagreement)
    assert least is not None
    assert math.ceil(least * 200) == half_points
    assert power(cases, disagreement, least) >= 0.8


def test_a_grid_may_be_too_small_for_any_difference() -> None:
    assert least_detectable_difference(50, 0.1) is None
    assert least_detectable_difference(50, 0.0) is None


def test_no_difference_needs_no_number_of_cases() -> None:
    assert cases_needed(0.2, 0.0) is None
    with pytest.raises(ValueError, match="cannot come of a disagreement"):
        cases_needed(0.1, 0.2)
    with pytest.raises(ValueError, match="not a share"):
        power(10, 20, 0.1)


def test_power_counts_every_number_of_disagreements() -> None:
    from scipy.stats import binom, binomtest

    cases, disagreement, difference = 30, 0.4, 0.2
    expected = sum(
        binom.pmf(total, cases, disagreement) * binom.pmf(better, total, 0.75)
        for total in range(1, cases + 1)
        for better in range(total // 2 + 1, total + 1)
        if binomtest(better, total).pvalue < 0.05
    )
    assert power(cases, disagreement, difference) == pytest.approx(expected, rel=1e-9)


def test_twice_the_attempts_shrink_what_is_within() -> None:
    plan = repeat_plan([3, 1, 2, 0], [1, 2, 2, 4], [4] * 4, [4] * 4)
    assert plan is not None
    # Differences per case: 2, -1, 0, -4 quarters.
    assert plan.variance == pytest.approx((21 - 9 / 4) / 3 / 16)
    within_a = (3 / 16 + 3 / 16 + 4 / 16 + 0) / 4 / 3
    within_b = (3 / 16 + 4 / 16 + 4 / 16 + 0) / 4 / 3
    assert plan.within == pytest.approx(within_a + within_b)
    assert plan.with_attempts_times(2).variance == pytest.approx(plan.variance - plan.within / 2)
    assert plan.gain() == pytest.approx(1 - plan.within / plan.variance / 2)
    assert repeat_plan([1, 0], [0, 1], [1, 1], [1, 1]) is None


def test_repeats_are_planned_by_the_normal_law() -> None:
    plan = RepeatPlan(0.12, 0.08, 100)
    reach = 1.959963984540054 + 0.8416212335729143
    assert plan.least_detectable_difference() == pytest.approx(reach * math.sqrt(0.0012))
    assert plan.cases_needed(0.05) == math.ceil(reach**2 * 0.12 / 0.0025)
    assert plan.cases_needed(0) is None
    assert RepeatPlan(0.0, 0.0, 10).gain() == 1


@pytest.mark.parametrize(
    ("cases", "disagreement", "percent"),
    [(50, 0.1, 29), (100, 0.1, 45), (300, 0.1, 86), (300, 0.2, 61), (1000, 0.2, 97)],
)
def test_an_equally_good_candidate_passes_a_five_point_gate(
    cases: int, disagreement: float, percent: int
) -> None:
    assert gate_pass_chance(cases, disagreement, 0.05) == pytest.approx(percent / 100, abs=0.03)


def test_a_loss_of_the_margin_passes_the_gate_seldom() -> None:
    assert gate_pass_chance(300, 0.2, 0.05, difference=-0.05) == pytest.approx(0.049, abs=0.01)


def test_the_gate_with_repeats() -> None:
    plan = RepeatPlan(0.09, 0.05, 100)  # a standard error of 3 points
    assert gate_pass_chance_repeats(plan, 0.0493456) == pytest.approx(0.5, abs=1e-4)
    assert gate_pass_chance_repeats(plan, 0.05, difference=-0.05) == pytest.approx(0.05, abs=1e-9)
    assert gate_pass_chance_repeats(RepeatPlan(0, 0, 10), 0.05) == 1


def test_power_with_repeats_follows_the_normal_law() -> None:
    plan = RepeatPlan(0.09, 0.05, 100)  # a standard error of 3 points
    assert plan.power(0.0) == pytest.approx(0.025)
    assert plan.power(0.03 * 1.959963984540054) == pytest.approx(0.5)
    assert plan.power(plan.least_detectable_difference()) == pytest.approx(0.8)
    assert [RepeatPlan(0, 0, 10).power(true) for true in (0.0, 0.1)] == [0, 1]
