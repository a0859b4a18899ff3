"""The world: what one attempt has for itself, and nobody else ever had or will have."""

from __future__ import annotations

import contextlib
import logging
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_modelbench.errors import Fault
from pytest_modelbench.worlds import box
from pytest_modelbench.worlds.box import BoxSpec, Mount
from pytest_modelbench.worlds.disk import room_problem
from pytest_modelbench.worlds.ownership import give
from pytest_modelbench.worlds.removal import remove
from pytest_modelbench.worlds.repository import REPOSITORY, TREE, SeedRepository

_log = logging.getLogger(__name__)

_PINNED = ("config", "hooks", "info")
"""Parts of the repository that make git run programs or change bytes; read-only in a box."""


@dataclass(frozen=True)
class World:
    """One attempt's private folder, named at random, and what is in it.

    ``owner`` is the uid that its files belong to, None for our own.
    """

    folder: Path
    owner: int | None = None

    @property
    def tree(self) -> Path:
        """Return the work tree on the host; ``/work`` in a box."""
        return self.folder / TREE

    @property
    def repository(self) -> Path:
        """Return the tree's private repository on the host; ``/work.git`` in a box."""
        return self.folder / REPOSITORY

    @property
    def home(self) -> Path:
        """Return the HOME of the candidate's boxes; it lasts as long as the attempt."""
        return self.folder / "home"

    @property
    def temporary(self) -> Path:
        """Return the TMPDIR of the candidate's boxes; it lasts as long as the attempt."""
        return self.folder / "tmp"

    def spec(
        self,
        environment: Path | None = None,
        *,
        writable: bool = True,
        extra: Mapping[str, str] | None = None,
    ) -> BoxSpec:
        """Return what a candidate's box may reach.

        ``environment`` is a virtual environment, mounted read-only; ``extra`` are variables. Home
        and temporary folder are the attempt's own and last from one command to the next; when not
        ``writable`` they are scratch, and the tree is read-only.
        """
        mounts = [
            Mount(self.tree, box.WORK, writable),
            Mount(self.repository, box.REPOSITORY, writable),
        ]
        if writable:
            mounts += [Mount(self.repository / x, f"{box.REPOSITORY}/{x}") for x in _PINNED]
            mounts.append(Mount(self.tree / ".git", f"{box.WORK}/.git"))
            mounts.append(Mount(self.home, box.HOME, writable=True))
            mounts.append(Mount(self.temporary, box.TEMPORARY, writable=True))
        if environment is not None:
            mounts.append(Mount(environment, box.ENVIRONMENT))
        return BoxSpec(mounts=tuple(mounts), environment=dict(extra or {}))


@contextlib.contextmanager
def open_world(seed: SeedRepository, run_folder: Path, owner: int | None = None) -> Iterator[World]:
    """Make a world below a run's folder; remove all of it at the end, whatever became of it.

    ``owner`` is that of the box that the candidate will work in. What cannot be removed is logged
    and left to the sweep of the next start: a verdict that was reached is not lost for it. Fault
    where the disk is full before or after, by others than the candidate: its work was not free.
    """
    world = World(run_folder / secrets.token_hex(8), owner)
    try:
        try:
            _require_room(run_folder)
            world.folder.mkdir(mode=0o700)
            seed.fork(world.folder)
            world.home.mkdir(mode=0o700)
            world.temporary.mkdir(mode=0o700)
            for folder in (world.tree, world.repository, world.home, world.temporary):
                give(folder, owner)
        except OSError as error:
            raise Fault(
                "world", f"cannot make a world: {error}; TMPDIR chooses another place"
            ) from error
        yield world
        _require_room(run_folder, world.folder)
    finally:
        for problem in remove(world.folder):
            _log.warning("could not be removed: %s", problem)


def _require_room(folder: Path, tree: Path | None = None) -> None:
    if problem := room_problem(folder, tree):
        raise Fault("disk", problem)
