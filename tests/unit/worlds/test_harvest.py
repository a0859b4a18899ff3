from __future__ import annotations

import json
import os
import socket
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_modelbench.worlds.harvest import (
    Harvest,
    HarvestLimits,
    Oddity,
    from_manifest,
    harvest,
    read_folder,
)
from pytest_modelbench.worlds.walk import Walk


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """An empty work tree."""
    (tmp_path / "tree").mkdir()
    return tmp_path / "tree"


def test_files_and_modes(tree: Path) -> None:
    (tree / "b").mkdir()
    (tree / "b" / "tool").write_bytes(b"\0\xff")
    (tree / "b" / "tool").chmod(0o700)
    (tree / "a\nnew line é").write_text("a")
    found = harvest(tree)
    assert found.files == {"a\nnew line é": b"a", "b/tool": b"\0\xff"}
    assert found.modes == {"a\nnew line é": 0o644, "b/tool": 0o755}
    assert (found.oddities, found.truncated) == ((), False)


def test_git_is_left_out(tree: Path) -> None:
    (tree / ".git").write_text("gitdir: elsewhere")
    (tree / "inner" / ".git" / "hooks").mkdir(parents=True)
    (tree / "inner" / ".git" / "hooks" / "evil").touch()
    (tree / "inner" / "kept").touch()
    found = harvest(tree)
    assert list(found.files) == ["inner/kept"]
    assert found.oddities == (Oddity("inner/.git", "nested-git"),)


@pytest.fixture
def hostile(tree: Path) -> Path:
    """What would hang, fill or mislead a reader that trusts a tree."""
    (tree / "good").write_text("good")
    os.mkfifo(tree / "fifo")
    (tree / "zero").symlink_to("/dev/zero")
    (tree / "loop").symlink_to(".")
    (tree / "outside").symlink_to("/etc")
    with (tree / "sparse").open("wb") as file:
        file.truncate(2**40)
    (tree / os.fsdecode(b"bad\xff")).touch()
    here = Path.cwd()
    os.chdir(tree)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("socket")
        for _ in range(200):
            Path("deep").mkdir()
            os.chdir("deep")
        Path("end").touch()
    finally:
        os.chdir(here)
    return tree


def test_hostile_tree_is_read_in_bounds(hostile: Path) -> None:
    tracemalloc.start()
    begin = time.monotonic()
    found = harvest(hostile)
    seconds = time.monotonic() - begin
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.files == {"good": b"good"}
    oddities = {odd.path: odd.kind for odd in found.oddities}
    assert {odd.kind for odd in found.oddities} == {
        "bad-name",
        "fifo",
        "socket",
        "symlink",
        "too-big",
        "too-deep",
    }
    assert oddities["zero"] == oddities["loop"] == oddities["outside"] == "symlink"
    assert oddities["sparse"] == "too-big"
    assert oddities["bad\\xff"] == "bad-name"
    assert seconds < 30, "it waits for nobody, and reads nothing that has no end"
    assert peak < 2**20


def test_file_that_turns_into_a_fifo_is_not_waited_for(tree: Path) -> None:
    (tree / "file").touch()
    for entry in Walk(tree):
        (tree / "file").unlink()
        os.mkfifo(tree / "file")
        with pytest.raises(OSError, match="no regular file any more"):
            entry.open()


def test_device_is_an_oddity(tree: Path) -> None:
    try:
        os.mknod(tree / "null", 0o20666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("this user cannot make a device")
    assert harvest(tree).oddities == (Oddity("null", "device"),)


def test_closed_files_are_closed_to_every_harness(tree: Path) -> None:
    """Root could read them; the same tree gives the same harvest."""
    (tree / "file").touch(mode=0o000)
    (tree / "folder").mkdir(mode=0o000)
    found = harvest(tree)
    (tree / "folder").chmod(0o700)
    assert found.oddities == (Oddity("file", "unreadable"), Oddity("folder", "unreadable"))


def test_limits(tree: Path) -> None:
    for name in "abcde":
        (tree / name).write_bytes(b"x" * 100)
    (tree / "big").write_bytes(b"x" * 201)
    found = harvest(tree, HarvestLimits(file_bytes=200, total_bytes=350))
    assert list(found.files) == ["a", "b", "c"]
    assert [(odd.path, odd.kind) for odd in found.oddities] == [
        ("big", "too-big"),
        ("d", "too-much"),
        ("e", "too-much"),
    ]
    assert found.truncated
    assert len(harvest(tree, HarvestLimits(count=4)).files) <= 4
    assert harvest(tree, HarvestLimits(count=4)).truncated
    assert not harvest(tree, HarvestLimits(count=6)).truncated


def test_many_oddities_are_bounded(tree: Path) -> None:
    for number in range(500):
        (tree / f"link{number}").symlink_to("nowhere")
    found = harvest(tree)
    assert len(found.oddities) == 200
    assert found.truncated


def test_digest_is_of_paths_modes_and_contents(tree: Path, tmp_path: Path) -> None:
    (tree / "b").write_text("b")
    (tree / "a").write_text("a")
    first = harvest(tree)
    again = tmp_path / "again"
    again.mkdir()
    (again / "a").write_text("a")
    (again / "b").write_text("b")
    (again / "pipe").symlink_to("nowhere")
    assert harvest(again).digest == first.digest
    (again / "a").chmod(0o755)
    assert harvest(again).digest != first.digest
    assert first.digest == "503f33dac528588051fce59cf00e277a184ce4b11d0169347503be00e9dd3fd5"


def test_manifest_makes_it_again(tree: Path) -> None:
    (tree / "a").mkdir()
    (tree / "a" / "x\n").write_bytes(b"1")
    (tree / "same").write_bytes(b"1")
    (tree / "link").symlink_to("a")
    found = harvest(tree)
    assert len(found.blobs) == 1
    again = from_manifest(found.manifest, found.blobs.__getitem__)
    assert again == found
    assert again.manifest == found.manifest


@pytest.mark.parametrize(
    "path",
    ["/x", "../x", "a/../x", "a//x", "", ".git/hooks/x", "a/.GIT", "a\0", "./x", "\ud800", 5, None],
)
def test_forged_path_is_refused(tree: Path, path: object) -> None:
    (tree / "a").touch()
    document = json.loads(harvest(tree).manifest)
    document["files"][0]["path"] = path
    with pytest.raises(ValueError, match=r"."):
        from_manifest(json.dumps(document), lambda _: b"")


@pytest.mark.parametrize("harm", ["content", "mode", "digest", "version", "twice", "both"])
def test_forged_manifest_is_refused(tree: Path, harm: str) -> None:
    (tree / "a").write_text("1")
    found = harvest(tree)
    document = json.loads(found.manifest)
    row = document["files"][0]
    match harm:
        case "mode":
            row["mode"] = 0o4755
        case "digest":
            document["digest"] = "0" * 64
        case "version":
            document["manifest"] = 99
        case "twice":
            document["files"].append(row)
        case "both":
            document["files"].append(row | {"path": "a/b"})
    blob = (lambda _: b"2") if harm == "content" else found.blobs.__getitem__
    with pytest.raises(ValueError, match=r"."):
        from_manifest(json.dumps(document), blob)


@settings(max_examples=50)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["manifest", "files", "path", "oddities", "digest"]), inner
            )
        ),
    )
)
def test_any_json_is_read_or_refused(document: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_manifest(json.dumps(document), lambda _: b"")


@given(st.text())
def test_any_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_manifest(text, lambda _: b"")


def test_lay_gives_the_same_harvest(tree: Path, tmp_path: Path) -> None:
    (tree / "a" / "b").mkdir(parents=True)
    (tree / "a" / "b" / "tool").write_bytes(b"\0")
    (tree / "a" / "b" / "tool").chmod(0o755)
    (tree / "c\nd").write_text("x")
    found = harvest(tree)
    old = os.umask(0o077)
    try:
        found.lay(tmp_path / "laid")
    finally:
        os.umask(old)
    assert harvest(tmp_path / "laid") == found
    assert (tmp_path / "laid" / "a").stat().st_mode & 0o777 == 0o755
    with pytest.raises(ValueError, match="not empty"):
        found.lay(tmp_path / "laid")


def test_diff_is_for_people(tree: Path) -> None:
    (tree / "changed").write_text("one\nTWO\n")
    (tree / "new").write_text("no end")
    (tree / "binary").write_bytes(b"\0")
    found = harvest(tree)
    assert found.diff({"changed": b"one\ntwo\n", "gone": b"x\n"}) == (
        "/dev/null and b/binary differ (binary or too large to show)\n"
        "--- a/changed\n+++ b/changed\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n"
        "--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
        "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+no end\n\\ No newline at end of file\n"
    )
    assert found.diff(read_folder(tree)) == ""


def test_diff_of_a_worst_case_is_bounded() -> None:
    lines = b"".join(b"%d\n" % (number % 3) for number in range(100_000))
    begin = time.process_time()
    told = Harvest({"f": lines}, {"f": 0o644}).diff({"f": lines[::-1]})
    assert time.process_time() - begin < 5
    assert "too large to show" in told


def test_terminal_codes_in_names_do_not_act(tree: Path) -> None:
    (tree / "\x1b[31mred").write_text("x\n")
    assert "\x1b" not in harvest(tree).diff({})
