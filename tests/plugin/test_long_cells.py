"""A run says that it works while every cell is long."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Project


@pytest.mark.parametrize("workers", ["0", "1"])
def test_line_is_printed_while_a_cell_is_at_work(project: Project, workers: str) -> None:
    project.certified("a").scripted("slow", delay_s=3.0)
    project.write(
        "conftest.py",
        "from pytest_modelbench import heartbeat\n\n"
        "heartbeat.FIRST_SECONDS = heartbeat.LEAST_SECONDS = heartbeat.LOOK_SECONDS = 0.2\n",
    )
    ran = project.run("--models", "slow", "-n", workers)
    assert ran.exit == 0, ran.out
    line = next(line for line in ran.out.splitlines() if "1 running" in line)
    said = r"modelbench \d:\d\d  0/1 verdicts  0 faults  1 running  oldest \d:\d\d a:slow:1"
    assert re.fullmatch(said, line)
