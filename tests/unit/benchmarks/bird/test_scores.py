"""What counts as the same result, and what a share of it is worth."""

from __future__ import annotations

import pytest

from pytest_modelbench.benchmarks.bird.scores import (
    efficiency_reward,
    execution_match,
    r_ves,
    soft_f1,
)


@pytest.mark.parametrize(
    ("predicted", "gold", "same"),
    [
        ([(1, "a"), (2, "b")], [(2, "b"), (1, "a"), (1, "a")], True),
        ([], [], True),
        ([(1,)], [(1.0,)], True),
        ([(None,)], [(None,)], True),
        ([("1",)], [(1,)], False),
        ([("a", 1)], [(1, "a")], False),
        ([("A",)], [("a",)], False),
        ([(0.1 + 0.2,)], [(0.3,)], False),
    ],
)
def test_execution_match_is_of_sets(
    predicted: list[tuple[object, ...]], gold: list[tuple[object, ...]], same: bool
) -> None:
    assert execution_match(predicted, gold) is same


def test_soft_f1_counts_cells_of_rows_paired_by_position() -> None:
    assert soft_f1([], []) == 1.0
    assert soft_f1([(1, 2)], []) == 0.0
    assert soft_f1([(2, 1)], [(1, 2)]) == 1.0
    # One of two cells: half matched, half in each alone: precision = recall = 1/2.
    assert soft_f1([(1, 9)], [(1, 2)]) == pytest.approx(0.5)
    # A row too many is one whole error: precision 1/2, recall 1.
    assert soft_f1([(1,), (2,)], [(1,)]) == pytest.approx(2 / 3)
    assert soft_f1([(2,), (1,)], [(1,), (2,)]) == 0.0


def test_efficiency_is_rewarded_in_steps() -> None:
    samples = [1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert efficiency_reward([2 * one for one in samples]) == 1.25
    assert efficiency_reward([0.6 * one for one in samples]) == 0.75
    assert efficiency_reward([0.1 * one for one in samples]) == 0.25
    assert efficiency_reward([*samples * 4, 500.0]) == 1.0  # the outlier is dropped
    assert efficiency_reward([1.0, 1.0]) == 0.0
    assert r_ves([1.0, 0.0]) == 50.0
