from __future__ import annotations

import concurrent.futures
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from pytest_modelbench.errors import Fault, PackProblem, UsageProblem
from pytest_modelbench.worlds import repository
from pytest_modelbench.worlds.harvest import read_folder
from pytest_modelbench.worlds.repository import TREE, SeedRepository, seed_repository


def _forget() -> None:
    """Be a new process, which has checked nothing yet."""
    repository._checked.clear()


def _git(folder: Path, *arguments: str) -> str:
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull}
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=environment, capture_output=True, check=True
    )
    return done.stdout.decode()


def _fork(seed: SeedRepository, place: Path) -> Path:
    place.mkdir()
    seed.fork(place)
    return place / "work"


def test_tree_is_the_seed_and_nothing_else(
    seed: SeedRepository, seed_folder: Path, tmp_path: Path
) -> None:
    tree = _fork(seed, tmp_path / "world")
    assert read_folder(tree) == read_folder(seed_folder)
    assert os.access(tree / "run.sh", os.X_OK)
    assert not os.access(tree / "package" / "calc.py", os.X_OK)
    assert _git(tree, "status", "--porcelain") == ""
    assert _git(tree, "log", "--all", "--format=%an %s").splitlines() == ["Modelbench Seed"]
    assert _git(tree, "remote") == ""
    objects = _git(tree, "cat-file", "--batch-check", "--batch-all-objects").splitlines()
    assert len(objects) == 1 + 2 + 2  # the commit, two folders, two files


def test_same_content_gives_the_same_commit(seed: SeedRepository, tmp_path: Path) -> None:
    """Wherever it is, whenever it was written, whatever the user's git says."""
    other = tmp_path / "elsewhere"
    (other / "package").mkdir(parents=True)
    (other / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (other / "run.sh").chmod(0o700)
    (other / "package" / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    assert seed_repository(other, tmp_path / "other-cache").commit == seed.commit
    assert seed.commit == "1dd14ea7fd541a7662c5db8915e32bf2c78abebe"


@pytest.mark.parametrize("change", ["content", "name", "mode", "more"])
def test_any_change_gives_another_commit(
    seed: SeedRepository, seed_folder: Path, tmp_path: Path, change: str
) -> None:
    file = seed_folder / "package" / "calc.py"
    match change:
        case "content":
            file.write_text("def add(a, b):\n    return a * b\n")
        case "name":
            file.rename(file.with_name("calk.py"))
        case "mode":
            file.chmod(0o755)
        case "more":
            (seed_folder / "more").touch()
    assert seed_repository(seed_folder, tmp_path / "cache").commit != seed.commit


def test_bytes_survive_attributes_and_odd_names(tmp_path: Path) -> None:
    seed = tmp_path / "odd"
    seed.mkdir()
    contents = {
        ".gitattributes": b"* text eol=crlf ident filter=lfs working-tree-encoding=UTF-16\n",
        ".gitignore": b"*\n",
        "unix.txt": b"a\n$Id$\n",
        "dos.txt": b"a\r\nb\r\n",
        'quo"te\\ back\nline é.txt': b"x",
        " lead": b"",
        "binary": bytes(range(256)),
    }
    for name, data in contents.items():
        (seed / name).write_bytes(data)
    tree = _fork(seed_repository(seed, tmp_path / "cache"), tmp_path / "world")
    assert read_folder(tree) == contents
    assert _git(tree, "status", "--porcelain") == ""


def test_case_without_a_seed_starts_empty(tmp_path: Path) -> None:
    tree = _fork(seed_repository(None, tmp_path / "cache"), tmp_path / "world")
    assert [path.name for path in tree.iterdir()] == [".git"]
    assert _git(tree, "status", "--porcelain") == ""


def test_no_path_of_the_host_is_inside(seed: SeedRepository, tmp_path: Path) -> None:
    tree = _fork(seed, tmp_path / "world")
    moved = (tmp_path / "world").rename(tmp_path / "moved")
    assert _git(moved / "work", "status", "--porcelain") == ""
    for path in moved.rglob("*"):
        if path.is_file():
            assert str(tree).encode() not in path.read_bytes()


def test_git_does_not_take_the_tree_for_gone(seed: SeedRepository, tmp_path: Path) -> None:
    tree = _fork(seed, tmp_path / "world")
    _git(tree.parent / "work.git", "worktree", "prune")
    assert _git(tree, "status", "--porcelain") == ""


def test_link_inside_is_kept(tmp_path: Path) -> None:
    (tmp_path / "seed" / "folder").mkdir(parents=True)
    (tmp_path / "seed" / "file").write_text("x")
    (tmp_path / "seed" / "folder" / "link").symlink_to("../file")
    tree = _fork(seed_repository(tmp_path / "seed", tmp_path / "cache"), tmp_path / "world")
    assert (tree / "folder" / "link").readlink() == Path("../file")


@pytest.mark.parametrize("target", ["/etc/passwd", "../answer", "a/../../answer"])
def test_link_that_leads_out_is_refused(tmp_path: Path, target: str) -> None:
    (tmp_path / "seed").mkdir()
    (tmp_path / "seed" / "link").symlink_to(target)
    with pytest.raises(PackProblem, match="leads out") as raised:
        seed_repository(tmp_path / "seed", tmp_path / "cache")
    assert raised.value.path == tmp_path / "seed" / "link"


def test_repository_under_another_spelling_is_refused(seed_folder: Path, tmp_path: Path) -> None:
    (seed_folder / "inner/.GIT").mkdir(parents=True)
    (seed_folder / "inner/.GIT/config").write_text("[core]\n")
    with pytest.raises(PackProblem, match=r"\.GIT"):
        seed_repository(seed_folder, tmp_path / "cache")


def test_what_is_no_content_of_a_seed_is_in_no_world(seed_folder: Path, tmp_path: Path) -> None:
    for stray in (".git/config", "pkg/__pycache__/mod.pyc", ".pytest_cache/README.md"):
        (seed_folder / stray).parent.mkdir(parents=True, exist_ok=True)
        (seed_folder / stray).write_text("stray\n")
    place = tmp_path / "world"
    place.mkdir()
    seed_repository(seed_folder, tmp_path / "cache").fork(place)
    names = {path.name for path in (place / TREE).rglob("*")}
    assert names
    assert not names & {"config", "mod.pyc", "__pycache__", ".pytest_cache"}


def test_fifo_in_a_seed_is_refused(seed_folder: Path, tmp_path: Path) -> None:
    os.mkfifo(seed_folder / "pipe")
    with pytest.raises(PackProblem, match="regular files"):
        seed_repository(seed_folder, tmp_path / "cache")


def test_it_is_built_once(seed: SeedRepository, seed_folder: Path, tmp_path: Path) -> None:
    before = (seed.folder / "config").stat().st_ino
    _forget()
    again = seed_repository(seed_folder, tmp_path / "cache")
    assert again == seed
    assert (again.folder / "config").stat().st_ino == before


@pytest.mark.parametrize("harm", ["hook", "config", "missing", "record"])
def test_harmed_cache_is_built_anew(
    seed: SeedRepository, seed_folder: Path, tmp_path: Path, harm: str
) -> None:
    whole = read_folder(seed.folder)
    match harm:
        case "hook":
            (seed.folder / "hooks" / "post-checkout").write_text("#!/bin/sh\nevil\n")
        case "config":
            with (seed.folder / "config").open("a") as file:
                file.write("[core]\n\tfsmonitor = evil\n")
        case "missing":
            next((seed.folder / "objects" / "pack").glob("*.idx")).unlink()
        case "record":
            (seed.folder.parent / "seed.json").write_text("{}")
    _forget()
    again = seed_repository(seed_folder, tmp_path / "cache")
    assert read_folder(again.folder) == whole
    _fork(again, tmp_path / "world")


def test_builders_at_the_same_time(seed_folder: Path, tmp_path: Path) -> None:
    script = f"""
        import sys
        from pathlib import Path
        sys.path[:] = {sys.path!r}
        from pytest_modelbench.worlds.repository import seed_repository
        sys.stdin.read(1)
        print(seed_repository(Path({str(seed_folder)!r}), Path({str(tmp_path / "cache")!r})).commit)
    """
    builders = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(6)
    ]
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        told = list(pool.map(lambda builder: builder.communicate("x")[0], builders))
    assert {builder.returncode for builder in builders} == {0}
    assert len(set(told)) == 1
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_users_git_settings_do_not_act(
    seed: SeedRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "post-checkout").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (hooks / "post-checkout").chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(f"[core]\n\thooksPath = {hooks}\n\tautocrlf = true\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    tree = _fork(seed, tmp_path / "world")
    assert (tree / "run.sh").read_bytes() == b"#!/bin/sh\necho ran\n"
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "index").exists()


def test_failure_names_the_file(seed: SeedRepository, tmp_path: Path) -> None:
    (tmp_path / "world" / "work").mkdir(parents=True)
    (tmp_path / "world" / "work" / "in-the-way").touch()
    with pytest.raises(Fault, match="already exists") as raised:
        seed.fork(tmp_path / "world")
    assert raised.value.kind == "world"
    assert str(tmp_path / "world") in raised.value.text


def test_lock_of_another_copy_does_not_matter(seed: SeedRepository, tmp_path: Path) -> None:
    """What a killed run left in its world is nobody else's trouble."""
    first = _fork(seed, tmp_path / "first")
    (first.parent / "work.git" / "config.lock").touch()
    (first.parent / "work.git" / "worktrees" / "work" / "index.lock").touch()
    assert (_fork(seed, tmp_path / "second") / "run.sh").exists()


def test_missing_git_is_said(
    seed_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageProblem, match="install git"):
        seed_repository(seed_folder, tmp_path / "new-cache")
