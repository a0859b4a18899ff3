from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def fr23_ids(data: Path) -> list[str]:
    text = (data / "field-reports/files/FR23-odd-ids.yaml").read_text(encoding="utf-8")
    found: list[str] = [case["id"] for case in yaml.safe_load(text)["cases"]]
    assert len(found) == 14
    return found


def test_odd_ids_are_refused_with_their_places_before_anything_runs(
    project: Any, data: Path
) -> None:
    project.pack("plain")
    # A case's id is its folder's name, so those with a slash, or of 255 bytes, cannot be written.
    odd = [one for one in fr23_ids(data) if not ID.fullmatch(one) and "/" not in one]
    assert len(odd) == 9
    for one in odd:
        project.write(f"cases/tiny/{one}/case.toml", "title = 'x'\nprompt = 'x'\n")
    ran = project.run("--models", "seed", "-n", "2")
    assert ran.exit == 4, ran.out
    for one in odd:
        assert f"{one!r} cannot be the id of a case" in ran.out
    assert "case.toml" in ran.out
    assert not project.results.exists()


def test_awkward_legal_ids_work_all_the_way(project: Any, data: Path) -> None:
    awkward = [one for one in fr23_ids(data) if ID.fullmatch(one) and len(one) <= 100]
    assert awkward == ["CON", "ends-in-dot."]
    project.pack(*awkward)
    listed = project.run("--models", "seed", "--co", "-q")
    assert "test_case[ends-in-dot.:seed:1]" in listed.out
    assert project.run("--models", "seed", "-n", "2").exit == 0
    again = project.run("--models", "seed", "-v", "cases/tiny/pack.toml::test_case[CON:seed:1]")
    assert again.exit == 0, again.out
    assert "UNSOLVED (stored)" in again.out
    assert [record.case for record in project.tries("seed")].count("CON") == 1


def test_ids_that_one_file_system_would_merge_are_refused(project: Any) -> None:
    project.pack("Same", "same")
    ran = project.run("--models", "seed")
    assert ran.exit == 4, ran.out
    assert "Same" in ran.out
    assert "same" in ran.out
    assert not project.results.exists()


def test_two_packs_of_one_name_are_refused_with_both_files(project: Any) -> None:
    project.pack("a").pack("a", name="twin")
    text = (project.path / "cases/twin/pack.toml").read_text()
    project.write("cases/twin/pack.toml", text.replace('"twin"', '"tiny"'))
    ran = project.run("--models", "seed")
    assert ran.exit == 4
    assert "cases/tiny/pack.toml" in ran.out
    assert "cases/twin/pack.toml" in ran.out


def test_workers_collect_the_same_cells_in_the_same_order(project: Any) -> None:
    cases = [f"c{n}" for n in range(12)]
    project.pack(*cases)
    environ = {"PYTHONHASHSEED": ""}  # empty is as good as unset: each process draws its own
    os.environ.pop("PYTHONHASHSEED", None)
    ran = project.run("--models", "seed,reference", "-n", "4", "--co", "-q", environ=environ)
    alone = project.run("--models", "seed,reference", "--co", "-q", environ=environ)
    lines = [line for line in alone.out.splitlines() if "::test_case[" in line]
    assert len(lines) == 24
    assert alone.exit == ran.exit == 0, ran.out
    measured = project.run("--models", "seed", "-n", "4", environ=environ)
    assert measured.exit == 0, measured.out
    assert "collected different" not in measured.out
    assert sum(map(len, measured.junit.values())) == 12


@pytest.mark.parametrize("workers", ["0", "2"])
def test_printed_node_id_runs_that_cell_and_resumes(project: Any, workers: str) -> None:
    project.certified("a.b", "a-b").scripted("a-b-c")
    nodeid = "cases/tiny/pack.toml::test_case[a-b:a-b-c:1]"
    ran = project.run("-n", workers, nodeid)
    assert ran.exit == 0, ran.out
    assert set(ran.junit) == {"test_case[a-b:a-b-c:1]"}
    again = project.run("-n", workers, "--models", "a-b-c", nodeid)
    assert again.exit == 0, again.out
    assert set(again.junit) == {"test_case[a-b:a-b-c:1]"}
    assert len(project.tries("a-b-c")) == 1
