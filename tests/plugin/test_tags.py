"""The tags of cases are marks of their items: ``-m`` selects by them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Project


def _tagged(project: Project) -> Project:
    project.certified("one", "two", "three").scripted("right")
    for case, tags in (("one", "['odd', 'skip']"), ("three", "['odd', 'level:hard']")):
        with (project.path / f"cases/tiny/{case}/case.toml").open("a", encoding="utf-8") as file:
            file.write(f"tags = {tags}\n")
    project.write("pytest.ini", "[pytest]\nstrict_markers = true\nfilterwarnings = error\n")
    project.write(
        "test_own.py",
        "import pytest\n\n"
        "@pytest.mark.modelbench(pack='tiny')\n"
        "def test_own(attempt):\n    assert attempt.case.id != 'two'\n",
    )
    return project


def test_cells_and_own_tests_are_selected_by_tag(project: Project) -> None:
    """One that is named as a mark of pytest's own is none."""
    ran = _tagged(project).run("--models", "right", "-m", "odd", "-n", "2", ".")
    assert ran.exit == 0, ran.out
    assert {cell.case for cell in project.verdicts("right")} == {"one", "three"}
    assert ran.outcomes()["passed"] == 4
    assert ran.outcomes().get("skipped", 0) == 0


def test_a_report_of_nothing_selected_shows_nothing(project: Project) -> None:
    ran = _tagged(project).run("--models", "right", "-m", "odd and not odd")
    assert ran.exit == pytest.ExitCode.NO_TESTS_COLLECTED, ran.out
    assert "3 deselected" in ran.out
    assert "INTERIM" not in ran.out
    assert "verdicts" not in ran.out


def test_a_tag_with_a_colon_selects(project: Project) -> None:
    _tagged(project).write("pytest.ini", "[pytest]\n")
    ran = project.run("--models", "right", "-m", "level:hard", "--collect-only", "-q")
    assert ran.out.splitlines()[0] == "cases/tiny/pack.toml::test_case[three:right:1]"
    assert "1/3 tests collected" in ran.out
