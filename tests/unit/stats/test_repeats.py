"""Scores of cases with repeats, rewards and draws of k."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_modelbench.stats import (
    CaseScores,
    case_mean_t,
    case_score,
    case_score_interval,
    group_means,
    pass_at_k,
    pass_hat_k,
    variance_split,
    wilson,
)

THIRDS = [3, 2, 0, 3, 1, 3, 2, 2, 1, 0, 3, 2]


@st.composite
def repeats(draw: st.DrawFn, most_attempts: int = 6) -> tuple[list[int], list[int]]:
    attempts = draw(st.lists(st.integers(1, most_attempts), min_size=1, max_size=60))
    return [draw(st.integers(0, n)) for n in attempts], attempts


@given(st.lists(st.integers(0, 1), min_size=1, max_size=300), st.sampled_from([0.9, 0.95]))
def test_one_attempt_per_case_is_wilson(passes: list[int], conf: float) -> None:
    scores = CaseScores.of_passes(passes, [1] * len(passes))
    assert case_score_interval(scores, conf) == wilson(sum(passes), len(passes), conf)


@given(st.lists(st.integers(0, 1), min_size=1, max_size=100), st.integers(2, 9))
def test_copies_of_the_same_attempt_change_nothing(passes: list[int], copies: int) -> None:
    once = CaseScores.of_passes(passes, [1] * len(passes))
    often = CaseScores.of_passes([k * copies for k in passes], [copies] * len(passes))
    assert case_score(often) == case_score(once)


def test_all_passes_are_as_many_cases_and_no_more() -> None:
    score = case_score(CaseScores.of_passes([5] * 20, [5] * 20))
    assert score is not None
    assert score.interval.low == pytest.approx(0.8389, abs=5e-5)
    assert score.interval == wilson(20, 20)


def test_repeats_narrow_the_interval_by_what_they_are_worth() -> None:
    score = case_score(CaseScores.of_passes(THIRDS, [3] * 12))
    assert score is not None
    assert score.effective_cases == pytest.approx(20.6585, abs=1e-4)
    assert score.interval.method == "95% case score"


@pytest.mark.parametrize(("hard", "effective"), [(7, False), (8, True)])
def test_fewer_than_eight_varied_cases_are_not_believed(hard: int, effective: bool) -> None:
    score = case_score(CaseScores.of_passes([3] * hard + [5] * (40 - hard), [5] * 40))
    mirrored = case_score(CaseScores.of_passes([2] * hard + [0] * (40 - hard), [5] * 40))
    assert score is not None
    assert mirrored is not None
    assert (score.effective_cases > 40) is effective
    assert mirrored.effective_cases == pytest.approx(score.effective_cases)


def test_pass_rates_are_never_worth_more_cases_than_attempts() -> None:
    passes = [1, 1, 1, 1, 1, 1, 1, 1, 0, 2]
    score = case_score(CaseScores.of_passes(passes, [2] * 10))
    uncapped = case_score(CaseScores.of_values([k / 2 for k in passes]))
    assert score is not None
    assert uncapped is not None
    assert score.effective_cases == 20
    assert uncapped.effective_cases == pytest.approx(0.25 / (0.5 / 9 / 10))


@given(repeats())
def test_the_interval_lies_within_0_and_1_and_holds_the_mean(
    data: tuple[list[int], list[int]],
) -> None:
    score = case_score(CaseScores.of_passes(*data))
    assert score is not None
    assert 0 <= score.interval.low <= score.mean <= score.interval.high <= 1
    assert len(data[0]) <= score.effective_cases <= max(sum(data[1]), len(data[0]))


def test_constant_rewards_have_no_variance() -> None:
    score = case_score(CaseScores.of_rewards([[0.1]] * 30))
    assert score is not None
    assert score.effective_cases == 30


def test_no_cases_give_no_score() -> None:
    nothing = CaseScores.of_passes([], [])
    assert nothing.mean is None
    assert case_score(nothing) is None
    assert case_score_interval(nothing) is None
    assert case_mean_t(CaseScores.of_passes([1], [1])) is None


@pytest.mark.parametrize("reward", [-0.01, 1.01, 5, float("nan"), float("inf")])
def test_a_reward_outside_0_and_1_is_refused_with_its_case(reward: float) -> None:
    with pytest.raises(ValueError, match=r"case 1 has a reward|is not a score"):
        CaseScores.of_rewards([[0.5], [0.5, reward]])


@pytest.mark.parametrize(("passed", "tried"), [(2, 1), (-1, 1), (0, 0)])
def test_passes_that_cannot_be_are_refused_with_their_case(passed: int, tried: int) -> None:
    with pytest.raises(ValueError, match="case 1 has"):
        CaseScores.of_passes([1, passed], [1, tried])


def test_rewards_are_read_as_the_fractions_they_stand_for() -> None:
    third = CaseScores.of_rewards([[1 / 3, 1 / 3, 1 / 3], [0.1 + 0.2, 0.3]])
    assert third.values == (1 / 3, 0.3)
    assert third.denominator == 30


def test_rewards_without_a_common_denominator_share_one_grid() -> None:
    scores = CaseScores.of_rewards([[math.sin(i) ** 2] for i in range(100)])
    assert scores.denominator == 10**12
    assert scores.values == pytest.approx([math.sin(i) ** 2 for i in range(100)], abs=1e-12)


def test_the_variance_splits_into_within_and_between() -> None:
    split = variance_split([5, 0, 5, 0], [5] * 4)
    assert split is not None
    assert split.within == 0
    assert split.between == pytest.approx(1 / 3)
    noisy = variance_split([2, 2, 2, 2], [4] * 4)
    assert noisy is not None
    assert noisy.within == pytest.approx(0.25 / 3)
    assert noisy.between == 0
    assert variance_split([1, 0], [1, 1]) is None


def test_groups_become_the_cases() -> None:
    scores = CaseScores.of_passes([1, 1, 0, 1, 0], [1] * 5)
    grouped = group_means(scores, ["a", "b", "a", "a", "b"])
    assert grouped.values == (2 / 3, 0.5)
    assert grouped.attempts == 5


@given(st.integers(1, 30), st.data())
def test_draws_of_k_are_monotone_and_one_of_one_is_the_rate(n: int, data: st.DataObject) -> None:
    c = data.draw(st.integers(0, n))
    some = [pass_at_k(n, c, k) for k in range(1, n + 1)]
    every = [pass_hat_k(n, c, k) for k in range(1, n + 1)]
    assert some[0] == every[0] == Fraction(c, n)
    assert some == sorted(some, key=lambda value: value or 0)
    assert every == sorted(every, key=lambda value: value or 0, reverse=True)


@given(st.integers(1, 40), st.data())
def test_draws_of_k_are_those_of_scipy(n: int, data: st.DataObject) -> None:
    from scipy.stats import hypergeom

    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    assert float(pass_at_k(n, c, k) or 0) == pytest.approx(hypergeom.sf(0, n, c, k), abs=1e-12)
    assert float(pass_hat_k(n, c, k) or 0) == pytest.approx(hypergeom.pmf(k, n, c, k), abs=1e-12)


def test_k_is_never_lowered_to_the_attempts() -> None:
    assert pass_at_k(3, 3, 4) is None
    assert pass_hat_k(3, 3, 4) is None
    with pytest.raises(ValueError, match="no draw"):
        pass_at_k(3, 1, 0)
