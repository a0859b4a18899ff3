"""Exact paired tests."""

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_modelbench.stats import (
    CaseScores,
    case_differences,
    mcnemar_exact,
    mcnemar_midp,
    pair_counts,
    sign_flip,
    sign_flip_test,
)

pairs = st.tuples(st.integers(0, 200), st.integers(0, 200))
differences = st.lists(st.integers(-5, 5), max_size=60)


def by_counting(values: list[int]) -> Fraction:
    """Count sign choices in exact integers, the plain way."""
    ways = {0: 1}
    for value in values:
        spread: dict[int, int] = {}
        for total, count in ways.items():
            for sign in (value, -value):
                spread[total + sign] = spread.get(total + sign, 0) + count
        ways = spread
    extreme = sum(count for total, count in ways.items() if abs(total) >= abs(sum(values)))
    return Fraction(extreme, 2 ** len(values))


@pytest.mark.parametrize(
    ("a_only", "b_only", "p"),
    [
        (12, 2, 0.012939453125),
        (6, 5, 1),
        (5, 5, 1),
        (0, 0, 1),
        (5, 0, 0.0625),
        (6, 0, 0.03125),
        (9, 2, 0.0654296875),
    ],
)
def test_exact_mcnemar(a_only: int, b_only: int, p: float) -> None:
    assert mcnemar_exact(a_only, b_only) == p
    assert sign_flip([1] * a_only + [-1] * b_only).p == p


@pytest.mark.parametrize(
    ("a_only", "b_only", "p"), [(9, 2, 0.0386), (0, 0, 1), (5, 5, 1), (6, 0, 0.015625)]
)
def test_mid_p(a_only: int, b_only: int, p: float) -> None:
    assert mcnemar_midp(a_only, b_only) == pytest.approx(p, abs=5e-5)


@given(pairs)
def test_mcnemar_is_that_of_scipy(pair: tuple[int, int]) -> None:
    from scipy.stats import binomtest

    expected = binomtest(pair[0], sum(pair)).pvalue if sum(pair) else 1.0
    assert mcnemar_exact(*pair) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("test", [mcnemar_exact, mcnemar_midp])
@given(pairs)
def test_p_is_symmetric_and_a_chance(test: type, pair: tuple[int, int]) -> None:
    a_only, b_only = pair
    assert 0 < test(a_only, b_only) == test(b_only, a_only) <= 1


@pytest.mark.parametrize("test", [mcnemar_exact, mcnemar_midp])
@given(pairs)
def test_p_falls_as_the_sweep_grows(test: type, pair: tuple[int, int]) -> None:
    a_only, b_only = max(pair), min(pair)
    if b_only:
        assert test(a_only + 1, b_only - 1) < test(a_only, b_only)


@given(pairs)
def test_mid_p_is_never_above_the_exact_p(pair: tuple[int, int]) -> None:
    assert mcnemar_midp(*pair) <= mcnemar_exact(*pair)


def test_p_is_never_0_however_long_the_sweep() -> None:
    assert mcnemar_exact(5000, 0) > 0
    assert mcnemar_midp(5000, 0) > 0
    assert sign_flip([1, 2] * 2000).p > 0


@given(pairs)
def test_one_attempt_per_case_is_exactly_mcnemar(pair: tuple[int, int]) -> None:
    a_only, b_only = pair
    test = sign_flip([1] * a_only + [0] * 7 + [-1] * b_only)
    assert test.p == mcnemar_exact(a_only, b_only)


@given(differences)
def test_sign_flip_is_the_counted_share(values: list[int]) -> None:
    test = sign_flip(values)
    assert test.draws is None
    assert test.p == pytest.approx(float(by_counting(values)), rel=1e-12)


@given(st.lists(st.integers(-900, 900), max_size=14))
def test_sign_flip_is_the_counted_share_of_wide_steps(values: list[int]) -> None:
    assert sign_flip(values).p == pytest.approx(float(by_counting(values)), rel=1e-12)


def test_small_p_keeps_its_digits() -> None:
    values = [1, 2, 3, 4, 5] * 30 + [-1, -2]
    assert sign_flip(values).p == pytest.approx(float(by_counting(values)), rel=1e-12)
    assert sign_flip(values).p < 1e-30


@given(differences, st.integers(1, 50), st.integers(0, 20), st.randoms())
def test_sign_flip_is_unchanged_by_what_means_nothing(
    values: list[int], factor: int, zeros: int, random: object
) -> None:
    changed = [-value * factor for value in values] + [0] * zeros
    random.shuffle(changed)  # type: ignore[attr-defined]  # hypothesis types it as an object
    assert sign_flip(changed) == sign_flip(values)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=40))
def test_draws_agree_with_the_exact_share(values: list[int]) -> None:
    drawn = sign_flip(values, lattice_cap=0, seed=4)
    exact = sign_flip(values).p
    if drawn.draws is None:  # all differences alike: no lattice to speak of
        assert drawn.p == exact
    else:
        error = math.sqrt(exact * (1 - exact) / drawn.draws)
        assert drawn.p == pytest.approx(exact, abs=6 * error + 2e-5)


def test_beyond_the_lattice_the_draws_are_seeded_and_named() -> None:
    values = [10**6 + i for i in range(30)] + [-1, 5]
    test = sign_flip(values, seed=3)
    assert test == sign_flip(values, seed=3)
    assert (test.method, test.draws, test.seed) == ("sign-flip, 99,999 draws, seed 3", 99_999, 3)
    assert test.p == 1e-5


def test_differences_beyond_64_bits_are_still_drawn() -> None:
    assert sign_flip([10**30, 10**30 + 1, -(10**30)]).p == 1.0
    assert sign_flip([10**30 + i for i in range(40)]).p == 1e-5


def test_no_difference_at_all_is_a_p_of_1() -> None:
    assert sign_flip([]).p == 1
    assert sign_flip([0, 0, 0]).p == 1


def test_floats_are_refused() -> None:
    with pytest.raises(ValueError, match="integers"):
        sign_flip([0.5, 1.0])  # type: ignore[list-item]


def test_ties_between_thirds_and_tenths_are_ties() -> None:
    a = CaseScores.of_rewards([[0.1 + 0.2], [1 / 3], [0.3], [1.0]])
    b = CaseScores.of_rewards([[0.3], [0.0], [0.3], [2 / 3]])
    # Two equal differences of a third, the same way: 2 of 4 sign choices are as extreme.
    assert pair_counts(case_differences(a, b)).alike == 2
    assert sign_flip_test(a, b).p == 0.5


def test_unequal_attempts_are_compared_by_their_rates() -> None:
    a = CaseScores.of_passes([1, 3, 1], [2, 3, 1])
    b = CaseScores.of_passes([2, 1, 0], [4, 2, 1])
    counts = pair_counts(case_differences(a, b))
    assert (counts.a_more, counts.b_more, counts.alike, counts.cases) == (2, 0, 1, 3)
    assert counts.net > 0
    assert sign_flip_test(a, b).p == 0.5


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=60), st.integers(2, 7))
def test_copies_of_the_same_attempt_change_no_p(
    cases: list[tuple[bool, bool]], copies: int
) -> None:
    once = [CaseScores.of_passes([c[i] for c in cases], [1] * len(cases)) for i in (0, 1)]
    often = [
        CaseScores.of_passes([c[i] * copies for c in cases], [copies] * len(cases)) for i in (0, 1)
    ]
    assert sign_flip_test(*often) == sign_flip_test(*once)


def test_different_cases_cannot_be_paired() -> None:
    with pytest.raises(ValueError, match="cannot be paired"):
        sign_flip_test(CaseScores.of_passes([1], [1]), CaseScores.of_passes([], []))


def test_a_p_is_no_twentieth_so_that_the_level_is_never_met() -> None:
    for a_only, b_only in itertools.product(range(40), repeat=2):
        for comparisons in (1, 2, 3, 7):
            assert mcnemar_exact(a_only, b_only) * comparisons != 0.05
