"""Try fixtures the real way of a cell, in a process whose environment and home hold a secret.

Run as a program by ``test_attacks.py``. Its first line of input says which fixtures there are; each
further line is one request, and gets one line of answer.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import gzip
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_modelbench.attempt import Task, attempt, stored_harvest
from pytest_modelbench.checks.grader import Grader
from pytest_modelbench.gateway.client import GatewayClient
from pytest_modelbench.gateway.process import GatewayProcess
from pytest_modelbench.packs.model import Case, CheckSpec
from pytest_modelbench.protocols.protocol import Services
from pytest_modelbench.records import AttemptRecord, Candidate, Cell, Identity, Limits
from pytest_modelbench.store.evidence import Evidence
from pytest_modelbench.worlds.levels import choose
from pytest_modelbench.worlds.repository import seed_repository
from pytest_modelbench.worlds.runs import close_run, open_run, runs_root
from pytest_modelbench.worlds.world import open_world

RUN = "attacks"
SECONDS = 100.0
"""What a command of a candidate may take."""

ENDLESS_SECONDS = 6.0
"""What a command, or the grading, may take where it never ends."""


def main() -> None:
    """Serve requests until the end of the input."""
    libc = ctypes.CDLL(None)
    libc.prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: what is left of an attempt comes to us
    told = json.loads(sys.stdin.readline())
    work = Path(told["work"])
    scripts = [
        Candidate(name=folder.name, agent="scripted", script=str(script(folder, told, work)))
        for folder in map(Path, told["fixtures"])
    ]
    with GatewayProcess.start(scripts) as gateway, serving(told, work, gateway) as try_:
        for line in sys.stdin:
            request = json.loads(line)
            print(json.dumps(try_(request["fixture"], request["level"])), flush=True)


def script(folder: Path, told: Mapping[str, Any], work: Path) -> Path:
    """Write the script of a fixture's candidate: its files, then its program, then the end."""
    calls: list[dict[str, Any]] = []
    for path in sorted((folder / "files").rglob("*")):
        if path.is_file():
            arguments = {
                "path": path.relative_to(folder / "files").as_posix(),
                "content": replaced(path.read_text(), told),
            }
            calls.append({"name": "write_file", "arguments": arguments})
    program = folder / "candidate.py"
    if program.exists():
        started = f"import os; os.write(1, b'{told['started']}')\n"
        text = base64.b64encode((started + replaced(program.read_text(), told)).encode()).decode()
        # Encoded, so that no level finds a path of a box in it and puts another one there.
        command = f"echo {text} | base64 -d | python3 -"
        calls.append({"name": "run_command", "arguments": {"command": command}})
    steps = [{"calls": calls}, {"calls": [{"name": "finish", "arguments": {}}]}]
    path = work / f"{folder.name}.toml"
    path.write_text("".join(f"[[default.steps]]\ncalls = {toml(s['calls'])}\n" for s in steps))
    return path


def replaced(text: str, told: Mapping[str, Any]) -> str:
    """Put this test's own paths into a fixture's text."""
    for old, new in told["replace"].items():
        text = text.replace(old, new)
    return text


def toml(value: Any) -> str:
    """Return a value as TOML on one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


@contextlib.contextmanager
def serving(
    told: Mapping[str, Any], work: Path, gateway: GatewayProcess
) -> Iterator[Callable[[str, str], list[dict[str, Any]]]]:
    """Yield a function that tries a fixture at a level, as often as the fixture says."""
    address = gateway.address
    client = GatewayClient(address.socket_path, address.secret)
    task = Path(told["task"])
    case = Case(
        pack="attacks",
        id="calc",
        folder=task,
        manifest=task / "case.toml",
        title="calc",
        prompt=(task / "seed" / "TASK.md").read_text(),
        limits=Limits(turns=5, seconds=240, command_seconds=SECONDS),
        seed=task / "seed",
        hidden=Path(told["hidden"]),
        reference=task / "reference",
        check=CheckSpec(seconds=240),
    )
    graders: dict[str, Grader] = {}
    root = runs_root()
    with contextlib.ExitStack() as stack:
        run = stack.enter_context(open_run(root, RUN))
        seed = seed_repository(case.seed, work / "seeds")
        # Somebody else's attempt, which is at work at the same time and has the answer.
        other = stack.enter_context(open_world(seed, run))
        (other.tree / "calc.py").write_bytes((task / "reference" / "calc.py").read_bytes())

        def tried(name: str, level: str) -> list[dict[str, Any]]:
            box = choose(level)
            if level not in graders:
                graders[level] = Grader(box)
                stack.callback(graders[level].close)
                graders[level].collect(Path(told["hidden"]))
            services = Services(
                box, graders[level], client, run, work / "seeds", lambda environment: None
            )
            candidate = Candidate(name=name, agent="scripted")
            return [one(case, candidate, repeat, services) for repeat in range(1, runs(name) + 1)]

        def runs(name: str) -> int:
            return int(told["runs"].get(name, 1))

        def one(
            case: Case, candidate: Candidate, repeat: int, services: Services
        ) -> dict[str, Any]:
            evidence = Evidence(work / "results")
            if candidate.name in told["endless"]:
                limits = case.limits.model_copy(update={"command_seconds": ENDLESS_SECONDS})
                case = replace(case, limits=limits, check=CheckSpec(seconds=ENDLESS_SECONDS))
            before = descendants()
            begin = time.monotonic()
            record = attempt(
                Task(
                    Cell("attacks", "calc", candidate.name, repeat),
                    case,
                    candidate,
                    Identity(task="t", check="c", candidate=candidate.name),
                    RUN,
                ),
                services,
                evidence,
            )
            seconds = time.monotonic() - begin
            return seen(record, evidence) | {
                "seconds": seconds,
                "survivors": sorted(descendants() - before),
                "oddly": [p.name for p in run.iterdir() if p != other.folder],
            }

        yield tried
    close_run(root, RUN)


def seen(record: AttemptRecord, evidence: Evidence) -> dict[str, Any]:
    """Return what is kept of an attempt."""
    blobs = {kind: evidence.get(name) for kind, name in record.evidence.items()}
    transcript = gzip.decompress(blobs.get("transcript", gzip.compress(b""))).decode()
    files = {}
    oddities: list[tuple[str, str]] = []
    if record.harvest is not None or "harvest" in record.evidence:
        harvest = stored_harvest(record, evidence)
        files = {path: data.decode("latin-1") for path, data in harvest.files.items()}
        oddities = [(odd.path, odd.kind) for odd in harvest.oddities]
    return {
        "line": record.to_line(),
        "transcript": transcript,
        "observation": blobs.get("observation", b"").decode(),
        "files": files,
        "oddities": oddities,
        "bytes": sum(map(len, blobs.values())) + sum(map(len, files.values())),
    }


def descendants() -> set[int]:
    """Return every living process below this one."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if fields[0] != "Z":
                parents[int(stat.parent.name)] = int(fields[1])
    import os

    found: set[int] = set()
    level = {os.getpid()}
    while level:
        level = {pid for pid, parent in parents.items() if parent in level} - found
        found |= level
    return found


if __name__ == "__main__":
    main()
