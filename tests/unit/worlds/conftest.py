"""Real boxes of every level that this machine offers, and real worlds."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_modelbench.worlds.box import Box
from pytest_modelbench.worlds.container import DOCKER, PODMAN
from pytest_modelbench.worlds.levels import (
    BUBBLEWRAP,
    LANDLOCK,
    ON_DEMAND,
    PORTABLE,
    choose,
    probe,
    probe_named,
)
from pytest_modelbench.worlds.repository import SeedRepository, seed_repository
from pytest_modelbench.worlds.world import World, open_world


def _level(name: str) -> Box:
    named = name in ON_DEMAND
    level = probe_named(name) if named else next(one for one in probe() if one.name == name)
    if not level.available:
        pytest.skip(f"{name}: {level.why_not}")
    return choose(name)


@pytest.fixture(params=[BUBBLEWRAP, LANDLOCK, PORTABLE, DOCKER, PODMAN])
def box(request: pytest.FixtureRequest) -> Box:
    """A box of each level."""
    return _level(request.param)


@pytest.fixture
def strict_box() -> Box:
    """A box that the kernel holds."""
    return _level(BUBBLEWRAP)


@pytest.fixture(params=[BUBBLEWRAP, DOCKER, PODMAN])
def root_box(request: pytest.FixtureRequest) -> Box:
    """A box with a root of its own, of each level that has one."""
    return _level(request.param)


@pytest.fixture
def landlock_box() -> Box:
    """A box that Landlock holds."""
    return _level(LANDLOCK)


@pytest.fixture
def seed_folder(tmp_path: Path) -> Path:
    """A small project."""
    folder = tmp_path / "seed"
    (folder / "package").mkdir(parents=True)
    (folder / "package" / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (folder / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (folder / "run.sh").chmod(0o755)
    return folder


@pytest.fixture
def seed(seed_folder: Path, tmp_path: Path) -> SeedRepository:
    """The repository of the small project."""
    return seed_repository(seed_folder, tmp_path / "cache")


@pytest.fixture
def world(seed: SeedRepository, tmp_path: Path, box: Box) -> Iterator[World]:
    """A world for boxes of ``box``."""
    with open_world(seed, tmp_path, box.owner) as made:
        yield made


@pytest.fixture
def marker() -> str:
    """An argument for sleep that no other process of the machine has."""
    return f"3{secrets.randbelow(10**9):09d}"


@pytest.fixture
def living(marker: str) -> Callable[[], list[int]]:
    """Ask which processes have the marker among their arguments."""

    def ask() -> list[int]:
        found = []
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                arguments = entry.read_bytes().split(b"\0")
            except OSError:
                continue
            if marker.encode() in arguments:
                found.append(int(entry.parent.name))
        return found

    return ask
