"""SpreadsheetBench's tasks and their workbooks, as upstream's folders have them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from pytest_modelbench.errors import PackProblem
from pytest_modelbench.parsing import parse

PASSES_UNCHANGED = frozenset({"30468", "CF_4909", "CF_8276", "570-43", "193-42"})
"""Tasks with a case whose input passes as it is: SpreadsheetBench issue 7, and seen here."""

DATASET = "dataset.json"
_KEYS = ("id", "instruction", "answer_position")


@dataclass(frozen=True)
class Workbooks:
    """The workbooks of one case: what is changed, and what it has to be; None for a missing one."""

    input: Path | None
    answer: Path | None


@dataclass(frozen=True)
class Task:
    """One task; ``cases`` are its workbooks by the number of the case, from 1."""

    id: str
    instruction: str
    kind: str
    position: str
    cases: Mapping[int, Workbooks]


def read_tasks(folder: Path) -> Iterator[Task]:
    """Yield the tasks of ``dataset.json``.

    A task has three cases, ``N_ID_input.xlsx`` and ``N_ID_answer.xlsx``, or one where its answer
    ends in ``_golden``, as in the verified subset.
    """
    path = folder / DATASET
    try:
        found = parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PackProblem(
            f"cannot be read: {error}", path=path, remedy="take upstream's dataset.json"
        ) from error
    for number, raw in enumerate(found if isinstance(found, list) else [None], 1):
        if not isinstance(raw, dict) or any(key not in raw for key in _KEYS):
            raise PackProblem(
                f"task {number} has not got {', '.join(_KEYS)}",
                path=path,
                remedy="take the file as upstream has it",
            )
        yield _task(folder, raw)


def digest_of(path: Path | None) -> str:
    """Return the digest of a workbook, '' for a missing one."""
    return "" if path is None else hashlib.sha256(path.read_bytes()).hexdigest()


def _task(folder: Path, raw: Mapping[str, JsonValue]) -> Task:
    name = str(raw["id"])
    place = folder / str(raw.get("spreadsheet_path") or f"spreadsheet/{name}")
    if not place.is_dir():
        raise PackProblem(
            f"the workbooks of task {name} are missing",
            path=place,
            remedy="bring them, or name the tasks that are there: only = […]",
        )
    verified = (place / f"1_{name}_golden.xlsx").is_file()
    cases = {
        number: Workbooks(
            _first(place, number, name, "input", "init"),
            _first(place, number, name, "answer", "golden"),
        )
        for number in ((1,) if verified else (1, 2, 3))
    }
    kind, position = str(raw.get("instruction_type", "")), str(raw["answer_position"])
    return Task(name, str(raw["instruction"]), kind, position, cases)


def _first(place: Path, number: int, name: str, *kinds: str) -> Path | None:
    paths = (place / f"{number}_{name}_{kind}.xlsx" for kind in kinds)
    return next((path for path in paths if path.is_file()), None)
