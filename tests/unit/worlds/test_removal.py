from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from pytest_modelbench.worlds.removal import remove


def test_missing_folder_is_no_problem(tmp_path: Path) -> None:
    assert remove(tmp_path / "absent") == ()
    assert remove(tmp_path / "absent" / "inner") == ()


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "link").symlink_to(tmp_path / "kept")
    assert remove(tmp_path / "folder") == ()
    assert [path.name for path in tmp_path.rglob("*")] == ["kept", "file"]


def test_depth_and_closed_folders(tmp_path: Path) -> None:
    top = tmp_path / "folder"
    top.mkdir()
    here = Path.cwd()
    os.chdir(top)
    try:
        for _ in range(500):
            Path("x" * 200).mkdir()
            os.chdir("x" * 200)
        Path("file").touch()
        Path().chmod(0)
    finally:
        os.chdir(here)
    assert remove(top) == ()
    assert list(tmp_path.iterdir()) == []


def test_what_will_not_go_is_told(tmp_path: Path) -> None:
    stuck = tmp_path / "folder" / "inner" / "stuck"
    stuck.parent.mkdir(parents=True)
    stuck.touch()
    made = subprocess.run(["chattr", "+i", str(stuck)], capture_output=True, check=False)
    if made.returncode != 0:
        pytest.skip("this user or file system cannot make a file immutable")
    try:
        problems = remove(tmp_path / "folder")
        assert str(stuck) in problems[0]
        assert "not permitted" in problems[0]
    finally:
        subprocess.run(["chattr", "-i", str(stuck)], check=True)
    assert remove(tmp_path / "folder") == ()
