"""The ``solution`` fixture: what a hidden check sees of the candidate's work.

    def test_adds(solution):
        calc = solution.load("calc")
        assert calc.add(2, 3) == 5
        with pytest.raises(ZeroDivisionError):
            calc.divide(1, 0)

Modules are imported in a box. Plain data comes back as plain data, all else as a ``Handle``.
"""

from __future__ import annotations

import contextlib
import fnmatch
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from pytest_modelbench.checks.boxed import BoxedWorker
from pytest_modelbench.checks.failures import (
    BadAnswer,
    CandidateError,
    GraderBroken,
    Raised,
    TimedOut,
)
from pytest_modelbench.checks.handle import Handle, type_name_of
from pytest_modelbench.checks.judge import Judge
from pytest_modelbench.checks.observation import Judgement
from pytest_modelbench.checks.programs import Result, run_program
from pytest_modelbench.checks.trial import NO_TESTS, OTHER, TRIAL, read_trial
from pytest_modelbench.errors import Fault
from pytest_modelbench.worlds.box import ENVIRONMENT, INTERPRETER, WORK, Box, BoxSpec, Mount
from pytest_modelbench.worlds.harvest import FILE_MODE, Harvest, HarvestLimits, harvest, read_folder
from pytest_modelbench.worlds.ownership import give

__tracebackhide__ = True  # what failed is the line of the check; pytest reads this

_REMEMBERED_TYPES = 1024
_MAP_AT_ONCE = 256
# Wider than those of any harvest: what was harvested is seen whole.
_LIMITS = HarvestLimits(file_bytes=256 * 2**20, total_bytes=512 * 2**20, count=100_000)


class Grading:
    """One harvest being graded: its files, its box, its worker, and the time that is left.

    Lives in the forked child of the trusted process. ``current`` is the solution of the running
    check; what the candidate does is noted there.
    """

    def __init__(
        self,
        box: Box,
        folder: Path,
        hidden: Path,
        environment: Path | None,
        scratch: Path,
        seconds: float,
        seed: int,
        late: Callable[[float], None],
    ) -> None:
        """``late`` is told the seconds that a box took to start."""
        self.hidden = hidden
        self.environment = environment
        self.seed = seed
        self.seconds = seconds
        self.call_seconds = max(1.0, seconds / 4)
        self._box = box
        self._folder = folder
        self._scratch = scratch
        self._late = late
        self._deadline = time.monotonic() + seconds
        # Read before any of the candidate's code runs, which may then write to this folder.
        self.harvest = harvest(folder, _LIMITS)
        folder.chmod(0o755)  # a box enters its work folder before it is the owner
        give(folder, box.owner)
        self._worker: BoxedWorker | None = None
        self._types: dict[int, tuple[object, str]] = {}
        self.current: Solution | None = None
        self.judge: Judge | None = None
        self.python = INTERPRETER if environment is None else f"{ENVIRONMENT}/bin/python"

    def left(self) -> float:
        """Return the seconds that one call may take now."""
        return max(0.0, min(self.call_seconds, self._deadline - time.monotonic()))

    def worker(self) -> BoxedWorker:
        """Return the worker, a new one when there is none or it has ended since it was asked."""
        if self._worker is None or not self._worker.alive():
            self.close()
            self._require_time()
            begin = time.monotonic()
            self._worker = BoxedWorker(
                self._box,
                self.spec(self._folder),
                self.python,
                None if self.environment is None else ENVIRONMENT,
                lambda worker, number, name: Handle(_Asked(self, worker), number, name),
                self._note_type,
            )
            self._worker.start()
            self.excuse(time.monotonic() - begin)
        return self._worker

    def spec(self, work: Path) -> BoxSpec:
        """Return what a box of this grading may reach: a work folder, and the environment."""
        mounts = [Mount(work, WORK, writable=True)]
        if self.environment is not None:
            mounts.append(Mount(self.environment, ENVIRONMENT))
        return BoxSpec(mounts=tuple(mounts))

    def ask(self, worker: BoxedWorker, verb: str, *arguments: object) -> object:
        """Ask, and note what the candidate did in the check that runs."""
        with self.watched():
            return worker.ask(self.left(), verb, *arguments)

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Note in the running check that the candidate acted, and whether it broke the rules."""
        try:
            yield
        except CandidateError as error:
            if self.current is not None:
                self.current.touched = True
                if not isinstance(error, Raised):
                    self.current.broken = error.reason
            raise
        except Fault as error:
            raise GraderBroken(str(error)) from error
        if self.current is not None:
            self.current.touched = True

    def run(self, files: Mapping[str, bytes], argv: Sequence[str], stdin: bytes) -> Result:
        """Run a program on files in a folder and a box of its own, for at most ``left()``."""
        self._require_time()
        folder = Path(tempfile.mkdtemp(dir=self._scratch))
        try:
            modes = {path: self.harvest.modes.get(path, FILE_MODE) for path in files}
            Harvest(files, modes).lay(folder, self._box.owner)
            with self.watched():
                spec = replace(
                    self.spec(folder), environment={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
                )
                result = run_program(self._box, spec, argv, stdin, self.left())
            self.excuse(result.late)
            return replace(result, files=MappingProxyType(harvest(folder, _LIMITS).files))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def type_name(self, value: object) -> str:
        """Return the name that a value's type had in the box."""
        if isinstance(value, Handle):
            return type_name_of(value)
        if isinstance(value, Raised):
            return value.type_name
        _, name = self._types.get(id(value), (None, type(value).__name__))
        return name

    def close(self) -> None:
        """End the worker."""
        if self._worker is not None:
            self._worker.stop()
            self._worker = None

    def forget_types(self) -> None:
        """Let go of the values whose types were noted."""
        self._types.clear()

    def _require_time(self) -> None:
        with self.watched():
            if not self.left():
                raise TimedOut("no time is left in this grading")

    def excuse(self, seconds: float) -> None:
        """Give back what a box took to start, or a judge to answer: no time of the candidate's."""
        self._deadline += seconds
        self._late(seconds)

    def _note_type(self, value: object, name: str) -> None:
        if len(self._types) >= _REMEMBERED_TYPES:
            del self._types[next(iter(self._types))]
        self._types[id(value)] = (value, name)  # held, so that the id stays its own


class _Asked:
    """A worker as its handles ask it: within a grading, and only while it lives."""

    def __init__(self, grading: Grading, worker: BoxedWorker) -> None:
        self.grading = grading
        self.worker = worker

    @property
    def ended(self) -> str:
        return self.worker.ended

    def request(self, verb: str, *arguments: object) -> object:
        return self.grading.ask(self.worker, verb, *arguments)


class Caught:
    """What ``solution.raises`` caught; empty until the block has ended."""

    value: Raised | None = None

    @property
    def text(self) -> str:
        """Return the text of the candidate's exception."""
        return str(self.value)

    @property
    def type_name(self) -> str:
        """Return the name of the candidate's exception."""
        return "" if self.value is None else self.value.type_name


class Solution:
    """The candidate's work, as one hidden check sees it."""

    def __repr__(self) -> str:
        """Return what a failing assertion of a hidden check calls it."""
        return "solution"

    def __init__(self, grading: Grading, check: str) -> None:
        self._grading = grading
        self._check = check
        self.touched = False
        self.broken = ""
        self.evident = False
        self.judged = False
        self.random = random.Random(f"{grading.seed}:{check}")
        """Drawn from the grading's recorded seed and the check's name: the order is no matter."""

    @property
    def files(self) -> Mapping[str, bytes]:
        """The harvested files, by path from the work folder; read-only."""
        self.touched = True
        return MappingProxyType(dict(self._grading.harvest.files))

    def text(self, path: str) -> str:
        """Return a harvested file as UTF-8 text; fails the check when it is not there or none."""
        try:
            return self.files[path].decode()
        except KeyError:
            raise AssertionError(f"the candidate left no file {path}") from None
        except UnicodeDecodeError as error:
            raise AssertionError(f"{path} is no UTF-8 text: {error}") from None

    def load(self, module: str) -> Handle:
        """Import one of the candidate's modules in the box, in a new worker if the last ended."""
        grading = self._grading
        found = grading.ask(grading.worker(), "load", module)
        if not isinstance(found, Handle):
            raise BadAnswer(f"the module {module} is no module but plain data")
        return found

    def type_of(self, value: object) -> str:
        """Return the name that a value's type has in the box.

        For plain data ask right after the call: equal small numbers and texts may be one object,
        which has the name that it came with last.
        """
        return self._grading.type_name(value)

    def map(self, function: object, inputs: Iterable[object]) -> list[object]:
        """Return ``[function(x) for x in inputs]`` with few messages."""
        return self.starmap(function, ((item,) for item in inputs))

    def starmap(self, function: object, inputs: Iterable[tuple[object, ...]]) -> list[object]:
        """Return ``[function(*x) for x in inputs]`` with few messages."""
        if not isinstance(function, Handle):
            raise BadAnswer("what is to be mapped is plain data, not a function")
        left = list(inputs)
        results: list[object] = []
        while left:
            asked, _ = function.modelbench_number()
            some = asked.request("map", function, left[:_MAP_AT_ONCE])
            if not isinstance(some, list) or not 0 < len(some) <= min(len(left), _MAP_AT_ONCE):
                raise BadAnswer("what the box gave is no list of results")
            results += some
            del left[: len(some)]
        return results

    @contextlib.contextmanager
    def raises(self, kind: object) -> Iterator[Caught]:
        """Expect one of the candidate's own exceptions: ``solution.raises(parser.ParseError)``."""
        caught = Caught()
        try:
            yield caught
        except Raised as error:
            if not self._is_a(error, kind):
                raise
            caught.value = error
            return
        raise AssertionError("the candidate's code did not raise")

    def run(
        self,
        argv: Sequence[str],
        stdin: bytes | str = b"",
        files: Mapping[str, bytes | str] | None = None,
    ) -> Result:
        """Run a whole program on the harvested files, with others laid over them, in a fresh box.

        ``argv[0]`` ``python`` or ``python3`` is the box's interpreter. At most ``call_seconds``.
        """
        laid = dict(self.files) | {name: _bytes(content) for name, content in (files or {}).items()}
        command = [str(word) for word in argv]
        if command[:1] in (["python"], ["python3"]):
            command[0] = self._grading.python
        return self._grading.run(laid, command, _bytes(stdin))

    def judge_tests(
        self, pattern: str, implementations: Mapping[str, str | Path]
    ) -> dict[str, str]:
        """Run the candidate's tests on implementations; return the outcome by implementation.

        ``pattern`` names the candidate's test files (``tests/test_*.py``); only they are taken.
        An implementation is a folder below the hidden one; its files win over the candidate's. Each
        runs in a box of its own, in random order and under the same paths, with the pytest of the
        pack's environment. Outcomes: ``passed``, ``failed``, ``no-tests``, ``timed-out``,
        ``broken`` (tests that cannot be collected, a run that does not end as pytest's do).

        The candidate's tests judge here, so the running check is ``evident`` and not ``trusted``.
        """
        self.evident = True
        grading = self._grading
        _require_pytest(grading.environment)
        tests = {
            path: content
            for path, content in self.files.items()
            if fnmatch.fnmatchcase(path, pattern) and path.endswith(".py")
        }
        if not tests:
            return dict.fromkeys(implementations, NO_TESTS)
        order = list(implementations)
        self.random.shuffle(order)
        outcomes: dict[str, str] = {}
        for name in order:
            folder = grading.hidden / implementations[name]
            if not folder.is_dir():
                raise GraderBroken(f"the implementation {name!r} is no folder: {folder}")
            laid = tests | read_folder(folder)
            result = grading.run(laid, [grading.python, "-I", "-c", TRIAL, *sorted(tests)], b"")
            outcomes[name] = read_trial(result)
        return {name: outcomes.get(name, OTHER) for name in implementations}

    def judge(self, prompt: str, *, scale: tuple[float, float] = (0.0, 1.0)) -> Judgement:
        """Ask the pack's judge; return its ``score`` on the scale, and ``why``.

        ``prompt`` holds the rule and the text that is to be judged. No score to be had is a fault
        of kind ``judge``, never a result. A model judges here, so the running check is ``judged``.
        """
        self.judged = True
        judge = self._grading.judge
        if judge is None:
            raise GraderBroken('no judge is declared: write judge = "CANDIDATE" in [check]')
        return judge.ask(self._check, prompt, *scale)

    @property
    def call_seconds(self) -> float:
        """How long one call, one program or one batch may take; a check may set it."""
        return self._grading.call_seconds

    @call_seconds.setter
    def call_seconds(self, seconds: float) -> None:
        self._grading.call_seconds = seconds

    def _is_a(self, error: Raised, kind: object) -> bool:
        if isinstance(kind, type):
            return isinstance(error, kind)
        if not isinstance(kind, Handle):
            raise BadAnswer("what should be an exception's type is plain data")
        asked, _ = kind.modelbench_number()
        return asked.request("matches", error, kind) is True


def _bytes(content: bytes | str) -> bytes:
    return content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape")


def _require_pytest(environment: Path | None) -> None:
    """Refuse before the candidate's code runs: afterwards a missing pytest could be its doing."""
    if environment is None or not any(environment.glob("lib/python*/site-packages/pytest")):
        raise GraderBroken(
            "judge_tests needs pytest in the pack's [environment] packages (pack.toml)"
        )
