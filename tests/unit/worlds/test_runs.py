from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from pytest_modelbench.errors import UsageProblem
from pytest_modelbench.worlds.runs import (
    close_run,
    is_alive,
    open_run,
    runs_root,
    runs_roots,
    sweep,
)


def test_run_is_alive_until_the_last_has_left(tmp_path: Path) -> None:
    with open_run(tmp_path, "run1") as folder:
        with open_run(tmp_path, "run1") as same:
            assert same == folder
        assert is_alive(tmp_path, "run1")
        assert sweep(tmp_path) == ()
        assert close_run(tmp_path, "run1") == ()
        assert folder.is_dir()
    assert not is_alive(tmp_path, "run1")
    assert close_run(tmp_path, "run1") == ()
    assert list(tmp_path.iterdir()) == []


def test_killed_run_is_swept_at_the_next_start(tmp_path: Path) -> None:
    script = f"""
        import sys
        from pathlib import Path
        sys.path[:] = {sys.path!r}
        from pytest_modelbench.worlds.runs import open_run
        with open_run(Path({str(tmp_path)!r}), "killed") as folder:
            (folder / "world" / "closed").mkdir(parents=True)
            (folder / "world" / "closed").chmod(0)
            print("up", flush=True)
            sys.stdin.read()
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        assert sweep(tmp_path) == ()
        assert (tmp_path / "killed").is_dir()
        process.kill()
        process.wait()
        with open_run(tmp_path, "living"):
            assert sweep(tmp_path) == ()
            assert sorted(path.name for path in tmp_path.iterdir()) == ["living", "living.lock"]


def test_sweep_spares_what_is_said_to_live(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    assert sweep(tmp_path, alive=lambda run_id: run_id == "one") == ()
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


def test_sweep_spares_caches_and_takes_scratch_of_the_dead(tmp_path: Path) -> None:
    (tmp_path / ".cache").mkdir()
    (tmp_path / f".scratch-{os.getpid()}-a").mkdir()
    (tmp_path / f".scratch-{2**22 + 1}-a").mkdir()
    assert sweep(tmp_path) == ()
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {".cache", f".scratch-{os.getpid()}-a"}


@pytest.mark.parametrize("run_id", ["", "../x", "a/b", ".hidden", "a.lock", "a\n"])
def test_run_id_cannot_lead_elsewhere(tmp_path: Path, run_id: str) -> None:
    with pytest.raises(ValueError, match="run id"), open_run(tmp_path, run_id):
        pass


def test_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """TMPDIR is obeyed; where the place is another one the next time, what was left is found."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    obeyed = runs_root()
    assert obeyed.parent == tmp_path
    monkeypatch.delenv("TMPDIR")
    assert runs_root().parent in (tmp_path, Path("/dev/shm"))
    assert {obeyed, runs_root()} <= set(runs_roots())


def test_root_is_ours_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    root = runs_root()
    assert root.stat().st_mode & 0o777 == 0o700
    assert runs_root() == root
    root.chmod(0o755)
    with pytest.raises(UsageProblem, match="TMPDIR"):
        runs_root()
    root.rmdir()
    root.symlink_to(tmp_path)
    with pytest.raises(UsageProblem, match="only this user"):
        runs_root()
