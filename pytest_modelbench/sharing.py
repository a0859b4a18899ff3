"""One attempt for all items that ask for one cell, whichever workers they are on."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_modelbench.records import AttemptRecord, Cell


class SharedAttempts:
    """What has become of the cells that several items of a run ask for, in the run's folder.

    A lock a cell, which ends with its process; whoever holds it looks before it tries the cell.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "shared"

    @contextmanager
    def hold(self, cell: Cell) -> Iterator[None]:
        """Wait until no other worker is at the cell, and keep it."""
        self._folder.mkdir(exist_ok=True)
        descriptor = os.open(self._path(cell, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def get(self, cell: Cell) -> AttemptRecord | None:
        """Return how the cell ended in this run; None while it has not."""
        from pytest_modelbench.records import AttemptRecord

        try:
            text = self._path(cell, "json").read_text(encoding="ascii")
        except FileNotFoundError:
            return None
        import json

        return AttemptRecord.model_validate(json.loads(text))

    def put(self, record: AttemptRecord) -> None:
        """Say how the cell ended: in a verdict, or in the fault of its last try."""
        path = self._path(record.cell, "json")
        aside = path.with_suffix(".new")
        aside.write_text(record.to_line(), encoding="ascii")
        aside.replace(path)

    def _path(self, cell: Cell, suffix: str) -> Path:
        name = hashlib.sha256(repr(tuple(cell)).encode()).hexdigest()[:32]
        return self._folder / f"{name}.{suffix}"
