"""What lists and does not try: no attempt is made, nothing is shown, no look counts."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize("option", ["--fixtures", "--setup-plan"])
def test_a_listing_of_pytest_tries_nothing(project: Any, option: str) -> None:
    project.certified("a").scripted("right")

    ran = project.run("--models", "right", option, "cases")

    assert ran.exit == 0, ran.out
    assert "modelbench: tiny ===" not in ran.out
    assert not project.verdicts("right")
    assert not (project.path / "results" / "looks.jsonl").exists()


def test_a_deselected_cell_makes_a_run_partial(project: Any) -> None:
    project.certified("a", "b").scripted("right")

    ran = project.run(
        "--models", "right", "--deselect", "cases/tiny/pack.toml::test_case[b:right:1]", "cases"
    )

    assert ran.outcomes() == {"passed": 1, "deselected": 1}
    assert "partial  a partial run has no scorecard" in ran.out
