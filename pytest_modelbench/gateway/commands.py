"""The commands of ``[servers.NAME]``, each under a keeper that ends all of it for good."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path

KEEPER = Path(__file__).with_name("keeper.py")
GRACE_SECONDS = 10.0
"""Between SIGTERM and SIGKILL."""

TAIL_CHARS = 300


class Command:
    """A shell command under a keeper, which ends all of it when told to or when we are gone."""

    def __init__(self, keeper: asyncio.subprocess.Process) -> None:
        self._keeper = keeper
        self.status: int | None = None
        self.ended = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(
        cls, command: str, log: Path, *, once: bool, root: str, environ: Mapping[str, str]
    ) -> Command:
        """Start a command in a project's folder; what it prints is appended to ``log``."""
        log.parent.mkdir(parents=True, exist_ok=True)
        out = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.write(out, f"$ {command}\n".encode())
            keeper = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", str(KEEPER), str(GRACE_SECONDS)),
                *("once" if once else "serve", command),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=out,
                cwd=root or None,
                env=dict(environ),
                start_new_session=True,
            )
        finally:
            os.close(out)
        return cls(keeper)

    async def _read(self) -> None:
        assert self._keeper.stdout is not None
        line = await self._keeper.stdout.readline()
        if line.startswith(b"exit "):
            self.status = int(line.split()[1])
        else:
            self.status = -1  # the keeper itself was killed
        self.ended.set()

    async def finish(self, seconds: float) -> int | None:
        """Wait for a command's end; None where it takes too long. Nothing of it is left."""
        try:
            async with asyncio.timeout(seconds):
                await self.ended.wait()
        except TimeoutError:
            await self.end()
            return None
        await self.end()
        return self.status

    async def end(self) -> None:
        """End the command and all that it has started."""
        if self._keeper.stdin is not None:
            self._keeper.stdin.close()
        try:
            async with asyncio.timeout(2 * GRACE_SECONDS):
                await self._keeper.wait()
        except TimeoutError:
            self._keeper.kill()
            await self._keeper.wait()
        await self._reading


def last_words(log: Path) -> str:
    """Return the end of what commands have printed, on one line."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 4 * TAIL_CHARS))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return " ".join(text.split())[-TAIL_CHARS:]
