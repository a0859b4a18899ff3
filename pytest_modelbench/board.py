"""What the controller has decided while a run goes on, for its workers to read."""

from __future__ import annotations

import json
import os
from pathlib import Path

from pytest_modelbench.records import Cell


class Board:
    """Why cells of a case or of a candidate no longer start; one file, replaced as a whole.

    The controller writes, workers read when the file has changed.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "board.json"
        self._seen: tuple[int, int] | None = None
        self.uncertified: dict[str, str] = {}
        self.stopped: dict[str, str] = {}
        self.ending = False
        """The run was stopped: what is under way goes on for a moment, and nothing more begins."""

    def write(self) -> None:
        """Publish what is decided; called by the controller."""
        aside = self._path.with_suffix(".new")
        content = {
            "uncertified": self.uncertified,
            "stopped": self.stopped,
            "ending": self.ending,
        }
        aside.write_text(json.dumps(content), encoding="utf-8")
        aside.replace(self._path)

    def read(self) -> None:
        """Take up what was published since; called by workers before each cell."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return
        stamp = (status.st_mtime_ns, status.st_ino)
        if stamp != self._seen:
            content = json.loads(self._path.read_text(encoding="utf-8"))
            self.uncertified, self.stopped = content["uncertified"], content["stopped"]
            self.ending = content["ending"]
            self._seen = stamp

    def refusal(self, cell: Cell) -> str:
        """Return why a cell must not start any more; empty while it may."""
        if cell.certifies or not (self.uncertified or self.stopped):
            return ""
        why = self.uncertified.get(f"{cell.pack}/{cell.case}", "")
        if why:
            return f"case {cell.case} is not certified: {why}"
        why = self.stopped.get(cell.candidate, "")
        return f"{cell.candidate} was stopped: {why}" if why else ""


class Tries:
    """How often each cell was tried in this run, over all workers: a byte a try, in a file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "tries"

    def next(self, cell: Cell) -> int:
        """Count a try and return its number, from 1."""
        self._folder.mkdir(exist_ok=True)
        descriptor = os.open(self._path(cell), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, b".")
            return os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)

    def take_back(self, cell: Cell) -> None:
        """Count the newest try as none: it did not begin. Called by the worker that counted it."""
        path = self._path(cell)
        os.truncate(path, path.stat().st_size - 1)

    def _path(self, cell: Cell) -> Path:
        import hashlib

        name = hashlib.sha256(repr(tuple(cell)).encode()).hexdigest()[:32]
        return self._folder / name
