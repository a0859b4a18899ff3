"""Run pytest on a folder as a program, and measure what it costs: for the benchmarks beside it."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PLUGINS = ("-p", "xdist.plugin", "-p", "pytest_modelbench.plugin")

_ENVIRONMENT = {
    "PYTEST_ADDOPTS": "",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "PYTHONDONTWRITEBYTECODE": "",
}


@dataclass(frozen=True)
class Cost:
    """Seconds of processor time, of a run and all its processes, and of wall time."""

    cpu: float
    wall: float


def run(folder: Path, *args: str, exits: Sequence[int] = (0,)) -> tuple[Cost, str]:
    """Run pytest in a folder; SystemExit with its output when it ends in another way.

    With our plugin and xdist alone: what a developer's other plugins do with each report is theirs.
    Modules are compiled once, as an installation does, and not in every run.
    """
    before, began = _children(), time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *PLUGINS, "-p", "no:cacheprovider", *args],
        cwd=folder,
        env=os.environ | _ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    cost = Cost(_children() - before, time.monotonic() - began)
    if done.returncode not in exits:
        raise SystemExit(f"pytest {' '.join(args)} ended in {done.returncode}:\n{done.stdout}")
    return cost, done.stdout


def median(costs: Sequence[Cost]) -> Cost:
    """Return the medians of some costs."""
    return Cost(
        statistics.median(cost.cpu for cost in costs),
        statistics.median(cost.wall for cost in costs),
    )


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
