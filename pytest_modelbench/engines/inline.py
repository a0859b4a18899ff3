"""The engine that runs an attempt at once, in the process and thread of its caller."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from pytest_modelbench.attempt import Task
from pytest_modelbench.records import AttemptRecord


class InlineEngine:
    """Run attempts where they are asked for.

    The thread lives as long as its worker, which a box needs: it ends with the thread that
    started it.
    """

    def __init__(self, run: Callable[[Task], AttemptRecord]) -> None:
        self._run = run

    def submit(self, task: Task) -> Future[AttemptRecord]:
        """Run the attempt and return its future, done."""
        future: Future[AttemptRecord] = Future()
        future.set_running_or_notify_cancel()
        try:
            future.set_result(self._run(task))
        except BaseException as error:
            future.set_exception(error)
            if not isinstance(error, Exception):
                raise
        return future
