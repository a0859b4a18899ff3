"""A work tree on the disk, with commands run as they are: the loop's tests need no box."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pytest_modelbench.candidates.tools import Ran, Refused


@dataclass
class Folder:
    """A Workbench over a plain folder."""

    root: Path
    commands: list[tuple[str, float]] = field(default_factory=list)

    def list(self, path: str, *, limit: int) -> tuple[Sequence[str], bool]:
        if not (self.root / path).is_dir():
            raise Refused(f"{path} does not exist")
        files = [one for one in (self.root / path).rglob("*") if one.is_file()]
        found = sorted(str(one.relative_to(self.root)) for one in files)
        return found[:limit], len(found) > limit

    def read(self, path: str) -> bytes:
        if not (self.root / path).is_file():
            raise Refused(f"{path} does not exist")
        return (self.root / path).read_bytes()

    def write(self, path: str, content: bytes) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(content)

    def run(self, command: str, *, seconds: float, output_bytes: int) -> Ran:
        self.commands.append((command, seconds))
        try:
            done = subprocess.run(
                ["sh", "-c", command],
                cwd=self.root,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                timeout=min(seconds, 30),
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            return Ran(None, 9, late.stdout or b"", len(late.stdout or b""), True)
        status = done.returncode
        return Ran(
            status if status >= 0 else None,
            -status if status < 0 else None,
            done.stdout[: output_bytes // 2]
            + done.stdout[output_bytes // 2 :][-output_bytes // 2 :],
            len(done.stdout),
            False,
        )


@pytest.fixture
def bench(tmp_path: Path) -> Folder:
    (tmp_path / "tree/pkg").mkdir(parents=True)
    (tmp_path / "tree/calc.py").write_text("def add(a, b):\n    return a - b\n\n\nTOTAL = 1\n")
    (tmp_path / "tree/pkg/data.bin").write_bytes(b"\xff\xfe\x00")
    return Folder(tmp_path / "tree")
