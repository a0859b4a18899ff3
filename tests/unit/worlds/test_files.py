from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_modelbench.worlds.files import (
    Listing,
    WorldPathError,
    list_files,
    read_text_bytes,
    write_bytes,
)
from pytest_modelbench.worlds.world import World


@pytest.fixture
def plain(tmp_path: Path) -> World:
    """A world that is folders only; a file beside it is what must not be reached."""
    (tmp_path / "world" / "work" / "src").mkdir(parents=True)
    (tmp_path / "world" / "work" / "src" / "a.py").write_text("a = 1\n")
    (tmp_path / "world" / "work" / ".git").write_text("gitdir: x")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("secret")
    return World(tmp_path / "world")


@pytest.mark.parametrize("path", ["src/a.py", "./src//a.py", "src/../src/a.py", "/work/src/a.py"])
def test_read(plain: World, path: str) -> None:
    assert read_text_bytes(plain, path) == b"a = 1\n"


def test_write_makes_folders_and_says_whether_new(plain: World) -> None:
    assert write_bytes(plain, "new/deep/b.py", b"b\n") is True
    assert write_bytes(plain, "/work/new/deep/b.py", b"c") is False
    assert (plain.tree / "new" / "deep" / "b.py").read_bytes() == b"c"


def test_write_keeps_the_mode(plain: World) -> None:
    (plain.tree / "tool").write_text("long text that must go")
    (plain.tree / "tool").chmod(0o755)
    write_bytes(plain, "tool", b"x")
    assert (plain.tree / "tool").read_bytes() == b"x"
    assert (plain.tree / "tool").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    "path",
    [
        "../outside/file",
        "/etc/passwd",
        "/workshop/a",
        "src/../../outside/file",
        "",
        ".",
        "src/",
        "absent",
        "absent/file",
        "src/a.py/b",
        ".git",
        ".GIT/config",
        "a\0b",
        "bad\udcff",
        "x" * 5000,
    ],
)
def test_refusals_are_for_the_model(plain: World, tmp_path: Path, path: str) -> None:
    with pytest.raises(WorldPathError) as raised:
        read_text_bytes(plain, path)
    assert str(tmp_path) not in str(raised.value)
    assert "Errno" not in str(raised.value)


@pytest.mark.parametrize("path", ["../new", "/tmp/new", ".git", "src", "src/a.py/b", "x" * 300])
def test_write_refusals(plain: World, tmp_path: Path, path: str) -> None:
    with pytest.raises(WorldPathError) as raised:
        write_bytes(plain, path, b"x")
    assert str(tmp_path) not in str(raised.value)


def test_links_lead_nowhere(plain: World, tmp_path: Path) -> None:
    (plain.tree / "file").symlink_to(tmp_path / "outside" / "file")
    (plain.tree / "folder").symlink_to(tmp_path / "outside")
    (plain.tree / "up").symlink_to("..")
    assert (plain.tree / "folder" / "file").read_text() == "secret"  # the control: they do lead
    for path in ("file", "folder/file", "up/work/src/a.py"):
        with pytest.raises(WorldPathError, match="symbolic link"):
            read_text_bytes(plain, path)
        with pytest.raises(WorldPathError, match="symbolic link"):
            write_bytes(plain, path, b"overwritten")
    with pytest.raises(WorldPathError, match="symbolic link"):
        write_bytes(plain, "folder/new", b"")
    with pytest.raises(WorldPathError, match="symbolic link"):
        list_files(plain, "folder")
    assert (tmp_path / "outside" / "file").read_text() == "secret"
    assert [path.name for path in (tmp_path / "outside").iterdir()] == ["file"]


def test_what_is_no_file_neither_waits_nor_ends(plain: World) -> None:
    os.mkfifo(plain.tree / "pipe")
    for use in (lambda: read_text_bytes(plain, "pipe"), lambda: write_bytes(plain, "pipe", b"x")):
        with pytest.raises(WorldPathError, match="no regular file"):
            use()


def test_large_file_is_refused(plain: World) -> None:
    with (plain.tree / "sparse").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(WorldPathError, match="too large"):
        read_text_bytes(plain, "sparse")


def test_list(plain: World) -> None:
    write_bytes(plain, "b/c.txt", b"")
    (plain.tree / "link").symlink_to("src")
    os.mkfifo(plain.tree / "pipe")
    assert list_files(plain) == Listing(("b/c.txt", "src/a.py"), more=False)
    assert list_files(plain, "/work/src") == Listing(("src/a.py",), more=False)
    assert list_files(plain, limit=1) == Listing(("b/c.txt",), more=True)


def test_written_files_belong_to_the_owner(plain: World) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    owned = World(plain.folder, 65534)
    write_bytes(owned, "made/by/tool", b"x")
    for name in ("made", "made/by", "made/by/tool"):
        assert (plain.tree / name).stat().st_uid == 65534
