"""Append results: one whole line a try, synced before the next step of the run."""

from __future__ import annotations

import errno
import json
import os
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import Field, JsonValue

from pytest_modelbench.errors import StoreProblem
from pytest_modelbench.parsing import parse
from pytest_modelbench.records import SCHEMA, AttemptRecord, Candidate, Cell, CheckRecord, Record
from pytest_modelbench.store.layout import LOCKS, prepare, quoted, results_file

LOCK_SECONDS = 60.0
"""How long a writer waits for another one's line before it says so and gives up."""


class Grid(Record):
    """The declared grid of a run: cases of each pack x candidates x repeats."""

    cases: dict[str, tuple[str, ...]] = Field(default_factory=dict, description="by pack")
    candidates: tuple[str, ...] = ()
    repeats: int = Field(default=1, ge=1)


class RunInfo(Record):
    """What the first line of each file of a run says."""

    run: str
    started: str = Field(description="UTC, ISO 8601 with milliseconds and Z")
    note: str = ""
    grid: Grid = Grid()
    candidates: dict[str, dict[str, JsonValue]] = Field(
        default_factory=dict, description="by name, as ``facts`` gives them"
    )
    versions: dict[str, str] = Field(default_factory=dict)
    draw: dict[str, JsonValue] = Field(
        default_factory=dict, description="how the cases of the grid were chosen; empty: all"
    )
    gates: tuple[str, ...] = Field(default=(), description="rules that were declared beforehand")
    fresh: tuple[Cell, ...] = Field(
        default=(), description="cells whose new series, named like the run, begins here"
    )

    def header(self, pack: str, candidate: str) -> str:
        """Return the header line of one file, newline excluded."""
        fresh: dict[str, list[int]] = {}
        for cell in self.fresh:
            if cell.pack == pack and cell.candidate == candidate:
                fresh.setdefault(cell.case, []).append(cell.repeat)
        line: dict[str, object] = {
            "schema": SCHEMA,
            "kind": "run",
            "run": self.run,
            "started": self.started,
            "pack": pack,
            "candidate": candidate,
            "note": self.note,
            "grid": {
                "cases": list(self.grid.cases.get(pack, ())),
                "candidates": list(self.grid.candidates),
                "repeats": self.grid.repeats,
            },
            "facts": self.candidates.get(candidate, {}),
            "versions": self.versions,
        }
        if self.draw:
            line["draw"] = self.draw
        if self.gates:
            line["gates"] = list(self.gates)
        if fresh:
            line["fresh"] = fresh
        return json.dumps(line, separators=(",", ":"))


def facts(candidate: Candidate) -> dict[str, JsonValue]:
    """Return what a run says about a candidate: no key's name, no path of this machine."""
    told: dict[str, JsonValue] = candidate.model_dump(
        mode="json",
        exclude_defaults=True,
        exclude={"api_key_env": True, "script": True, "command": {"programs"}},
    )
    if candidate.script:
        told["script"] = Path(candidate.script).name
    return told


class Writer:
    """Append the records of one run.

    A line is one write to a file opened for appending, under a lock, and is synced when ``append``
    returns. A file belongs to one run, so to the processes of one machine; there appends do not
    mix even where the lock does nothing (FR40). The lock ends with its process. ``lock`` replaces
    it in tests.
    """

    def __init__(
        self, root: Path, run: RunInfo, *, lock: AbstractContextManager[object] | None = None
    ) -> None:
        prepare(root)
        self.root = root
        self.run = run
        self._lock_path = root / LOCKS / f"append-{quoted(run.run)}.lock"
        self._lock = lock if lock is not None else _file_lock(self._lock_path)
        self._files: dict[tuple[str, str], _ResultsFile] = {}

    def append(self, record: AttemptRecord | CheckRecord) -> None:
        """Store a record; StoreProblem when it is not stored, and then no part of it is."""
        self._write(record.pack, record.candidate, record.to_line())

    def declare(self, pack: str, candidate: str) -> None:
        """Write the header of a file now: a fresh start counts from here, before its first cell."""
        self._write(pack, candidate, None)

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()
        self._files.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _write(self, pack: str, candidate: str, line: str | None) -> None:
        path = results_file(self.root, pack, candidate, self.run.started, self.run.run)
        try:
            with self._lock:
                file = self._files.get((pack, candidate))
                if file is None or file.is_gone():
                    file = _ResultsFile(path, self.run.header(pack, candidate))
                    self._files[pack, candidate] = file
                if line is not None:
                    file.append(line)
        except TimeoutError as error:  # filelock's Timeout is one
            raise StoreProblem(
                f"another process of this run has held the lock for {LOCK_SECONDS:.0f} s",
                path=self._lock_path,
                remedy="end that process (or delete the file where there is none), then run again",
            ) from error
        except OSError as error:
            cause = error.strerror or str(error)
            raise StoreProblem(
                f"the result was not stored: {cause}",
                path=path,
                remedy="make room or rights, then run again: what is stored is not run again",
            ) from error


class _ResultsFile:
    """One open file. Every method is called with the lock held and lets OSError through."""

    def __init__(self, path: Path, header: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o644)
        try:
            if not self._has_header(header):
                self.append(header)
                _sync_folder(path.parent)
        except BaseException:
            self.close()
            raise

    def append(self, line: str) -> None:
        size = os.fstat(self._descriptor).st_size
        # A writer that was killed may have left half a line: this one starts on its own.
        torn = size > 0 and os.pread(self._descriptor, 1, size - 1) != b"\n"
        data = (b"\n" if torn else b"") + line.encode("ascii") + b"\n"
        written = 0
        try:
            while written < len(data):  # once, unless the disk is full: then the next one says why
                count = os.write(self._descriptor, data[written:])
                if count == 0:
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
                written += count
            os.fsync(self._descriptor)
        except OSError:
            with suppress(OSError):
                if os.fstat(self._descriptor).st_size == size + written:
                    os.ftruncate(self._descriptor, size)
            raise

    def is_gone(self) -> bool:
        """Tell whether somebody deleted or replaced the file; what we append would be lost."""
        return os.fstat(self._descriptor).st_nlink == 0

    def close(self) -> None:
        os.close(self._descriptor)

    def _has_header(self, header: str) -> bool:
        """Tell whether the first line is a whole header of this file's run and candidate."""
        line = b""
        while b"\n" not in line:
            part = os.pread(self._descriptor, 1 << 16, len(line))
            if not part:
                return False
            line += part
        try:
            stored = parse(line.partition(b"\n")[0])
        except ValueError:
            return False
        wanted = parse(header)
        keys = ("kind", "run", "pack", "candidate")
        return isinstance(stored, dict) and all(stored.get(k) == wanted[k] for k in keys)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _file_lock(path: Path) -> AbstractContextManager[object]:
    from filelock import FileLock

    return FileLock(path, timeout=LOCK_SECONDS)
