"""What is bubblewrap's own affair; what its box promises is in ``test_own_root.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_modelbench.worlds.box import Box, BoxSpec

SCRATCH = BoxSpec(workdir="/tmp")


def _sh(box: Box, script: str) -> str:
    return box.run(["sh", "-c", script], SCRATCH, seconds=60).output.decode(errors="replace")


def test_bubblewrap_itself_is_started_with_nothing_of_ours(
    strict_box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen from the host, so that it holds where the box may not read its process 1 as well."""
    monkeypatch.setenv("SECRET_KEY", "tell-nobody")
    process = strict_box.start(["cat"], SCRATCH)
    try:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert children
        for pid in (process.pid, *children):
            assert b"tell-nobody" not in Path(f"/proc/{pid}/environ").read_bytes()
    finally:
        strict_box.stop(process)


def test_no_further_user_namespace(strict_box: Box) -> None:
    assert "failed" in _sh(strict_box, "unshare --user true")
    assert "read-only" in _sh(
        strict_box, "echo 5 >/proc/sys/user/max_user_namespaces || echo read-only"
    )
