"""Fixtures of the shipped suite and, for users' own tests, their plain aliases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pytest_modelbench.packs.model import Case
    from pytest_modelbench.records import AttemptRecord, Candidate, Cell, Verdict
    from pytest_modelbench.worker import Worker
    from pytest_modelbench.workplace import Workplace

worker_key: pytest.StashKey[Worker] = pytest.StashKey()
attempt_key: pytest.StashKey[AttemptRecord] = pytest.StashKey()
again_key: pytest.StashKey[bool] = pytest.StashKey()
"""Set on an item that is to be dealt again instead of being reported."""


class Unsolved(AssertionError):
    """The verdict is not a pass: a result, and no failure of the run."""


@dataclass(frozen=True, repr=False)
class Attempt:
    """An attempt that ended in a verdict, as tests see it.

    What it left is read from the results and their evidence when it is asked for; StoreProblem
    where that is not here, since evidence is not committed.
    """

    record: AttemptRecord
    _workplace: Workplace = field(repr=False, compare=False)

    def __repr__(self) -> str:
        """Return what pytest shows of it beside a test that fails."""
        return f"<attempt {self.record.cell.id}>"

    @property
    def verdict(self) -> Verdict:
        """Return the verdict; there is one, since a fault never reaches a test's body."""
        if self.record.verdict is None:
            raise RuntimeError(f"attempt {self.record.id} has no verdict")
        return self.record.verdict

    @property
    def case(self) -> Case:
        """Return the case that was tried."""
        return self._workplace.case(self.record.cell)

    @property
    def candidate(self) -> Candidate:
        """Return the candidate that tried it."""
        return self._workplace.candidate(self.record.cell)

    @cached_property
    def files(self) -> Mapping[str, bytes]:
        """Return the files that the candidate left, by path relative to its work tree."""
        return self._workplace.harvest(self.record).files

    @cached_property
    def transcript(self) -> list[JsonValue]:
        """Return what was said, an object a request and a reply; empty where no model was asked."""
        import json

        return [json.loads(line) for line in self._workplace.transcript(self.record).splitlines()]

    def lay(self, folder: Path) -> Path:
        """Write the files that the candidate left into an empty or missing folder; return it."""
        self._workplace.harvest(self.record).lay(folder)
        return folder

    def verify(self) -> None:
        """Raise `Unsolved` with the checks that were lost, unless every check held."""
        verdict = self.verdict
        if not verdict.passed:
            lost = ", ".join(c.name for c in verdict.checks if not c.passed)
            raise Unsolved(f"{verdict.reason}: {lost}" if lost else verdict.reason)


@pytest.fixture
def modelbench_cell(request: pytest.FixtureRequest) -> Cell:
    """Return the cell of this item."""
    cell: Cell | None = getattr(request, "param", None)
    if cell is None:
        from pytest_modelbench.usertests import explain_no_cell

        explain_no_cell(request)
    return cell


@pytest.fixture
def modelbench_attempt(request: pytest.FixtureRequest, modelbench_cell: Cell) -> Attempt:
    """Let the candidate work on the case and observe what it left; a fault is an error here."""
    from pytest_modelbench.collection import cell_of

    if modelbench_cell != cell_of(request.node):
        pytest.fail(f"the fixture modelbench_cell was replaced: {modelbench_cell!r}", pytrace=False)
    attempt = request.config.stash[worker_key].attempt(modelbench_cell)
    request.node.stash[attempt_key] = attempt.record
    return attempt


@pytest.fixture
def candidate(request: pytest.FixtureRequest, modelbench_cell: Cell) -> Candidate:
    """Return the candidate that this item's cell is tried by."""
    return request.config.stash[worker_key].candidate(modelbench_cell)


@pytest.fixture
def case(request: pytest.FixtureRequest, modelbench_cell: Cell) -> Case:
    """Return the case of this item's cell."""
    return request.config.stash[worker_key].case(modelbench_cell)


@pytest.fixture
def attempt(modelbench_attempt: Attempt) -> Attempt:
    """Return the attempt of this item's cell; it has ended in a verdict."""
    return modelbench_attempt


@pytest.fixture
def world(modelbench_attempt: Attempt, tmp_path: Path) -> Path:
    """Return a folder with the files that the candidate left, in a copy of this test's own."""
    return modelbench_attempt.lay(tmp_path / "world")
