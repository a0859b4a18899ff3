"""What one scripted cell costs from the command to the summary, against bare pytest with one test.

    python benchmarks/start_cost.py [--runs 5]

The case is certified before. Runs alternate, so that the ratios are of one time. A second line says
what the plugin adds to a project that does not use it.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from measured_runs import Cost, median, run

SCRIPT = """\
[[default.steps]]
calls = [
  { name = "write_file", arguments = { path = "answer.txt", content = "one\\n" } },
  { name = "finish" },
]
"""


def main() -> int:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory(prefix="start-cost-") as temporary:
        folder = Path(temporary)
        write(folder)
        cell = ("-q", "--models", "scripted")
        run(folder, *cell)  # certifies
        costs: dict[str, list[Cost]] = {"one cell": [], "installed": [], "bare": []}
        for _ in range(runs):
            shutil.rmtree(folder / "results/tiny/scripted")
            costs["one cell"].append(run(folder, *cell)[0])
            costs["installed"].append(run(folder, "-q", "test_one.py")[0])
            costs["bare"].append(run(folder, "-q", "-p", "no:modelbench", "test_one.py")[0])
    bare = median(costs.pop("bare"))
    print(
        f"bare pytest, one test: {bare.cpu:.2f} s of processor time, {bare.wall:.2f} s of wall time"
    )
    for name, found in costs.items():
        cost = median(found)
        print(
            f"{name}: {cost.cpu:.2f} s of processor time, {cost.wall:.2f} s of wall time; "
            f"ratios {cost.cpu / bare.cpu:.2f} and {cost.wall / bare.wall:.2f}"
        )
    return 0


def write(folder: Path) -> None:
    """Write a project with one case, one scripted candidate and one plain test."""
    files = {
        "pytest.ini": "[pytest]\n",
        "test_one.py": "def test_one():\n    pass\n",
        "cases/tiny/pack.toml": '[pack]\nname = "tiny"\n[limits]\nturns = 5\nseconds = 30\n',
        "cases/tiny/a/case.toml": 'title = "a"\nprompt = "Write one into answer.txt."\n',
        "cases/tiny/a/seed/answer.txt": "nothing\n",
        "cases/tiny/a/hidden/test_answer.py": (
            "def test_answer(solution):\n    assert solution.files['answer.txt'] == b'one\\n'\n"
        ),
        "reference_solutions/tiny/a/answer.txt": "one\n",
        "script.toml": SCRIPT,
        "modelbench.toml": '[candidates.scripted]\nagent = "scripted"\nscript = "script.toml"\n',
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
