"""The sum of what a command writes is watched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_modelbench.worlds import disk
from pytest_modelbench.worlds.box import Box
from pytest_modelbench.worlds.world import World

MIB = 2**20


def test_a_tree_that_grows_without_end_is_ended(box: Box, world: World) -> None:
    many = (
        "n=0; while [ $n -lt 400 ]; do head -c 1048576 /dev/zero >f$n; n=$((n+1)); done; sleep 60"
    )
    spec = replace(world.spec(), tree_bytes=16 * MIB)
    done = box.run(["sh", "-c", many], spec, seconds=60)
    assert (done.status, done.signal, done.timed_out) == (None, 9, False)
    assert b"[killed: it has written more than 16 MiB]" in done.output
    assert disk.tree_bytes(world.tree) > 16 * MIB
    again = box.run(["sh", "-c", "rm f*; echo fine"], spec, seconds=60)
    assert again.output == b"fine\n"


def test_space_that_others_took_ends_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = disk.DiskWatch([tmp_path], 64 * MIB)
    monkeypatch.setattr(watch, "_least_free", lambda: 10 * 2**30)
    watch._free = 20 * 2**30
    assert watch.over() == ""
    monkeypatch.setattr(watch, "_least_free", lambda: 2**20)
    assert watch.over() == ""


def test_a_nearly_full_disk_ends_a_large_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "LARGE", MIB)
    (tmp_path / "file").write_bytes(b"x" * 2 * MIB)
    watch = disk.DiskWatch([tmp_path], 64 * MIB)
    monkeypatch.setattr(watch, "_least_free", lambda: 2**20)
    assert watch.over() == "the disk is nearly full, and it has written 2 MiB"


def test_holes_and_links_take_no_space(tmp_path: Path) -> None:
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(2**34)
    (tmp_path / "link").symlink_to("/usr")
    assert disk.tree_bytes(tmp_path) < MIB


def test_a_full_disk_is_told_unless_the_candidate_filled_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert disk.room_problem(tmp_path) == ""
    monkeypatch.setattr(disk, "LEAST", 2**60)
    told = disk.room_problem(tmp_path)
    assert f"MiB are left in {tmp_path}" in told
    assert "let TMPDIR name another place" in told
    (tmp_path / "own").write_bytes(b"x" * 2**20)
    assert disk.room_problem(tmp_path, tmp_path).startswith("the disk is full")
    monkeypatch.setattr(disk, "LARGE", 2**19)
    assert disk.room_problem(tmp_path, tmp_path) == ""
