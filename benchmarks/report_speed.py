"""Measure reading and reporting of stored results against a streamed ``json`` read of the lines.

Prints ratios taken in one run, the measured programs in turn, each in a process of its own, and
exits with 1 where one is beyond its bound:

    python benchmarks/report_speed.py
    python benchmarks/report_speed.py --results 20000 --rounds 5

The store has ten candidates, ten repeats and lines of 2 kB. A report is counted by two processes
where there are two cores: on a busy machine compare the CPU seconds.

Memory is measured in a round of its own: at each moment that of the first process, and of each that
it forked what it does not share; the most of all moments. ``ru_maxrss`` would not do, as a program
inherits that of the one that started it.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from pytest_modelbench.records import (
    AttemptRecord,
    Check,
    Identity,
    Outcome,
    Role,
    Usage,
    Verdict,
)
from pytest_modelbench.store.layout import results_file
from pytest_modelbench.store.writer import Grid, RunInfo

BOUNDS = {
    "index of all": (1.5, 64),
    "report of all": (1.5, 64),
}
"""Most times the streamed read, and most MiB more than it."""

INDEX_SECONDS = 0.25
SUMMARY_SECONDS = 2.0

MEASURE = """
import json, resource, sys, time
from pathlib import Path
root = Path(sys.argv[1])
{imports}
began = time.perf_counter()
{work}
took = time.perf_counter() - began
own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
cpu = own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime
status = Path("/proc/self/status").read_text()
peak = int(status.partition("VmHWM:")[2].split()[0])
print(json.dumps([took, cpu, peak / 1024]))
"""

SAMPLED_SECONDS = 0.005
"""Between two looks at a program's memory."""

STREAMED = """
passed = 0
for path in sorted(root.rglob("*.jsonl")):
    with path.open(encoding="utf-8") as file:
        for line in file:
            passed += json.loads(line).get("outcome") == "passed"
"""

PROGRAMS = {
    "streamed json": ("", STREAMED),
    "index of all": ("from pytest_modelbench.store.reader import read", "index = read(root)"),
    "report of all": (
        "from pytest_modelbench.report.stored import report_all\n"
        "from pytest_modelbench.report.terminal import render",
        "lines = [render(card) for card in report_all(root).cards]",
    ),
}


def main() -> int:
    """Make the stores, measure, print, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        large, small, wide = (Path(folder) / name for name in ("large", "small", "wide"))
        size = fill(large, candidates=10, cases=options.results // 100, repeats=10)
        fill(small, candidates=2, cases=500, repeats=10)
        fill(wide, candidates=30, cases=500, repeats=1)
        print(f"{options.results:,} results, {size / options.results / 1000:.2f} kB a line")
        peaks = {name: peak(name, large) for name in PROGRAMS}
        runs: dict[str, list[Measured]] = {name: [] for name in PROGRAMS}
        for _ in range(options.rounds):
            for name in PROGRAMS:
                runs[name].append(measure(name, large))
        streamed = runs["streamed json"]
        print("                 wall s  CPU s    MiB   ratio of wall, of CPU")
        for name, measured in runs.items():
            wall, cpu, _ = (median(column) for column in zip(*measured, strict=True))
            told = f"{name:16} {wall:6.2f} {cpu:6.2f} {peaks[name]:6.0f}"
            if name in BOUNDS:
                most, more = BOUNDS[name]
                pairs = list(zip(measured, streamed, strict=True))
                ratio = median(one.wall / other.wall for one, other in pairs)
                of_cpu = median(one.cpu / other.cpu for one, other in pairs)
                extra = peaks[name] - peaks["streamed json"]
                bad = ratio > most or extra > more
                failed |= bad
                told += f"   {ratio:.2f}x, {of_cpu:.2f}x (at most {most}x), "
                told += f"{extra:+.0f} MiB (at most {more})" + ("  BEYOND" if bad else "")
            print(told)
        for name, program, root, most in (
            ("index of 10,000", "index of all", small, INDEX_SECONDS),
            ("30 x 500 summary", "report of all", wide, SUMMARY_SECONDS),
        ):
            took = min(measure(program, root).wall for _ in range(options.rounds))
            failed |= took > most
            beyond = "  BEYOND" if took > most else ""
            print(f"{name:16} {took:6.2f} s              at most {most} s{beyond}")
    return int(failed)


class Measured(NamedTuple):
    """Seconds of wall and CPU of a program, and peak MiB of its first process."""

    wall: float
    cpu: float
    peak: float


def measure(name: str, root: Path) -> Measured:
    """Run a program in a fresh process."""
    done = subprocess.run(_command(name, root), check=True, capture_output=True, text=True)
    return Measured(*json.loads(done.stdout))


def peak(name: str, root: Path) -> float:
    """Return the most MiB that a program and its processes had at one moment."""
    most = 0.0
    with subprocess.Popen(_command(name, root), stdout=subprocess.PIPE, text=True) as running:
        while running.poll() is None:
            most = max(most, _memory(running.pid))
            time.sleep(SAMPLED_SECONDS)
        assert running.stdout is not None  # it is a pipe
        return max(most, Measured(*json.loads(running.stdout.read())).peak)


def _command(name: str, root: Path) -> list[str]:
    imports, work = PROGRAMS[name]
    return [sys.executable, "-c", MEASURE.format(imports=imports, work=work), str(root)]


def _memory(pid: int) -> float:
    """Return MiB of a process and, of each that it forked, what it does not share."""
    try:
        kib = _sized(f"/proc/{pid}/status", ("VmRSS:",))
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            kib += _sized(f"/proc/{child}/smaps_rollup", ("Private_Clean:", "Private_Dirty:"))
    except OSError:  # one of them has just ended
        return 0.0
    return kib / 1024


def _sized(path: str, fields: tuple[str, ...]) -> int:
    lines = Path(path).read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(fields))


def fill(root: Path, *, candidates: int, cases: int, repeats: int) -> int:
    """Write a store as the writer does, without its syncs; return its bytes."""
    draw = random.Random(20260109)
    names = [f"candidate-{number:02}" for number in range(candidates)]
    case_ids = [f"case-{number:04}" for number in range(cases)]
    info = RunInfo(
        run="run-1",
        started="2026-01-09T09:00:00.000Z",
        grid=Grid(cases={"pack": tuple(case_ids)}, candidates=tuple(names), repeats=repeats),
    )
    size = 0
    for number, name in enumerate(names):
        path = results_file(root, "pack", name, info.started, info.run)
        path.parent.mkdir(parents=True)
        with path.open("w", encoding="ascii") as file:
            file.write(info.header("pack", name) + "\n")
            for repeat in range(1, repeats + 1):
                for case in case_ids:
                    skill = 0.4 + 0.4 * number / candidates
                    file.write(attempt(draw, name, case, repeat, skill).to_line() + "\n")
        size += path.stat().st_size
    return size


def attempt(
    draw: random.Random, candidate: str, case: str, repeat: int, skill: float
) -> AttemptRecord:
    """Return a record such as a coding attempt leaves."""
    passed = draw.random() < skill
    lost = draw.randrange(5)
    checks = tuple(
        Check(
            name=f"test_behaviour_{n}",
            passed=passed or n != lost,
            reason="" if passed or n != lost else "AssertionError",
        )
        for n in range(5)
    )
    seconds = draw.uniform(3, 60)
    return AttemptRecord(
        id=f"{draw.getrandbits(64):016x}",
        run="run-1",
        pack="pack",
        case=case,
        candidate=candidate,
        repeat=repeat,
        identity=Identity(task=f"t-{case}" * 4, check=f"c-{case}" * 4, candidate=candidate * 3),
        outcome=Outcome.PASSED if passed else Outcome.UNSOLVED,
        verdict=Verdict(
            passed=passed, reward=float(passed), checks=checks, reason="" if passed else "wrong"
        ),
        started=f"2026-01-09T{draw.randrange(24):02}:{draw.randrange(60):02}:00.123Z",
        seconds=seconds,
        working=seconds * 0.9,
        usage={
            Role.CANDIDATE: Usage(
                requests=6,
                calls=6,
                input=draw.randrange(2000, 40_000),
                cached=draw.randrange(2000),
                output=draw.randrange(200, 4000),
                list_usd=draw.random() / 50,
                price="litellm 1.80",
            )
        },
        counts={"turns": draw.randrange(2, 20), "failed_commands": draw.randrange(3)},
        box="bubblewrap",
        served_model="served/model-name",
        versions={"pytest-modelbench": "0.1.0", "litellm": "1.80.0", "python": "3.11.7"},
        harvest={"calc.py": "".join(draw.choices("abcdefgh \n()=", k=880))},
        evidence={"transcript": f"sha256:{draw.getrandbits(256):064x}"},
    )


if __name__ == "__main__":
    sys.exit(main())
