"""Bounds for cells without a verdict."""

import pytest

from pytest_modelbench.stats import Decision, pair_bounds, rate_bounds


def test_four_cells_without_a_verdict_bound_the_rate() -> None:
    verdicts = [1] * 16 + [0] * 4
    bounds = rate_bounds([1] * 12 + [0] * 8, verdicts, [1] * 20)
    assert bounds == pytest.approx((0.6, 0.8))


def test_a_complete_grid_has_no_room() -> None:
    assert rate_bounds([1, 0], [1, 2], [1, 2]) == (0.5, 0.5)
    assert rate_bounds([], [], []) is None


def test_impossible_counts_are_refused_with_their_case() -> None:
    with pytest.raises(ValueError, match="case 1 has 2 passes of 1 verdicts"):
        rate_bounds([0, 2], [1, 1], [1, 2])


def test_a_decision_that_holds_either_way() -> None:
    a, b = [1] * 20, [0] * 20
    bounds = pair_bounds(a, [1] * 20, b, [0] + [1] * 19, 1)
    assert bounds is not None
    assert bounds.holds_either_way
    assert bounds.worst_for_a is Decision.A_BETTER
    assert bounds.difference == pytest.approx((0.95, 1.0))


def test_a_decision_that_hangs_on_what_is_missing() -> None:
    a, b = [1] * 6 + [0] * 4, [0] * 10
    bounds = pair_bounds(a, [1] * 10, b, [0] + [1] * 9, 1)
    assert bounds is not None
    assert (bounds.worst_for_a, bounds.best_for_a) == (Decision.UNDECIDED, Decision.A_BETTER)
    assert not bounds.holds_either_way
    assert pair_bounds([], [], [], [], 1) is None


def test_the_family_counts() -> None:
    a, b, all_in = [1] * 6, [0] * 6, [1] * 6
    alone = pair_bounds(a, all_in, b, all_in, 1)
    among_three = pair_bounds(a, all_in, b, all_in, 1, comparisons=3)
    assert alone is not None
    assert among_three is not None
    assert alone.best_for_a is Decision.A_BETTER
    assert among_three.best_for_a is Decision.UNDECIDED
