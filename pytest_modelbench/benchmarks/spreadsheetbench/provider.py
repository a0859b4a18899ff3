"""SpreadsheetBench: an instruction and a workbook; judged by the values where the answer stands."""

from __future__ import annotations

import base64
import re
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from pytest_modelbench.benchmarks.benchmark import Answer, Benchmark, Met, Private, Tool, verdict
from pytest_modelbench.benchmarks.spreadsheetbench.positions import (
    Area,
    PositionProblem,
    difference,
    read_as_upstream,
    read_strictly,
)
from pytest_modelbench.benchmarks.spreadsheetbench.records import (
    PASSES_UNCHANGED,
    Task,
    Workbooks,
    digest_of,
    read_tasks,
)
from pytest_modelbench.benchmarks.spreadsheetbench.values import RULES_VERSION, compare
from pytest_modelbench.benchmarks.spreadsheetbench.workshop import (
    INPUT,
    OUTPUT,
    Ran,
    Workshop,
    check_recalculation,
    library_version,
    workshop,
)
from pytest_modelbench.packs.source import BenchmarkCase
from pytest_modelbench.records import Check, Verdict
from pytest_modelbench.worlds.box import Box

SHOWN_ROWS = 5
SHOWN_CHARS = 4000
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "mode": ("program", "workbook"),
    "recalc": ("none", "libreoffice", "formulas"),
    "positions": ("upstream", "strict"),
}
"""Options that are one of some words, the first of them by default."""

_TOLD = {
    "program": f"Write one Python program that does it: it reads {INPUT} and writes {OUTPUT}, both "
    "in the current folder, and is run on further workbooks of the same form. Try code with "
    "run_python, then give the whole program to submit_program. Without tools, answer with one "
    "fenced block of Python.",
    "workbook": f"Use run_python: write the changed workbook to {OUTPUT} in the current folder, "
    f"beside {INPUT}.",
}


@dataclass
class Bench:
    """One attempt's workshop, and the program that was submitted."""

    shop: Workshop
    submitted: str | None = None


class SpreadsheetBench(Benchmark[Bench]):
    """Workbooks to be changed.

    Options: ``data`` (upstream's folder), ``only`` (ids of tasks), ``mode``, ``recalc``,
    ``positions`` (see ``OPTIONS``), ``seconds`` that one run of a program may take.
    """

    def __init__(self, folder: Path, options: Mapping[str, JsonValue]) -> None:
        """Take where the data is, and how it is met and judged."""
        known = ("data", "only", "seconds", *OPTIONS)
        wrong = sorted(set(options) - set(known))
        if wrong:
            raise ValueError(f"it has no option {', '.join(wrong)}; it has {', '.join(known)}")
        self.folder = folder / str(options.get("data", "data"))
        only = options.get("only", [])
        if not isinstance(only, list):
            raise TypeError("only is a list of ids of tasks")
        self.only = {str(one) for one in only}
        chosen = {}
        for name, words in OPTIONS.items():
            chosen[name] = str(options.get(name, words[0]))
            if chosen[name] not in words:
                raise ValueError(f"{name} is one of {', '.join(words)}")
        self.mode, self.recalc = chosen["mode"], chosen["recalc"]
        self.positions = chosen["positions"]
        seconds = options.get("seconds", 60)
        if not isinstance(seconds, int | float) or isinstance(seconds, bool) or seconds <= 0:
            raise ValueError("seconds is a number above 0")
        self.seconds = float(seconds)
        library = library_version()
        check_recalculation(self.recalc)
        self.version = f"1; {self.mode}; {self.seconds:g} s; openpyxl {library}"
        self.rules_version = (
            f"{RULES_VERSION}; positions {self.positions}; recalc {self.recalc}; openpyxl {library}"
        )
        self.tasks = {
            task.id: task for task in read_tasks(self.folder) if task.id in (self.only or {task.id})
        }
        missing = sorted(self.only - set(self.tasks))
        if missing:
            raise ValueError(f"there is no task {', '.join(missing)}")

    def cases(self) -> Iterator[BenchmarkCase]:
        """Yield a case a task; upstream's three cases are the checks of one."""
        for task in self.tasks.values():
            yield self._case(task)

    def messages(
        self, case: BenchmarkCase, options: Mapping[str, JsonValue]
    ) -> Sequence[JsonValue]:
        """Return the instruction, the first rows of each sheet, and where the answer goes."""
        position, kind = case.public["answer_position"], case.public["kind"]
        parts = [
            f"Change a workbook as it is asked for. {_TOLD[self.mode]} Only the standard library "
            "and openpyxl are there. Formulas are not calculated: write values.",
            f"What is asked for ({kind}):\n{case.prompt}" if kind else case.prompt,
            f"Its first rows:\n{_preview(self._books(case, 1).input)}",
            f"What is judged are the values at {position}.",
        ]
        return [{"role": "user", "content": "\n\n".join(parts)}]

    def setup(self, public: Mapping[str, JsonValue], folder: Path) -> Bench:
        """Lay the first case's workbook into a folder that code may write to."""
        workbook = self.tasks[str(public["id"])].cases[1].input
        if workbook is None:
            raise FileNotFoundError(f"task {public['id']} has no input for case 1")
        return Bench(Workshop(self._box(), folder, workbook))

    def tools(self, world: Bench) -> Sequence[Tool]:
        """Return a tool to run code and, for programs, one to submit the last."""

        def run(arguments: Mapping[str, JsonValue]) -> str:
            return _ending(world.shop.run(str(arguments["code"]), self.seconds))

        def submit(arguments: Mapping[str, JsonValue]) -> str:
            world.submitted = str(arguments["code"])
            return "Submitted."

        one: dict[str, JsonValue] = {
            "type": "object",
            "properties": {"code": {"type": "string"}},
            "required": ["code"],
        }
        runs = Tool("run_python", f"Run Python code beside {INPUT}; see what it prints.", one, run)
        if self.mode == "workbook":
            return [runs]
        told = "Give the whole program; it ends the task."
        return [runs, Tool("submit_program", told, one, submit, ends=True)]

    def harvest(self, world: Bench, met: Met) -> JsonValue:
        """Return the program, or the workbook that was written."""
        if self.mode == "program":
            submitted = world.submitted
            return {"program": code_in(met.text or "") if submitted is None else submitted}
        output = world.shop.output()
        return {"workbook": None if output is None else base64.b64encode(output).decode("ascii")}

    def observe(self, case: BenchmarkCase, harvest: JsonValue) -> JsonValue:
        """Run the program on every input, or take the workbook; calculate, and compare."""
        left = harvest if isinstance(harvest, dict) else {}
        given = left.get("program" if self.mode == "program" else "workbook")
        if not isinstance(given, str):
            return {"answered": False, "cases": [], "recalc": self.recalc}
        seen: list[JsonValue] = [self._seen(case, number, given) for number in self._numbers(case)]
        position = str(case.public["answer_position"])
        return {
            "answered": True,
            "cases": seen,
            "recalc": self.recalc,
            "positions": difference(position),
        }

    def verify(self, private: Private, observation: JsonValue) -> Verdict:
        """Pass where every case does (upstream's hard score); the reward is their share (soft)."""
        seen = observation if isinstance(observation, dict) else {}
        answered = seen.get("answered") is True
        cases = seen.get("cases")
        found = {
            str(one.get("case")): one
            for one in (cases if isinstance(cases, list) else [])
            if isinstance(one, dict)
        }
        checks = [Check(name="answered", passed=answered, reason="" if answered else "no answer")]
        for number in private.data["cases"] if isinstance(private.data["cases"], list) else []:
            one = found.get(str(number), {})
            passed, why = one.get("passed") is True, str(one.get("reason", "no answer"))
            checks.append(Check(name=f"case-{number}", passed=passed, reason="" if passed else why))
        share = sum(check.passed for check in checks[1:]) / max(1, len(checks) - 1)
        return verdict(checks, reward=share, reason="wrong" if answered else "no-answer")

    def reference(self, case: BenchmarkCase, variant: str = "") -> Answer | None:
        """Return a program that knows the answers by their inputs; or one that empties sheets."""
        books = [self._books(case, number) for number in self._numbers(case)]
        code = {"": _knowing(books), "emptied": _EMPTYING}.get(variant)
        if code is None:
            return None
        tool = "submit_program" if self.mode == "program" else "run_python"
        return Answer(calls=((tool, {"code": code}),))

    def _case(self, task: Task) -> BenchmarkCase:
        numbers = list(task.cases) if self.mode == "program" else [1]
        tags = [task.kind.replace(" Manipulation", "").lower() or "task"]
        tags += ["passes-unchanged"] * (task.id in PASSES_UNCHANGED)
        tags += ["position-differs"] * bool(difference(task.position))
        files: dict[str, JsonValue] = {}
        for number in numbers:
            books = task.cases[number]
            files[str(number)] = [digest_of(books.input), digest_of(books.answer)]
        return BenchmarkCase(
            id=re.sub(r"[^A-Za-z0-9._-]", "-", task.id),
            prompt=task.instruction,
            public={"id": task.id, "kind": task.kind, "answer_position": task.position},
            private=Private({"cases": [*numbers], "files": files}),
            tags=tuple(tags),
            world=digest_of(task.cases[1].input),
            damaged={"emptied": tuple(f"case-{number}" for number in numbers)},
        )

    def _seen(self, case: BenchmarkCase, number: int, given: str) -> JsonValue:
        """Return what one case came to: whether it passed, and a short word why not."""
        books = self._books(case, number)
        if books.input is None or books.answer is None:
            return {"case": number, "passed": False, "reason": "missing-file"}
        try:
            areas = self._areas(str(case.public["answer_position"]))
        except PositionProblem as problem:
            return _failed(number, "position", str(problem))
        with workshop(self._box(), books.input) as shop:
            if self.mode == "program":
                ran = shop.run(given, self.seconds)
                if ran.timed_out:
                    return _failed(number, "time", ran.text)
                if ran.status != 0 and shop.output() is None:
                    return _failed(number, "program-error", ran.text)
            else:
                shop.lay(base64.b64decode(given))
            trouble = shop.recalculate(self.recalc)
            if trouble:
                return _failed(number, "recalculation", trouble)
            output = shop.output()
        if output is None:
            return _failed(number, "no-output", "")
        with tempfile.NamedTemporaryFile(suffix=".xlsx") as file:
            file.write(output)
            file.flush()
            found = compare(books.answer, Path(file.name), areas)
        return {"case": number, "passed": found.passed, "reason": "values", "wrong": found.wrong}

    def _areas(self, position: str) -> tuple[Area, ...]:
        return (read_strictly if self.positions == "strict" else read_as_upstream)(position)

    def _numbers(self, case: BenchmarkCase) -> Sequence[int]:
        return list(self._task(case).cases) if self.mode == "program" else [1]

    def _books(self, case: BenchmarkCase, number: int) -> Workbooks:
        return self._task(case).cases[number]

    def _task(self, case: BenchmarkCase) -> Task:
        return self.tasks[str(case.public["id"])]

    def _box(self) -> Box:
        if self.box is None:
            raise RuntimeError("the benchmark was given no box to run code in")
        return self.box


def code_in(text: str) -> str | None:
    """Return the program of a text: its last fenced block, None for none."""
    blocks = re.findall(r"```(?:python|py)?[ \t]*\n(.*?)```", text, re.DOTALL | re.IGNORECASE)
    return str(blocks[-1]) if blocks else None


def _failed(number: int, reason: str, text: str) -> JsonValue:
    told = " ".join(text.split())[-500:]
    return {"case": number, "passed": False, "reason": reason, "wrong": told}


def _ending(ran: Ran) -> str:
    end = "stopped: it took too long" if ran.timed_out else f"exit status {ran.status}"
    return f"{ran.text.rstrip() or '(no output)'}\n[{end}]"


def _preview(path: Path | None) -> str:
    """Return the first rows of each sheet, as lines of tab-separated values."""
    from openpyxl import load_workbook

    if path is None:
        return "(there is no workbook)"
    lines: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of parts of a workbook that hold no values
        book = load_workbook(path, data_only=True, read_only=True)
        for sheet in book.worksheets:
            lines.append(f"Sheet {sheet.title!r}, {sheet.max_row} rows:")
            for row in sheet.iter_rows(max_row=SHOWN_ROWS, values_only=True):
                lines.append("\t".join("" if cell is None else str(cell) for cell in row).rstrip())
        book.close()
    text = "\n".join(lines)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}\n[and more]"


def _knowing(books: Sequence[Workbooks]) -> str:
    """Return a program that writes the answer that belongs to its input."""
    known = {
        digest_of(one.input): base64.b64encode(one.answer.read_bytes()).decode("ascii")
        for one in books
        if one.input is not None and one.answer is not None
    }
    return (
        "import base64, hashlib, pathlib\n"
        f"answers = {known!r}\n"
        f"given = hashlib.sha256(pathlib.Path({INPUT!r}).read_bytes()).hexdigest()\n"
        f"pathlib.Path({OUTPUT!r}).write_bytes(base64.b64decode(answers[given]))\n"
    )


_EMPTYING = f"""
import openpyxl
made = openpyxl.Workbook()
made.remove(made.active)
for name in openpyxl.load_workbook({INPUT!r}, read_only=True).sheetnames:
    made.create_sheet(name)
made.save({OUTPUT!r})
"""
