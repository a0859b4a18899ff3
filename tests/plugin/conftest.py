"""A builder of small projects that use the plugin, and pytest run on them as a program."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pytest_modelbench.records import AttemptRecord, Cell
from pytest_modelbench.store.index import Index
from pytest_modelbench.store.reader import read
from pytest_modelbench.worlds.repository import TREE

PACK = "tiny"
_OF_THE_RUN = shutil.ignore_patterns(".locks", "looks.jsonl")
"""Stays with the run that made certificates: what it held, and what it showed."""

RUN_SECONDS = 300.0
"""Longest that one pytest may take; a run that hangs fails its test and is killed."""


@dataclass(frozen=True)
class Junit:
    """One ``<testcase>``: outcome is passed, failed, error or skipped."""

    name: str
    outcome: str
    message: str
    seconds: float
    properties: dict[str, str]


@dataclass(frozen=True)
class Ran:
    """How a pytest ended. ``junit`` has a list a name, so that a double report is seen."""

    exit: int
    out: str
    junit: dict[str, list[Junit]]

    def outcomes(self) -> dict[str, int]:
        """Return the counts of pytest's last line: ``{"passed": 2, "error": 1}``."""
        for line in reversed(self.out.splitlines()):
            parts = line.strip("= ").rpartition(" in ")[0].split(", ")
            words = [part.split(" ", 1) for part in parts]
            if all(len(pair) == 2 and pair[0].isdigit() for pair in words):
                return {word.removesuffix("s"): int(count) for count, word in words}
        raise AssertionError(f"no line of counts in:\n{self.out}")


def _as_from_a_terminal(before: Callable[[], None] | None) -> None:
    """Let SIGINT interrupt, though the tests may run where a shell has it ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if before is not None:
        before()


class Going:
    """A pytest that runs, in a session (so a process group) of its own."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, junit: Path) -> None:
        self.process = process
        self.pid = process.pid
        self._log = log
        self._junit = junit

    @property
    def out(self) -> str:
        """What it has printed so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def wait(self, seconds: float = RUN_SECONDS) -> Ran:
        """Wait for its end; kill all of it when it takes too long."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"pytest still runs after {seconds:g} s:\n{self.out}") from None
        return Ran(code, self.out, _junit(self._junit))

    def until(self, true: Callable[[], object], seconds: float = 120.0) -> None:
        """Wait until something is true; AssertionError when pytest ends or time runs out before."""
        deadline = time.monotonic() + seconds
        while not true():
            assert self.process.poll() is None, f"pytest ended:\n{self.out}"
            assert time.monotonic() < deadline, f"not true after {seconds:g} s:\n{self.out}"
            time.sleep(0.01)  # what another process does is seen only by looking

    def kill(self) -> None:
        """End it and every process of its group with SIGKILL."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()

    def workers(self) -> list[int]:
        """Return the pids of its xdist workers: its children that are bare interpreters."""
        return [pid for pid in children(self.pid) if "exec(eval(" in command(pid)]


def children(pid: int) -> list[int]:
    """Return the pids of the living children of a process."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return sorted(found)


def command(pid: int) -> str:
    """Return the command line of a process, empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


@dataclass
class Project:
    """A project in a folder of its own, with a private TMPDIR and HOME.

    A case asks for its own id in ``answer.txt``. ``certified`` gives it stored certificates that
    were run once a session; without it the first run makes them.
    """

    path: Path
    temporary: Path
    certificates: Callable[[Project], None]
    environ: dict[str, str] = field(default_factory=dict)
    candidates: dict[str, dict[str, Any]] = field(default_factory=dict)
    _top: dict[str, dict[str, Any]] = field(default_factory=dict)
    _going: list[Going] = field(default_factory=list)
    _runs: int = 0

    def __post_init__(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        self.write("pytest.ini", "[pytest]\n")

    @property
    def results(self) -> Path:
        return self.path / "results"

    @property
    def cases(self) -> list[str]:
        """The ids of the cases that were written."""
        return sorted(p.parent.name for p in (self.path / "cases").glob("*/*/case.toml"))

    def write(self, name: str, text: str) -> Path:
        """Write a file of the project."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    # -- packs -----------------------------------------------------------------------------------

    def pack(self, *cases: str, name: str = PACK, damaged: bool = False) -> Project:
        """Write a pack of sound cases, two files at most each; returns itself."""
        self.write(
            f"cases/{name}/pack.toml",
            # Times that no cell of these needs, however busy the machine is.
            f'[pack]\nname = "{name}"\n\n[limits]\nturns = 5\nseconds = 240\n'
            "wall_seconds = 300\n\n[check]\nseconds = 240\n",
        )
        for case in cases:
            folder, solution = f"cases/{name}/{case}", f"reference_solutions/{name}/{case}"
            self.write(
                f"{folder}/case.toml",
                f'title = "Write {case}"\nprompt = "Write {case} into answer.txt."\n',
            )
            self.write(f"{folder}/seed/answer.txt", "nothing\n")
            self.write(
                f"{folder}/hidden/test_answer.py",
                "def test_answer(solution):\n"
                f"    assert solution.files['answer.txt'].split()[:1] == [b'{case}']\n\n\n"
                "def test_one_line(solution):\n"
                "    assert solution.files['answer.txt'].count(b'\\n') == 1\n",
            )
            self.write(f"{solution}/answer.txt", f"{case}\n")
            if damaged:
                self.write(
                    f"{solution}.damaged/two-lines/damaged.toml", 'loses = ["test_one_line"]\n'
                )
                self.write(f"{solution}.damaged/two-lines/answer.txt", f"{case}\n{case}\n")
        return self

    def certified(self, *cases: str) -> Project:
        """Write a pack of sound cases whose certificates are stored; returns itself."""
        self.pack(*cases)
        self.certificates(self)
        return self

    # -- candidates ------------------------------------------------------------------------------

    def scripted(
        self,
        name: str,
        *,
        wrong: Iterable[str] = (),
        delay_s: float = 0.0,
        error: Mapping[str, Any] | None = None,
        failing: Iterable[str] | None = None,
        **keys: Any,
    ) -> Project:
        """Declare a scripted candidate: right but for the cases in ``wrong``; returns itself.

        With ``error`` (``status``, ``times``, …) its first step is answered so first; in the cases
        of ``failing``, or in all.
        """
        wrong = set(wrong)
        failing = set(self.cases) if failing is None else set(failing)
        script = []
        for case in self.cases:
            text = "wrong\n" if case in wrong else f"{case}\n"
            script.append(f'[[cases."{case}".steps]]\ncalls = {_toml(answer_calls(text))}\n')
            if delay_s:
                script.append(f"delay_s = {delay_s}\n")
            if error is not None and case in failing:
                script.append(f"error = {_toml(error)}\n")
        self.write(f"scripts/{name}.toml", "".join(script))
        return self.candidate(name, agent="scripted", script=f"scripts/{name}.toml", **keys)

    def served(self, name: str, url: str, **keys: Any) -> Project:
        """Declare a candidate of a model server at ``url`` (with ``/v1``); returns itself."""
        return self.candidate(name, model="openai/test-model", api_base=url, **keys)

    def candidate(self, name: str, **keys: Any) -> Project:
        """Declare a candidate, or declare it anew; returns itself."""
        self.candidates[name] = keys
        return self._write_registry()

    def declare(self, table: str, **keys: Any) -> Project:
        """Declare a table of modelbench.toml, such as ``servers.gpu0``; returns itself."""
        self._top[table] = keys
        return self._write_registry()

    def _write_registry(self) -> Project:
        tables = {f"candidates.{name}": keys for name, keys in self.candidates.items()}
        lines = []
        for table, keys in (tables | self._top).items():
            lines.append(f"[{table}]")
            lines += [f"{key} = {_toml(value)}" for key, value in keys.items()]
        self.write("modelbench.toml", "\n".join(lines) + "\n")
        return self

    # -- pytest ----------------------------------------------------------------------------------

    def run(
        self,
        *args: str,
        seconds: float = RUN_SECONDS,
        environ: Mapping[str, str] | None = None,
        at: Path | None = None,
    ) -> Ran:
        """Run pytest to its end, in a folder or in the project's own."""
        return self.start(*args, environ=environ, at=at).wait(seconds)

    def start(
        self,
        *args: str,
        environ: Mapping[str, str] | None = None,
        before: Callable[[], None] | None = None,
        junit: bool = True,
        at: Path | None = None,
    ) -> Going:
        """Start pytest; ``before`` is called in its process (to set limits)."""
        self._runs += 1
        log = self.path.parent / f"run{self._runs}.log"
        xml = self.path.parent / f"run{self._runs}.xml"
        options = [f"--junitxml={xml}"] if junit else []
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "pytest", *options, *args],
                cwd=at or self.path,
                env=os.environ | self._environ() | self.environ | dict(environ or {}),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=partial(_as_from_a_terminal, before),  # no thread of ours runs then
            )
        going = Going(process, log, xml)
        self._going.append(going)
        return going

    def _environ(self) -> dict[str, str]:
        return {
            "TMPDIR": str(self.temporary),
            "HOME": str(self.temporary / "home"),
            "XDG_CACHE_HOME": str(self.temporary / "cache"),
            "COLUMNS": "240",
            # Plugins that our own tests need and that every worker would load.
            "PYTEST_ADDOPTS": "-p no:syrupy -p no:hypothesispytest -p no:anyio",
        }

    # -- what is stored --------------------------------------------------------------------------

    def index(self) -> Index:
        """Read all that is stored."""
        return read(self.results)

    def cells(self, candidate: str, repeats: int = 1) -> list[Cell]:
        """Return the cells of a candidate's grid over all cases written."""
        return [
            Cell(PACK, case, candidate, repeat)
            for repeat in range(1, repeats + 1)
            for case in self.cases
        ]

    def tries(self, candidate: str) -> list[AttemptRecord]:
        """Return every stored try of a candidate, oldest first."""
        index = self.index()
        found = [index.record(e) for e in index.entries() if e.candidate == candidate]
        return sorted(found, key=lambda record: record.started)

    def verdicts(self, *candidates: str) -> dict[Cell, list[bool]]:
        """Return for each cell of some candidates the verdicts stored, superseded ones too."""
        found: dict[Cell, list[bool]] = {}
        for entry in self.index().entries():
            if entry.candidate in candidates and not entry.is_fault:
                found.setdefault(entry.cell, []).append(entry.passed)
        return found

    def faulted(self, candidate: str) -> dict[Cell, str]:
        """Return the cells whose newest word is a fault, with its kind."""
        index = self.index()
        return {
            cell: index.current(cell)[-1].reason
            for pack in index.packs()
            for cell in index.cells(pack, candidate)
            if index.is_faulted(cell)
        }

    def leftovers(self) -> list[str]:
        """Return what lies in TMPDIR of runs and gateways: folders, sockets, locks."""
        runs = self.temporary / f"modelbench-{os.geteuid()}"
        found = [name for name in _names(self.temporary) if name.startswith("mb-gw-")]
        # A name with a dot is kept for all runs: what every box shares.
        return sorted(found + [name for name in _names(runs) if not name.startswith(".")])

    def worlds(self) -> set[Path]:
        """Return the folders of attempts that are at work now, or were when their run died."""
        # Not by a pattern: a folder that is removed while it is read ends a glob with an error.
        runs = self.temporary / f"modelbench-{os.geteuid()}"
        found = {world for run in _folders(runs) for world in _folders(run)}
        return {world for world in found if (world / TREE).is_dir()}

    def processes(self) -> list[str]:
        """Return the command lines of living processes that were started with this TMPDIR."""
        mark = f"TMPDIR={self.temporary}".encode()
        found = []
        for environ in Path("/proc").glob("[0-9]*/environ"):
            try:
                if mark in environ.read_bytes().split(b"\0"):
                    found.append(command(int(environ.parent.name)))
            except OSError:
                continue
        return [line for line in found if line]

    def close(self) -> None:
        """End whatever still runs."""
        for going in self._going:
            if going.process.poll() is None:
                going.kill()


def _names(parent: Path) -> list[str]:
    """Return what is in a folder, nothing where it is not there."""
    try:
        with os.scandir(parent) as entries:
            return [entry.name for entry in entries]
    except OSError:
        return []


def _folders(parent: Path) -> list[Path]:
    """Return the folders in one, none where it is not there or is removed meanwhile."""
    try:
        with os.scandir(parent) as entries:
            return [Path(entry.path) for entry in entries if entry.is_dir()]
    except OSError:
        return []


def answer_calls(text: str) -> list[dict[str, Any]]:
    """Return the calls of a candidate that writes its answer and finishes, in one message."""
    return [
        {"name": "write_file", "arguments": {"path": "answer.txt", "content": text}},
        {"name": "finish"},
    ]


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return json.dumps(value)


def _junit(path: Path) -> dict[str, list[Junit]]:
    found: dict[str, list[Junit]] = {}
    if not path.exists():
        return found
    for case in ET.parse(path).iter("testcase"):
        outcome, message = "passed", ""
        for child in case:
            if child.tag in ("failure", "error", "skipped"):
                outcome = {"failure": "failed"}.get(child.tag, child.tag)
                message = child.get("message", "")
        one = Junit(
            name=case.get("name", ""),
            outcome=outcome,
            message=message,
            seconds=float(case.get("time", "0")),
            properties={p.get("name", ""): p.get("value", "") for p in case.iter("property")},
        )
        found.setdefault(one.name, []).append(one)
    return found


def completion(calls: Sequence[Mapping[str, Any]], **usage: int) -> dict[str, Any]:
    """Return an OpenAI-shaped response with tool calls, for the server of the tests."""
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": f"call_{number}",
                "type": "function",
                "function": {
                    "name": call["name"],
                    "arguments": json.dumps(call.get("arguments", {})),
                },
            }
            for number, call in enumerate(calls)
        ],
    }
    return {
        "json": {
            "model": "test-model",
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
            "usage": usage or {"prompt_tokens": 100, "completion_tokens": 10},
        }
    }


@dataclass
class Model:
    """What a model server does: answers as the prompt asks, or as ``behaviour`` says.

    ``behaviour`` may be changed while the server runs; it is given the case that a request is for
    and returns a response, or None for the right answer.
    """

    behaviour: Callable[[str], Mapping[str, Any] | None] = lambda case: None
    asked: list[str] = field(default_factory=list)
    """The case of each request, in the order of their coming."""

    def __call__(self, body: Any) -> Mapping[str, Any]:
        prompt = json.dumps(body["messages"])
        case = prompt.partition("Write ")[2].partition(" into answer.txt")[0].split()[-1]
        self.asked.append(case)
        response = self.behaviour(case)
        return completion(answer_calls(f"{case}\n")) if response is None else response


@pytest.fixture(name="completion")
def _completion() -> Callable[..., dict[str, Any]]:
    """A maker of responses with tool calls."""
    return completion


@pytest.fixture
def model() -> Model:
    """What the server of a test does; give it to ``model_server``."""
    return Model()


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Project], None]:
    """Lay stored certificates into a project; each set of cases is certified once a session.

    Results carry identities by content, so a copy is as good as a run.
    """
    made: dict[tuple[str, ...], Path] = {}

    def lay(project: Project) -> None:
        key = tuple(project.cases)
        if key not in made:
            with _temporary() as temporary:
                folder = tmp_path_factory.mktemp("certified") / "project"
                maker = Project(folder, temporary, certificates=lay)
                maker.pack(*key).scripted("once")
                ran = maker.run("--models", "once", "-n", "2")
                assert ran.exit == 0, ran.out
                shutil.rmtree(maker.results / PACK / "once")
                made[key] = maker.results
        shutil.copytree(made[key], project.results, ignore=_OF_THE_RUN)

    return lay


@pytest.fixture
def project(tmp_path: Path, certificates: Callable[[Project], None]) -> Iterator[Project]:
    """An empty project: no case and no candidate yet."""
    with _temporary() as temporary:
        made = Project(tmp_path / "project", temporary, certificates)
        yield made
        made.close()


@contextlib.contextmanager
def _temporary() -> Iterator[Path]:
    """A TMPDIR of a test's own, with a path short enough for a socket's."""
    path = Path(tempfile.mkdtemp(prefix="mbt-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
