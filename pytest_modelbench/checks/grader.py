"""The grader: a worker's way to its trusted process."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any  # Any: what JSON gives, and what pickle asks of a reducer
from weakref import WeakKeyDictionary

from pydantic import ValidationError

from pytest_modelbench.checks.judge import Seat
from pytest_modelbench.checks.observation import GRADER_VERSION, Observation
from pytest_modelbench.errors import Fault
from pytest_modelbench.worlds.box import Box

START_SECONDS = 120.0
COLLECT_SECONDS = 120.0
_SLACK_SECONDS = 100.0
"""Past a grading's own time: a slow box to start, and the trusted process's own deadline."""

_MAIN = (
    "import sys; sys.path[:] = [*sys.path, *(p for p in sys.argv[2:] if p not in sys.path)]; "
    "from pytest_modelbench.checks.trusted import main; main(int(sys.argv[1]))"
)


class Grader:
    """Grade harvests by hidden checks, in boxes of one kind.

    One process is started at the first use and kept until ``close``; it ends with this one,
    however this one ends. May be used by several threads, one grading at a time.
    """

    def __init__(self, box: Box, *, scratch: Path | None = None) -> None:
        """``scratch``: where its temporary folder goes; the run's own, so that a sweep finds it."""
        self._box = box
        self._scratch = scratch
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._log: IO[bytes] | None = None
        self._by: dict[str, str] = {}

    def collect(self, hidden: Path) -> tuple[str, ...]:
        """Return the names of the checks in a hidden folder.

        Raises ``Fault("grader")`` that names file and line when they cannot be collected, when two
        have one name, and when there is none.
        """
        request = {"verb": "collect", "hidden": str(hidden.resolve()), "seconds": COLLECT_SECONDS}
        return _observed(self._ask(request), request, self._by).expected

    def observe(
        self,
        hidden: Path,
        harvest_folder: Path,
        environment: Path | None,
        seconds: float,
        seed: int,
        judge: Seat | None = None,
    ) -> Observation:
        """Run the hidden checks on a harvest that lies in a fresh folder of its own.

        The candidate's code may write to that folder; delete it afterwards. ``environment`` is the
        virtual environment of the pack, ``judge`` where checks may ask one; its time is not that of
        the grading. What the candidate does, its silence until ``seconds``
        have passed among it, is in the observation; trouble of ours is a ``Fault`` of stage grade.
        """
        request = {
            "verb": "observe",
            "hidden": str(hidden.resolve()),
            "harvest": str(harvest_folder.resolve()),
            "environment": None if environment is None else str(environment.resolve()),
            "seconds": seconds,
            "seed": seed,
            "judge": None if judge is None else judge.model_dump(),
        }
        return _observed(self._ask(request), request, self._by)

    def close(self) -> None:
        """End the trusted process and all that it started; a later use starts another."""
        with self._lock:
            self._end()

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        with self._lock:
            connection = self._started()
            try:
                connection.send_bytes(json.dumps(request).encode())
                judged = request.get("judge") is not None
                # How often a judge is asked is not known; the trusted process bounds each time.
                seconds = None if judged else request["seconds"] + _SLACK_SECONDS
                return self._receive(connection, seconds)
            except (OSError, EOFError, ValueError) as error:
                said = self._end()
                raise _fault(f"the trusted process ended in a grading: {error!r}; {said}") from None
            except BaseException:
                self._end()  # an answer to this request must not be taken for one to the next
                raise

    def _started(self) -> Connection:
        if self._connection is not None:
            return self._connection
        ours, theirs = socket.socketpair()
        # A file and not a pipe: nobody has to read it for the process to go on.
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed by _end)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", _MAIN, str(theirs.fileno()), *_import_folders()],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                env=_environment(),
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self._connection = Connection(ours.detach())
        start = {
            "box": _pickled(self._box).hex(),
            "scratch": None if self._scratch is None else str(self._scratch.resolve()),
        }
        try:
            self._connection.send_bytes(json.dumps(start).encode())
            ready = self._receive(self._connection, START_SECONDS)
        except (OSError, EOFError, ValueError) as error:
            raise _fault(f"the trusted process did not start: {error!r}; {self._end()}") from None
        if ready["trouble"]:
            self._end()
            raise _fault(ready["trouble"])
        self._by = {
            "box": self._box.level,
            "python": ".".join(map(str, sys.version_info[:3])),
            "pytest": ready["pytest"],
            "grader": GRADER_VERSION,
        }
        return self._connection

    def _receive(self, connection: Connection, seconds: float | None) -> dict[str, Any]:
        if not connection.poll(seconds):
            raise EOFError(f"no answer within {seconds:g} s")
        answer: dict[str, Any] = json.loads(connection.recv_bytes())
        return answer

    def _end(self) -> str:
        """End the process; return the last of what it said."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._process is not None:
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
            said = f"exit {self._process.returncode}"
            self._process = None
        else:
            said = "it was not there"
        if self._log is not None:
            self._log.seek(0)
            text = self._log.read().decode(errors="replace").strip()
            said += f": {text[-2000:]}" if text else ""
            self._log.close()
            self._log = None
        return said


def _how_it_ended(answer: Mapping[str, Any]) -> str:
    """Return how a process that pytest did not bring to its end came to one."""
    if answer["timed_out"]:
        how = f"it had not ended after {answer['seconds']:.0f} s"
    else:
        # pytest catches what a check raises, and no os._exit.
        how = answer["died"] or "it ended with status 0 before pytest did, as by os._exit"
    return f"{how}; {answer['log'][-2000:]}" if answer["log"] and not answer["died"] else how


def _observed(
    answer: Mapping[str, Any], request: Mapping[str, Any], by: dict[str, str]
) -> Observation:
    """Put the events of one grading together. Raises a fault for trouble of ours."""
    events: list[Mapping[str, Any]] = answer["events"]
    faults = [event for event in events if "fault" in event]
    if faults:
        raise _fault(faults[0]["fault"], faults[0].get("kind", "grader"))
    expected = [event["expected"] for event in events if "expected" in event]
    ends = [event["end"] for event in events if "end" in event]
    if not expected or (answer["timed_out"] and request["verb"] == "collect"):
        raise _fault(f"the hidden checks were not collected: {_how_it_ended(answer)}")
    if not answer["timed_out"]:
        if answer["died"] or len(ends) != 1:
            raise _fault(f"the grading's own process ended early: {_how_it_ended(answer)}")
        if ends[0]["exit"] not in (0, 1):
            raise _fault(f"pytest ended with exit {ends[0]['exit']}; {answer['log'][-2000:]}")
    try:
        return Observation.model_validate(
            {
                "expected": expected[0],
                "rows": [event["row"] for event in events if "row" in event],
                "judged": [event["judged"] for event in events if "judged" in event],
                "ended": len(ends) == 1,
                "exit": ends[0]["exit"] if ends else None,
                "timed_out": answer["timed_out"],
                "seconds": answer["seconds"],
                "limit_seconds": request["seconds"],
                "seed": request.get("seed", 0),
                "by": by,
            }
        )
    except ValidationError as error:
        raise _fault(f"the trusted process sent an odd row: {error}") from None


def _fault(text: str, kind: str = "grader") -> Fault:
    return Fault(kind, text, stage="grade")


def _environment() -> dict[str, str]:
    """Return what hidden checks see of our environment: no key, no option of ours or pytest's."""
    kept = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ", "LD_LIBRARY_PATH")
    found = {name: os.environ[name] for name in kept if name in os.environ}
    return found | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def _import_folders() -> list[str]:
    """Return where this package and what it needs is; ``-I`` may know fewer places than we do."""
    folders: list[str] = []
    for name in ("pytest_modelbench", "pytest", "pydantic"):
        spec = find_spec(name)
        if spec is not None and spec.origin is not None:
            folders.append(str(Path(spec.origin).parent.parent))
    return list(dict.fromkeys(folders))


class _Pickler(pickle.Pickler):
    """Pickle a box without what it holds of its running processes: those stay here."""

    def reducer_override(self, obj: object) -> Any:
        if isinstance(obj, WeakKeyDictionary):
            return (WeakKeyDictionary, ())
        return NotImplemented


def _pickled(box: Box) -> bytes:
    buffer = io.BytesIO()
    try:
        _Pickler(buffer).dump(box)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise _fault(
            f"the box {box.level} cannot be sent to the trusted process: {error}"
        ) from None
    return buffer.getvalue()
