"""What a pack of 3,641 BFCL cases costs: collecting it, certifying it; and what verdicts cost.

    python benchmarks/bfcl_scale.py [--data FOLDER] [--profile]

The records are those of ``--data`` (by default the project's own subset), repeated under new ids
until every category has as many as upstream's, and with text of theirs changed so that no two are
equal. Exits 1 when a goal is missed; goals are of processor time, so that they hold on a machine
that has much else to do.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import sqlite3
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from measured_runs import Cost, run

from pytest_modelbench.benchmarks.benchmark import Benchmark
from pytest_modelbench.packs.model import Case
from pytest_modelbench.packs.reading import read_pack
from pytest_modelbench.protocols.benchmark import HARVEST, BenchmarkProtocol, play
from pytest_modelbench.protocols.protocol import Harvested, Services
from pytest_modelbench.records import REFERENCE, Candidate
from pytest_modelbench.worlds.harvest import FILE_MODE, Harvest

SIZES = {
    "simple_python": 400,
    "simple_java": 100,
    "simple_javascript": 50,
    "multiple": 200,
    "parallel": 200,
    "parallel_multiple": 200,
    "irrelevance": 240,
    "live_simple": 258,
    "live_multiple": 1053,
    "live_parallel": 16,
    "live_parallel_multiple": 24,
    "live_irrelevance": 884,
    "live_relevance": 16,
}
ROOT = Path(__file__).parents[1]
DATA, BIRD = ROOT / "tests" / "data" / "bfcl" / "cases", ROOT / "tests" / "data" / "bird"
TABLE = ROOT / "cases" / "bank-booking"
COLLECTING, CERTIFYING, VERDICT = 3.0, 60.0, 0.005
"""Goals in seconds of processor time: the first two of a run, the last of one verdict."""


def main() -> int:
    """Print what each costs beside its goal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--profile", action="store_true", help="of collecting, in this process")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bfcl-scale-") as temporary:
        folder = Path(temporary)
        count = write(folder, arguments.data)
        print(f"{count} cases")
        if arguments.profile:
            profile(folder)
            return 0
        plain, _ = run(folder, "-q", "--collect-only", "--models", "reference", "cases")
        # Gold that the rules refuse is an ordinary failure, and upstream has some.
        made, out = run(folder, "-q", "--models", "reference,seed", "cases", exits=(0, 1))
        collecting, _ = run(folder, "-q", "--collect-only", "--models", "scripted", "cases")
        print(out.splitlines()[-1])
        bird = read_pack(folder / "bird", folder).cases
        of_query = query_seconds(bird, BIRD / "superhero.sqlite")
        verdicts = {
            "BFCL": verdict_seconds(read_pack(folder / "cases" / "bfcl", folder).cases),
            "a table": verdict_seconds(read_pack(TABLE, folder).cases),
            "BIRD, beyond its query": verdict_seconds(bird) - of_query,
        }
    ok = told("collects, reference alone", plain, COLLECTING)
    ok &= told("collects, with certificates", collecting, COLLECTING)
    ok &= told("certifies", made, CERTIFYING)
    for what, seconds in verdicts.items():
        print(f"a verdict of {what}: {1000 * seconds:.2f} ms, goal {1000 * VERDICT:g}")
        ok &= seconds < VERDICT
    return 0 if ok else 1


def write(folder: Path, data: Path) -> int:
    """Write a project with the pack; return how many cases it has."""
    place = folder / "cases" / "bfcl" / "data"
    place.mkdir(parents=True)
    count = 0
    for category, size in SIZES.items():
        known = [json.loads(line) for line in (data / f"{category}.jsonl").open(encoding="utf-8")]
        with (place / f"{category}.jsonl").open("w", encoding="utf-8") as file:
            for number in range(size):
                record = json.loads(json.dumps(known[number % len(known)]))
                record["id"] = f"{category}_{number}"
                record["question"][0][-1]["content"] += f" ({number})"
                file.write(json.dumps(record) + "\n")
                count += 1
    texts = {
        "pytest.ini": "[pytest]\n",
        "cases/bfcl/pack.toml": '[benchmark]\nuse = "bfcl"\n',
        "bird/pack.toml": (
            f'[benchmark]\nuse = "bird"\nquestions = "{BIRD}/questions.json"\n'
            f'databases = "{BIRD}"\n'
        ),
        "script.toml": '[[default.steps]]\ncontent = "None of them."\n',
        "modelbench.toml": '[candidates.scripted]\nagent = "scripted"\nscript = "script.toml"\n',
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return count


def verdict_seconds(cases: Sequence[Case]) -> float:
    """Return the processor time of observing and verifying what the reference leaves, the mean."""
    protocol, services = BenchmarkProtocol(), cast(Services, SimpleNamespace(box=None))
    reference = Candidate(name=REFERENCE, agent=REFERENCE)
    used = 0.0
    for case in cases:
        assert case.source is not None
        assert case.given is not None
        benchmark, given = cast(Benchmark[object], case.source.benchmark), case.given
        world = benchmark.setup(given.public, Path(tempfile.gettempdir()))
        left = benchmark.harvest(world, play(benchmark, given, reference, benchmark.tools(world)))
        harvested = Harvested(Harvest({HARVEST: json.dumps(left).encode()}, {HARVEST: FILE_MODE}))
        protocol.observe(case, harvested, services)  # what is kept of the gold is there then
        began = time.process_time()
        protocol.verify(case, harvested, protocol.observe(case, harvested, services))
        used += time.process_time() - began
    return used / len(cases)


def query_seconds(cases: Sequence[Case], database: Path) -> float:
    """Return the processor time of running the gold alone, the mean over cases of BIRD."""
    began = time.process_time()
    for case in cases:
        assert case.given is not None
        with closing(sqlite3.connect(database)) as connection:
            connection.execute(str(case.given.private.data["sql"])).fetchall()
    return (time.process_time() - began) / len(cases)


def told(what: str, cost: Cost, goal: float) -> bool:
    """Print a cost beside its goal; return whether that is met."""
    print(
        f"{what}: {cost.cpu:.2f} s of processor time, {cost.wall:.2f} s of wall time, goal {goal:g}"
    )
    return cost.cpu < goal


def profile(folder: Path) -> None:
    """Print where the time goes when the pack is read and planned, in one process."""
    import os

    import pytest

    os.chdir(folder)
    profiler = cProfile.Profile()
    profiler.enable()
    pytest.main(["-q", "-q", "-p", "no:cacheprovider", "--collect-only", "--models", "reference"])
    profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(40)


if __name__ == "__main__":
    sys.exit(main())
