"""In-process grading: a repository's own tests, run in one process with the candidate's code.

For suites that need real objects. The candidate's code shares the process that judges it, and can
forge what that process says: it can be made hard, and it can be made to show, but not be prevented.
So the rows are ``evident`` and never ``trusted``. What is done: a fresh copy in a box; no conftest,
configuration, plugin or start-up file of the candidate's; an own ini and root; names of the tests
taken in advance from the reference; a nonce on a pipe; and tests with random names that have to
fail and to skip, which a process that passes everything gets wrong.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import select
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any  # Any: JSON of a process that is not to be trusted; checked field by field

from pydantic import ValidationError

from pytest_modelbench.checks.observation import IN_PROCESS, Observation, Row
from pytest_modelbench.errors import Fault
from pytest_modelbench.parsing import parse
from pytest_modelbench.records import Trust
from pytest_modelbench.worlds.box import ENVIRONMENT, WORK, Box, BoxSpec, Mount
from pytest_modelbench.worlds.harvest import FILE_MODE, Harvest, read_folder
from pytest_modelbench.worlds.removal import remove

FORGED = "forged"
"""The name of the row that says that a sentinel did not fail, or did not skip."""

COLLECT_SECONDS = 120.0
MAX_BYTES = 16 * 2**20
"""Of all that one grading says; more is no evidence."""
MAX_TEXT = 8_000

# What pytest or Python would obey, wherever it lies.
_OBEYED = {
    *("conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini"),
    *("setup.cfg", "pyproject.toml", "sitecustomize.py", "usercustomize.py"),
}
_OBEYED_ENDS = (".pth", ".egg-link")
_OBEYED_FOLDERS = (".dist-info", ".egg-info")

_RUN = """
import json, os, sys
os.umask(0o077)
out, nonce = int(sys.argv[1]), sys.stdin.read()
os.set_inheritable(out, False)
null = os.open(os.devnull, os.O_RDWR)
for number in (0, 1, 2):
    os.dup2(null, number)
write, dumps, leave = os.write, json.dumps, os._exit
def emit(**said):
    data = (dumps({"nonce": nonce, **said}) + "\\n").encode()
    while data:
        data = data[write(out, data):]
try:
    import pytest
except BaseException as error:
    emit(broken="pytest cannot be imported", text=repr(error)[:2000])
    raise
class Recorder:
    def pytest_collection_finish(self, session):
        emit(items=[item.nodeid for item in session.items])
    def pytest_collectreport(self, report):
        if report.failed:
            emit(broken=str(report.nodeid)[:500], text=report.longreprtext[:2000])
    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome != "passed":
            outcome = report.outcome
            if hasattr(report, "wasxfail"):
                outcome = "xpassed" if report.passed else "xfailed"
            reason = ""
            if report.failed and hasattr(report.longrepr, "reprcrash"):
                reason = str(report.longrepr.reprcrash.message).partition(":")[0][:60]
            emit(row=[report.nodeid, outcome, report.when, reason,
                      report.longreprtext[:8000], round(report.duration, 6)])
ini = os.environ["TMPDIR"] + "/own.ini"
with open(ini, "w") as file:
    file.write("[pytest]\\n")
sys.dont_write_bytecode = True
code = pytest.main(
    ["-q", "-p", "no:cacheprovider", "-c", ini, "--rootdir", os.getcwd(), "--noconftest",
     "--import-mode=importlib", "-o", "pythonpath=" + os.getcwd(), *sys.argv[2:]],
    plugins=[Recorder()],
)
emit(end=int(code))
leave(0)
"""

_SENTINELS = """
import pytest


def test_{fails}():
    assert False


def test_{skips}():
    pytest.skip("sentinel")
"""

_expected: dict[tuple[str, str], tuple[str, ...]] = {}


@dataclass
class _Said:
    """What one process said, with the right nonce."""

    items: list[tuple[str, ...]] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    odd: bool = False
    timed_out: bool = False
    seconds: float = 0.0


def observe_in_process(
    box: Box,
    hidden: Path,
    solved: Mapping[str, bytes],
    harvest: Harvest,
    environment: Path | None,
    scratch: Path,
    seconds: float,
) -> Observation:
    """Run the hidden test files in one process with a harvest, in a box.

    ``hidden`` is laid over the harvest, its files win. ``solved`` are the files of the reference
    over its seed: the names of the tests are taken from it, once. Fault of stage grade for
    troubles of ours, a suite that cannot be collected on the reference among them.
    """
    if environment is None or not any(environment.glob("lib/python*/site-packages/pytest")):
        raise _fault("in-process checks need pytest in the pack's [environment] packages")
    checks = read_folder(hidden)
    tests = sorted(path for path in checks if _is_test(path))
    if not tests:
        raise _fault(f"no check in {hidden}; a check is a function test_… in test_….py")
    expected = _names(box, checks, solved, tests, environment, scratch)
    files = {path: data for path, data in harvest.files.items() if not _is_obeyed(path)}
    fails, skips = secrets.token_hex(8), secrets.token_hex(8)
    sentinel = f"test_{secrets.token_hex(8)}.py"
    laid = _over(files, checks)
    laid[sentinel] = _SENTINELS.format(fails=fails, skips=skips).encode()
    order = list(tests)
    order.insert(secrets.randbelow(len(order) + 1), sentinel)
    said = _run(box, laid, harvest.modes, order, environment, scratch, seconds)
    wanted = {f"{sentinel}::test_{fails}": "failed", f"{sentinel}::test_{skips}": "skipped"}
    seen = {row.name: row.outcome for row in said.rows if row.name in wanted}
    rows = [row for row in said.rows if row.name not in wanted]
    if seen != wanted and not said.timed_out:
        rows.append(Row(name=FORGED, outcome="failed", phase="call", reason=FORGED, trust=_TRUST))
    honest_end = not said.odd and len(said.ends) == 1
    return Observation(
        kind=IN_PROCESS,
        expected=expected,
        rows=tuple(rows),
        ended=honest_end,
        # A session in which the sentinel failed ends with 1, and in no other way.
        exit=(0 if said.ends[0] == 1 else 2) if honest_end else None,
        timed_out=said.timed_out,
        seconds=round(said.seconds, 6),
        limit_seconds=seconds,
        by={"box": box.level},
    )


_TRUST = Trust.EVIDENT


def _names(
    box: Box,
    checks: Mapping[str, bytes],
    solved: Mapping[str, bytes],
    tests: list[str],
    environment: Path,
    scratch: Path,
) -> tuple[str, ...]:
    """Return the names of all tests, as they are collected on the reference."""
    key = (_digest(checks), _digest(solved))
    if key not in _expected:
        laid = _over(solved, checks)
        options = ["--collect-only", *tests]
        said = _run(box, laid, {}, options, environment, scratch, COLLECT_SECONDS)
        if said.broken:
            raise _fault(f"the hidden tests cannot be collected on the reference: {said.broken[0]}")
        if said.timed_out or said.odd or said.ends != [0] or len(said.items) != 1:
            raise _fault("the hidden tests cannot be collected on the reference")
        names = said.items[0]
        if not names or len(set(names)) != len(names):
            raise _fault("the hidden tests hold no test, or two of one name")
        _expected[key] = names
    return _expected[key]


def _run(
    box: Box,
    files: Mapping[str, bytes],
    modes: Mapping[str, int],
    options: list[str],
    environment: Path,
    scratch: Path,
    seconds: float,
) -> _Said:
    """Run pytest on files in a folder and a box of their own; nothing of it is alive then."""
    folder = scratch / f"suite-{secrets.token_hex(8)}"
    reader, writer = os.pipe()
    nonce = secrets.token_hex(16)
    said = _Said()
    try:
        Harvest(files, {path: modes.get(path, FILE_MODE) for path in files}).lay(folder, box.owner)
        spec = BoxSpec(
            mounts=(Mount(folder, WORK, writable=True), Mount(environment, ENVIRONMENT)),
            environment={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        )
        begin = time.monotonic()
        try:
            process = box.start(
                [f"{ENVIRONMENT}/bin/python", "-I", "-c", _RUN, str(writer), *options],
                spec,
                pass_fds=(writer,),
            )
        except OSError as error:
            raise _fault(f"the box cannot start the tests: {error}") from error
        finally:
            os.close(writer)
        try:
            assert process.stdin is not None
            with contextlib.suppress(OSError):
                process.stdin.write(nonce.encode())
                process.stdin.close()
            data = _read(reader, begin + seconds, said)
        finally:
            box.stop(process)
        said.seconds = time.monotonic() - begin
        _understand(data, nonce, said)
        return said
    except Fault as fault:
        raise Fault(fault.kind, fault.text, stage="grade") from fault
    finally:
        os.close(reader)
        remove(folder)


def _read(reader: int, deadline: float, said: _Said) -> bytes:
    """Read until the end, the deadline, or more than is allowed."""
    pieces: list[bytes] = []
    size = 0
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    while size <= MAX_BYTES:
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            said.timed_out = True
            break
        piece = os.read(reader, 2**16)
        if not piece:
            break
        pieces.append(piece)
        size += len(piece)
        if piece.endswith(b"\n") and b'"end":' in piece[-2000:]:
            break  # a survivor may hold the pipe; what comes after the end counts for nothing
    else:
        said.odd = True
    return b"".join(pieces)


def _understand(data: bytes, nonce: str, said: _Said) -> None:
    """Take the lines that are what they should be; any other makes all of it odd."""
    for line in data.splitlines():
        try:
            message: Any = parse(line)
            if message["nonce"] != nonce or len(message) < 2:
                raise ValueError("a line of somebody else's")
            if said.ends:
                raise ValueError("a line after the end")
            if "items" in message:
                said.items.append(tuple(map(str, message["items"])))
            elif "row" in message:
                name, outcome, phase, reason, text, seconds = message["row"]
                said.rows.append(
                    Row(
                        name=name,
                        outcome=outcome,
                        phase=phase,
                        reason=reason,
                        text=str(text)[:MAX_TEXT],
                        seconds=seconds,
                        trust=_TRUST,
                    )
                )
            elif "broken" in message:
                said.broken.append(f"{message['broken']}: {message['text']}")
            elif type(message["end"]) is int:
                said.ends.append(message["end"])
            else:
                raise ValueError("an end that is no number")
        except (ValueError, KeyError, TypeError, ValidationError):
            said.odd = True


def _over(files: Mapping[str, bytes], checks: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return files with checks over them; what stands in a check's way goes."""
    folders = {str(parent) for path in checks for parent in PurePosixPath(path).parents}
    kept = {
        path: data
        for path, data in files.items()
        if path not in folders and not _is_below(path, checks)
    }
    return kept | dict(checks)


def _is_below(path: str, checks: Mapping[str, bytes]) -> bool:
    return any(str(parent) in checks for parent in _parents(path))


def _parents(path: str) -> Iterator[PurePosixPath]:
    return iter(PurePosixPath(path).parents)


def _is_test(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py"))


def _is_obeyed(path: str) -> bool:
    """Tell whether pytest or Python would take a file of the candidate's as an order."""
    *folders, name = path.lower().split("/")
    return (
        name in _OBEYED
        or name.endswith(_OBEYED_ENDS)
        or any(folder.endswith(_OBEYED_FOLDERS) for folder in folders)
    )


def _digest(files: Mapping[str, bytes]) -> str:
    rows = [(path, hashlib.sha256(data).hexdigest()) for path, data in sorted(files.items())]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def _fault(text: str) -> Fault:
    return Fault("grader", text, stage="grade")
