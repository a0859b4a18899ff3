"""FR26: nothing that git can reach from a work tree knows more than the seed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pytest_modelbench.worlds.box import Box
from pytest_modelbench.worlds.repository import seed_repository
from pytest_modelbench.worlds.world import open_world

FIX = "def add(a, b):\n    return a + b\n"
DIGS = (
    "git log --all -p",
    "git reflog --all",
    "git fsck --lost-found --unreachable --no-progress",
    "git stash list -p",
    "git cat-file --batch-all-objects --batch",
    "git branch -a -v; git tag -l; git for-each-ref; git remote -v; git ls-remote 2>&1",
    "git worktree list; ls -a .. 2>/dev/null",
    "cat $(git rev-parse --git-common-dir)/objects/info/alternates 2>&1",
    "git -C .. log --all -p 2>&1; git -C ../.. log --all -p 2>&1",
)


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=n", "-c", "user.email=n@n.invalid", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository whose next commit, other branch, tag, stash and reflog hold the fix."""
    folder = tmp_path / "project"
    seed = folder / "cases" / "seed"
    seed.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main", ".")
    (seed / "calc.py").write_text(FIX.replace("+", "-"))
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "before")
    (seed / "calc.py").write_text(FIX)
    git(folder, "commit", "-qam", "the fix")
    git(folder, "tag", "fixed")
    git(folder, "branch", "other")
    git(folder, "reset", "-q", "--hard", "HEAD~1")
    (seed / "calc.py").write_text(FIX)
    git(folder, "stash")
    return folder


@pytest.mark.parametrize("dig", DIGS)
def test_git_shows_the_seed_alone(dig: str, box: Box, project: Path, tmp_path: Path) -> None:
    seed = project / "cases" / "seed"
    # The control: from the project itself the same digging finds the fix, or would look there.
    if "--batch-all" in dig or ("-p" in dig.split() and "log" in dig and "-C" not in dig):
        found = subprocess.run(
            ["sh", "-c", dig], cwd=project, capture_output=True, check=False
        ).stdout
        assert b"a + b" in found
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with open_world(seed_repository(seed, tmp_path / "cache"), elsewhere, box.owner) as world:
        done = box.run(["sh", "-c", dig], world.spec(), seconds=60, output_bytes=2**20)
    said = done.output.decode(errors="replace")
    assert "a + b" not in said
    assert "the fix" not in said
    assert "fixed" not in said
    assert "other" not in said.replace("another", "")
