"""What a rerun of stored cells costs, against bare pytest that deselects as many items.

    python benchmarks/replay_cost.py [--cases 500] [--candidates 4] [--repeats 5] [--runs 5]

A project with so many stored verdicts (lines of about 2 kB, certificates beside them) is rerun with
``-n 0`` and ``-n 2``, JUnit included; bare pytest collects as many parametrized items and deselects
them. Runs alternate, so that the ratios are of one time; the figures are processor seconds of all
processes, medians. Exits 1 where a ratio is above 2.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path

from measured_runs import Cost, median, run

from pytest_modelbench.bench import plan_inputs
from pytest_modelbench.candidates.registry import Registry
from pytest_modelbench.packs.reading import read_packs
from pytest_modelbench.plan import certificate_cells
from pytest_modelbench.records import AttemptRecord, Candidate, Cell, Check, Outcome, Verdict
from pytest_modelbench.settings import Settings, new_run_id
from pytest_modelbench.store.index import Index
from pytest_modelbench.store.layout import prepare, results_file
from pytest_modelbench.store.writer import RunInfo

GOAL = 2.0
STARTED = "2026-01-02T03:04:05.678Z"
PACK = "replayed"


def main() -> int:
    """Print the ratios; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--candidates", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    names = [f"candidate{n}" for n in range(options.candidates)]
    count = options.cases * options.candidates * options.repeats
    with tempfile.TemporaryDirectory(prefix="replay-cost-") as temporary:
        stored, bare = Path(temporary, "stored"), Path(temporary, "bare")
        write_project(stored, options.cases, names)
        size = store_verdicts(stored, names, options.repeats)
        write_bare(bare, count)
        print(f"{count} stored cells, {size / count:.0f} bytes each")
        return compare(stored, bare, names, count, options.repeats, options.runs)


def compare(stored: Path, bare: Path, names: list[str], count: int, repeats: int, runs: int) -> int:
    """Measure both, turn by turn, and print what came out."""
    worst = 0.0
    for workers in ("0", "2"):
        ours: list[Cost] = []
        theirs: list[Cost] = []
        for _ in range(runs):
            cost, _ = run(bare, "-q", "-n", workers, "--junitxml=j.xml", "-k", "kept")
            theirs.append(cost)
            cost, out = run(
                stored,
                *("-q", "-n", workers, "--junitxml=j.xml", "--models", ",".join(names)),
                *("--modelbench-repeats", str(repeats)),
            )
            ours.append(cost)
            found = (stored / "j.xml").read_text(encoding="utf-8").count("<testcase ")
            if found != count or not re.search(rf"\b{count // 2} passed", out):
                raise SystemExit(f"{found} test cases, not {count}:\n{out}")
        mine, other = median(ours), median(theirs)
        ratio = mine.cpu / other.cpu
        worst = max(worst, ratio)
        print(
            f"-n {workers}: {mine.cpu:.2f} s of processor time, bare pytest {other.cpu:.2f} s, "
            f"ratio {ratio:.2f} (goal {GOAL:g}); wall {mine.wall:.2f} and {other.wall:.2f} s"
        )
    return int(worst > GOAL)


def write_project(folder: Path, cases: int, names: list[str]) -> None:
    """Write a pack of so many small cases, and candidates that are never asked."""
    pack = folder / "cases" / PACK
    pack.mkdir(parents=True)
    (folder / "pytest.ini").write_text("[pytest]\n")
    (pack / "pack.toml").write_text(f'[pack]\nname = "{PACK}"\n[limits]\nturns = 5\n')
    for number in range(cases):
        case = pack / f"case-{number:04}"
        reference = folder / "reference_solutions" / PACK / case.name
        for below in (case / "seed", case / "hidden", reference):
            below.mkdir(parents=True)
        (case / "case.toml").write_text(f'title = "{number}"\nprompt = "Write {number}."\n')
        (case / "seed/answer.txt").write_text("nothing\n")
        (case / "hidden/test_answer.py").write_text(
            f"def test_answer(solution):\n    assert solution.files['answer.txt'] == b'{number}'\n"
        )
        (reference / "answer.txt").write_text(str(number))
    tables = [
        f'[candidates.{n}]\nmodel = "openai/{n}"\napi_base = "http://127.0.0.1:9/v1"\n'
        for n in names
    ]
    (folder / "modelbench.toml").write_text("\n".join(tables))


def store_verdicts(folder: Path, names: list[str], repeats: int) -> int:
    """Write results of every cell, every second a pass, and certificates; return their bytes."""
    results = folder / "results"
    prepare(results)
    packs = read_packs([folder / "cases" / PACK], folder / "reference_solutions")
    registry = Registry.read(folder)
    candidates = registry.resolve(names)
    settings = Settings(
        root=str(folder),
        references=str(folder / "reference_solutions"),
        results=str(results),
        models=tuple(names),
        run=new_run_id(),
        started=STARTED,
        repeats=repeats,
    )
    inputs = plan_inputs(settings, packs, candidates, Index(), registry)
    info = RunInfo(run=settings.run, started=STARTED)
    lines: dict[str, list[str]] = {}
    for number, case in enumerate(packs[0].cases):
        grid = [Cell(PACK, case.id, name, n) for name in names for n in range(1, repeats + 1)]
        for cell in (*certificate_cells(case), *grid):
            known: Candidate = next((c for c in candidates if c.name == cell.candidate), None) or (
                inputs.built_in(cell.candidate)
            )
            passed = (
                (number + cell.repeat + names.index(cell.candidate)) % 2 == 0
                if (cell in grid)
                else cell.candidate == "reference"
            )
            record = AttemptRecord(
                id=new_run_id() + new_run_id(),
                run=settings.run,
                **cell._asdict(),
                identity=inputs.identify(case, known),
                outcome=Outcome.PASSED if passed else Outcome.UNSOLVED,
                verdict=Verdict(
                    passed=passed,
                    reward=float(passed),
                    checks=(
                        Check(name="test_answer", passed=passed, reason="" if passed else "wrong"),
                    ),
                    reason="" if passed else "wrong",
                ),
                started=STARTED,
                seconds=12.5,
                harvest={"manifest": "x" * 1300},
            )
            lines.setdefault(cell.candidate, [info.header(PACK, cell.candidate)]).append(
                record.to_line()
            )
    size = 0
    for candidate, held in lines.items():
        path = results_file(results, PACK, candidate, STARTED, settings.run)
        path.parent.mkdir(parents=True)
        path.write_text("\n".join(held) + "\n", encoding="ascii")
        size += path.stat().st_size if candidate in names else 0
    return size


def write_bare(folder: Path, count: int) -> None:
    """Write a module of as many parametrized items, and the one that is kept."""
    folder.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_bare.py").write_text(
        "import pytest\n\n"
        f"@pytest.mark.parametrize('number', range({count}))\n"
        "def test_number(number):\n    pass\n\n"
        "def test_kept():\n    pass\n"
    )


if __name__ == "__main__":
    sys.exit(main())
