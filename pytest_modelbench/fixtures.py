"""Fixtures of the shipped suite and, for users' own tests, their plain aliases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_modelbench.records import AttemptRecord, Cell, Verdict
    from pytest_modelbench.worker import Worker

worker_key: pytest.StashKey[Worker] = pytest.StashKey()
attempt_key: pytest.StashKey[AttemptRecord] = pytest.StashKey()
again_key: pytest.StashKey[bool] = pytest.StashKey()
"""Set on an item that is to be dealt again instead of being reported."""


class Unsolved(AssertionError):
    """The verdict is not a pass: a result, and no failure of the run."""


@dataclass(frozen=True)
class Attempt:
    """An attempt that ended in a verdict, as tests see it."""

    record: AttemptRecord

    @property
    def verdict(self) -> Verdict:
        """Return the verdict; there is one, since a fault never reaches a test's body."""
        if self.record.verdict is None:
            raise RuntimeError(f"attempt {self.record.id} has no verdict")
        return self.record.verdict

    def verify(self) -> None:
        """Raise `Unsolved` with the checks that were lost, unless every check held."""
        verdict = self.verdict
        if not verdict.passed:
            lost = ", ".join(c.name for c in verdict.checks if not c.passed)
            raise Unsolved(f"{verdict.reason}: {lost}" if lost else verdict.reason)


@pytest.fixture
def modelbench_cell(request: pytest.FixtureRequest) -> Cell:
    """Return the cell of this item."""
    cell: Cell = request.param
    return cell


@pytest.fixture
def modelbench_attempt(request: pytest.FixtureRequest, modelbench_cell: Cell) -> Attempt:
    """Let the candidate work on the case and observe what it left; a fault is an error here."""
    worker = request.config.stash[worker_key]
    record = worker.attempt(modelbench_cell)
    request.node.stash[attempt_key] = record
    return Attempt(record)


@pytest.fixture
def candidate(modelbench_cell: Cell) -> str:
    """Return the name of the candidate that this item tries."""
    return modelbench_cell.candidate


@pytest.fixture
def case(modelbench_cell: Cell) -> str:
    """Return the id of the case that this item tries."""
    return modelbench_cell.case


@pytest.fixture
def attempt(modelbench_attempt: Attempt) -> Attempt:
    """Return the attempt of this item's cell; it has ended in a verdict."""
    return modelbench_attempt
