from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_modelbench.errors import StoreProblem
from pytest_modelbench.store.layout import (
    prepare,
    quoted,
    results_file,
    results_files,
    stored_candidates,
    unquoted,
)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=16))
def test_any_name_is_one_safe_folder_and_comes_back(name: str) -> None:
    folder = quoted(name)

    assert unquoted(folder) == name
    assert not set(folder) & set('/\\:*?"<>| \n\0')
    assert not folder.startswith(".")
    assert not folder.endswith((".", " "))


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("local-coder", "local-coder"),
        ("gpt-4.1", "gpt-4.1"),
        ("reference+no-newline", "reference+no-newline"),
        ("openai/qwen:7b", "openai%2Fqwen%3A7b"),
        ("..", "%2E%2E"),
        ("100%", "100%25"),
        ("con", "%63on"),
        ("Nul.v2", "%4Eul.v2"),
        ("console", "console"),
    ],
)
def test_names_as_folders(name: str, folder: str) -> None:
    assert quoted(name) == folder
    assert unquoted(folder) == name


@pytest.mark.parametrize("name", ["", "x" * 201, "é" * 40])
def test_a_name_that_no_folder_can_have_is_refused_with_the_remedy(name: str) -> None:
    with pytest.raises(StoreProblem, match=r"alias .* in modelbench\.toml"):
        quoted(name)


def test_one_file_a_run_sorted_by_start(tmp_path: Path) -> None:
    path = results_file(tmp_path, "executor", "openai/gpt", "2026-01-09T09:20:00.123Z", "ab12")

    assert path == tmp_path / "executor" / "openai%2Fgpt" / "20260109T092000Z-ab12.jsonl"


def test_only_results_of_the_asked_candidates_are_listed(tmp_path: Path) -> None:
    for pack, candidate in [("one", "a"), ("one", "b/c"), ("two", "a")]:
        path = results_file(tmp_path, pack, candidate, "2026-01-09T09:20:00Z", "r")
        path.parent.mkdir(parents=True)
        path.touch()
    prepare(tmp_path)

    assert stored_candidates(tmp_path) == [("one", "a"), ("one", "b/c"), ("two", "a")]
    assert len(list(results_files(tmp_path))) == 3
    assert [p.parent.name for p in results_files(tmp_path, {"one"}, {"b/c"})] == ["b%2Fc"]
    assert list(results_files(tmp_path / "none")) == []


def test_git_sees_results_and_neither_evidence_nor_locks(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    root = tmp_path / "results"
    prepare(root)
    for name in (".evidence/ab/ab12", ".locks/controller", "p/c/r.jsonl"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x", encoding="utf-8")

    seen = subprocess.run(
        ["git", "-C", str(tmp_path), "status", "--porcelain", "-uall"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout

    assert {line[3:] for line in seen.splitlines()} == {
        "results/.gitattributes",
        "results/.gitignore",
        "results/p/c/r.jsonl",
    }


def test_git_files_of_the_user_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("mine\n", encoding="utf-8")
    prepare(tmp_path)

    assert (tmp_path / ".gitignore").read_text(encoding="utf-8") == "mine\n"
    assert "merge=union" in (tmp_path / ".gitattributes").read_text(encoding="utf-8")


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(StoreProblem, match=r"file/results: .*; .*--modelbench-results"):
        prepare(tmp_path / "file" / "results")
