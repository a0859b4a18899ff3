"""What separate grading costs, beside the script that people write, and a worker's own CPU.

    python benchmarks/grading_cost.py [--cells 20] [--workers 2]

Each worker grades the same files by turns in both ways, so that the figures are ratios of one run:
ours (harvest laid, hidden checks in a trusted process, the candidate's code in a box, evidence and
record stored), and *copy + bwrap + pytest*: tree and tests copied, pytest started in bubblewrap,
its exit code taken. Then whole cells are tried by the built-in candidate, to see the CPU that the
worker itself and its git calls take. Exits 1 when a goal is missed.

The script gets byte code of pytest, as an installer makes it. Seen on 2 cores that had other work
(load 3 to 5): graded / script 0.24 to 0.31 in five runs, 0.26 to 0.33 with evidence and record
stored, own CPU 12 to 13 ms. Without byte code the script takes longer, and the ratio was 0.15.
"""

from __future__ import annotations

import argparse
import compileall
import multiprocessing
import resource
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from pytest_modelbench.attempt import Task, attempt
from pytest_modelbench.checks.grader import Grader
from pytest_modelbench.packs.model import Case
from pytest_modelbench.protocols.protocol import Harvested, Services, protocol_named
from pytest_modelbench.records import AttemptRecord, Candidate, Cell, Identity, Limits
from pytest_modelbench.store.evidence import Evidence
from pytest_modelbench.store.writer import RunInfo, Writer
from pytest_modelbench.worlds import repository
from pytest_modelbench.worlds.box import INTERPRETER
from pytest_modelbench.worlds.harvest import harvest
from pytest_modelbench.worlds.levels import choose
from pytest_modelbench.worlds.runs import close_run, open_run, runs_root

RATIO = 0.6
OWN_CPU = 0.030
"""Seconds a cell, of the worker and its git calls; without box, candidate and check."""

FILES = 20
PLAIN = """
import pytest
from calc import add

@pytest.mark.parametrize("a, b, expected", [(2, 3, 5), (-7, 7, 0), (0.5, 0.25, 0.75)])
def test_sum(a, b, expected):
    assert add(a, b) == expected

def test_arity():
    with pytest.raises(TypeError):
        add(1)
"""
HIDDEN = (
    PLAIN.replace("from calc import add\n", "")
    .replace("def test_sum(", "def test_sum(solution, ")
    .replace("def test_arity(", "def test_arity(solution")
    .replace("add(", "solution.load('calc').add(")
)


def main() -> int:
    """Measure, print, and compare with the goals."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=20, help="by each worker")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    compile_pytest()
    with tempfile.TemporaryDirectory(prefix="grading-cost-") as folder:
        case = write_case(Path(folder))
        context = multiprocessing.get_context("spawn")
        workers = []
        for number in range(options.workers):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=worker, args=(number, case, Path(folder), options.cells, theirs)
            )
            process.start()
            workers.append((process, ours))
        for _, pipe in workers:
            pipe.recv()  # warm: all begin at once
        for _, pipe in workers:
            pipe.send("go")
        seen = [pipe.recv() for _, pipe in workers]
        for process, _ in workers:
            process.join()
    return report(seen)


def compile_pytest() -> None:
    """Make the byte code of what the script imports, as an installer does: else it pays each time.

    Some machines install without, and the script's box cannot write beside the installed files.
    """
    for name in ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments"):
        spec = find_spec(name)
        for folder in () if spec is None else spec.submodule_search_locations or ():
            compileall.compile_dir(folder, maxlevels=10, quiet=2)


def report(seen: list[dict[str, list[float]]]) -> int:
    """Print the figures of all workers together; return the exit status."""
    together = {name: [x for one in seen for x in one[name]] for name in seen[0]}
    for name, values in together.items():
        unit = "ms CPU" if "cpu" in name else "ms"
        print(f"{name:28} median {statistics.median(values) * 1000:8.1f} {unit}")
    script = sum(together["script"])
    graded = sum(together["graded"]) / script
    stored = (sum(together["graded"]) + sum(together["stored"])) / script
    # The kernel counts CPU in ticks of some ms for short children, so the mean is taken.
    own = statistics.mean(together["cpu of worker"]) + statistics.mean(together["cpu of git"])
    print(f"graded / script              {graded:.2f}  (goal {RATIO})")
    print(f"graded and stored / script   {stored:.2f}")
    print(f"own CPU a cell, with git     {own * 1000:.1f} ms  (goal {OWN_CPU * 1000:.0f})")
    return 0 if graded <= RATIO and own <= OWN_CPU else 1


def write_case(folder: Path) -> Case:
    """Write a small project, its reference and its check."""
    seed, reference, hidden = (folder / name for name in ("seed", "reference", "hidden"))
    for place in (seed / "package", reference, hidden, folder / "plain"):
        place.mkdir(parents=True)
    (seed / "calc.py").write_text("def add(a, b):\n    raise NotImplementedError\n")
    for number in range(FILES):
        (seed / "package" / f"part{number}.py").write_text(f"VALUE = {number}\n" * 40)
    (reference / "calc.py").write_text("def add(a, b):\n    return a + b\n")
    (hidden / "test_calc.py").write_text(HIDDEN)
    (folder / "plain" / "test_calc.py").write_text(PLAIN)
    return Case(
        pack="cost",
        id="calc",
        folder=folder,
        manifest=folder / "case.toml",
        title="calc",
        prompt="Write add.",
        limits=Limits(),
        seed=seed,
        hidden=hidden,
        reference=reference,
    )


def worker(number: int, case: Case, folder: Path, cells: int, pipe: Connection) -> None:
    """Grade by turns, then try whole cells; send what was measured."""
    box = choose("strict")
    run = f"cost-{folder.name.rpartition('-')[2]}-{number}"
    found: dict[str, list[float]] = {
        name: [] for name in ("graded", "stored", "script", "cpu of worker", "cpu of git")
    }
    with open_run(runs_root(), run) as place:
        grader = Grader(box, scratch=place)
        services = Services(box, grader, None, place, folder / "seeds", lambda environment: None)
        evidence = Evidence(folder / "results")
        info = RunInfo(run=run, started="2026-01-01T00:00:00.000Z")
        with Writer(folder / "results", info) as writer:
            solved = solved_record(case, services, evidence, run)  # and all is warm
            work = solved_harvest(case)
            by_script(work, folder, place)
            pipe.send("warm")
            pipe.recv()
            for turn in range(cells):
                steps: list[Any] = [
                    lambda: graded(case, work, services, evidence, writer, solved, found),
                    lambda: found["script"].append(by_script(work, folder, place)),
                ]
                for step in steps if turn % 2 else reversed(steps):
                    step()
            for _ in range(cells):
                own_cpu(case, services, evidence, writer, run, found)
        grader.close()
    close_run(runs_root(), run)
    pipe.send(found)


def solved_harvest(case: Case) -> Harvested:
    """Return what a candidate that solved the case would have left."""
    assert case.seed is not None
    assert case.reference is not None
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(case.seed, folder, dirs_exist_ok=True)
        shutil.copytree(case.reference, folder, dirs_exist_ok=True)
        return Harvested(harvest(Path(folder)))


def graded(
    case: Case,
    work: Harvested,
    services: Services,
    evidence: Evidence,
    writer: Writer,
    record: AttemptRecord,
    found: dict[str, list[float]],
) -> None:
    """Observe and verify, then keep evidence and record."""
    protocol = protocol_named("agent")
    begin = time.monotonic()
    observation = protocol.observe(case, work, services)
    verdict = protocol.verify(case, work, observation)
    done = time.monotonic()
    if not verdict.passed:
        raise SystemExit(f"the reference does not pass: {observation}")
    evidence.put(observation.model_dump_json().encode())
    writer.append(record)
    found["graded"].append(done - begin)
    found["stored"].append(time.monotonic() - done)


def by_script(work: Harvested, folder: Path, place: Path) -> float:
    """Do what the script does; return the seconds."""
    begin = time.monotonic()
    tree = Path(tempfile.mkdtemp(dir=place))
    for path, data in work.harvest.files.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_bytes(data)
    shutil.copytree(folder / "plain", tree / "hidden_tests")
    spec = find_spec("pytest")
    assert spec is not None
    places = dict.fromkeys((str(Path(str(spec.origin)).parents[1]), sysconfig.get_path("purelib")))
    done = subprocess.run(
        [
            *("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
            *("--tmpfs", "/tmp", "--bind", str(tree), str(tree)),
            *("--unshare-all", "--die-with-parent"),
            *("--chdir", str(tree), INTERPRETER, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            "hidden_tests",
        ],
        env={
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": ":".join(places),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        capture_output=True,
        check=False,
    )
    shutil.rmtree(tree)
    if done.returncode != 0:
        raise SystemExit(f"the script's own pytest failed: {(done.stdout + done.stderr).decode()}")
    return time.monotonic() - begin


def solved_record(case: Case, services: Services, evidence: Evidence, run: str) -> AttemptRecord:
    """Try the case by its reference."""
    record = attempt(
        Task(
            Cell(case.pack, case.id, "reference", 1),
            case,
            Candidate(name="reference", agent="reference"),
            Identity(task="t", check="c", candidate="r"),
            run,
        ),
        services,
        evidence,
    )
    if record.verdict is None or not record.verdict.passed:
        raise SystemExit(f"the reference does not pass: {record}")
    return record


def own_cpu(
    case: Case,
    services: Services,
    evidence: Evidence,
    writer: Writer,
    run: str,
    found: dict[str, list[float]],
) -> None:
    """Try a whole cell; add the CPU of this process, and that of its git calls."""
    real = repository._git
    of_git = 0.0

    def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal of_git
        before = _children()
        try:
            return real(*arguments, **named)
        finally:
            of_git += _children() - before

    repository._git = counted
    try:
        before = time.process_time()
        writer.append(solved_record(case, services, evidence, run))
        found["cpu of worker"].append(time.process_time() - before)
        found["cpu of git"].append(of_git)
    finally:
        repository._git = real


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
