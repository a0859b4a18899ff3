"""Work that is done and not yet judged: what a kill between the two would lose.

A candidate's harvest is kept before it is graded. With it goes a note: the record that the attempt
has if nobody lives to write its verdict, a grade fault. The note is dropped when the attempt's own
line is stored; notes that are left are taken up by the next run, which grades the harvest.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from pytest_modelbench.errors import StoreProblem
from pytest_modelbench.parsing import parse
from pytest_modelbench.records import AttemptRecord
from pytest_modelbench.store.layout import EVIDENCE, prepare
from pytest_modelbench.store.reader import read
from pytest_modelbench.store.writer import RunInfo, Writer

FOLDER = "unfinished"


class Unfinished:
    """The notes of one results folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._folder = root / EVIDENCE / FOLDER

    def keep(self, record: AttemptRecord, run: RunInfo) -> None:
        """Keep the record that an attempt has if this process ends before its verdict."""
        content = {"run": run.model_dump(mode="json"), "line": record.to_line()}
        path = self._path(record.id)
        aside = path.with_suffix(".new")
        try:
            if not self._folder.is_dir():
                prepare(self.root)
                self._folder.mkdir(parents=True, exist_ok=True)
            with aside.open("w", encoding="utf-8") as file:
                json.dump(content, file)
                file.flush()
                os.fsync(file.fileno())
            aside.replace(path)
        except OSError as error:
            raise StoreProblem(
                f"finished work could not be noted: {error.strerror or error}",
                path=path,
                remedy="make room or rights, then run again: what is stored is not run again",
            ) from error

    def drop(self, attempt_id: str) -> None:
        """Forget a note: the attempt's own line is stored."""
        self._path(attempt_id).unlink(missing_ok=True)

    def adopt(self) -> int:
        """Store the records of notes that were left, and return how many.

        The caller holds the results folder: no process that might still write a verdict is alive.
        """
        notes = sorted(path for path in self._folder.glob("*.json") if path.is_file())
        adopted = 0
        for path in notes:
            with suppress(ValueError, KeyError, TypeError, OSError):
                content = parse(path.read_text(encoding="utf-8"))
                record = AttemptRecord.model_validate(parse(content["line"]))
                known = read(self.root, [record.pack], [record.candidate])
                if known.find(record.id) is None:
                    with Writer(self.root, RunInfo.model_validate(content["run"])) as writer:
                        writer.append(record)
                    adopted += 1
            path.unlink(missing_ok=True)
        return adopted

    def _path(self, attempt_id: str) -> Path:
        return self._folder / f"{attempt_id}.json"
