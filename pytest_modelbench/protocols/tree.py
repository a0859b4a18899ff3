"""A work tree and its box, as the tools of the agent use them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pytest_modelbench.candidates.tools import Ran, Refused
from pytest_modelbench.worlds.box import Box, BoxSpec
from pytest_modelbench.worlds.files import (
    WorldPathError,
    list_files,
    read_text_bytes,
    write_bytes,
)
from pytest_modelbench.worlds.world import World

SHELL = "bash" if Path("/bin/bash").exists() else "sh"
"""What models write commands for; a system without it has the plain one."""


@dataclass(frozen=True)
class BoxedTree:
    """The workbench of one attempt: files by the harness, commands in the box."""

    world: World
    box: Box
    spec: BoxSpec

    def list(self, path: str, *, limit: int) -> tuple[Sequence[str], bool]:
        """Return files below a folder, relative to the tree, and whether there are more."""
        with _told_to_the_model():
            found = list_files(self.world, path, limit=limit)
        return found.paths, found.more

    def read(self, path: str) -> bytes:
        """Return a file's content."""
        with _told_to_the_model():
            return read_text_bytes(self.world, path)

    def write(self, path: str, content: bytes) -> None:
        """Write a file; folders on its way are made."""
        with _told_to_the_model():
            write_bytes(self.world, path, content)

    def run(self, command: str, *, seconds: float, output_bytes: int) -> Ran:
        """Run a shell command in the box; nothing that it started is alive afterwards."""
        done = self.box.run(
            [SHELL, "-c", command], self.spec, seconds=seconds, output_bytes=output_bytes
        )
        return Ran(done.status, done.signal, done.output, done.output_total, done.timed_out)


@contextmanager
def _told_to_the_model() -> Iterator[None]:
    try:
        yield
    except WorldPathError as error:
        raise Refused(str(error)) from None
