"""Engines: where attempts run."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Protocol

from pytest_modelbench.attempt import Task
from pytest_modelbench.records import AttemptRecord


class Engine(Protocol):
    """Run one try of a cell; the future ends in a record, of a verdict or of a fault."""

    def submit(self, task: Task) -> Future[AttemptRecord]:
        """Start the try."""
        ...
