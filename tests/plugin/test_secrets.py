"""FR38: the values of a run's keys are in no file, wherever a candidate got them from."""

from __future__ import annotations

import gzip
import json
import os
import secrets
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.plugin.conftest import Project

LOOK = (
    "env; for f in /proc/[0-9]*/environ /proc/[0-9]*/cmdline; do cat $f 2>/dev/null; done; "
    "cat ~/.netrc /root/.netrc 2>/dev/null; printf %s {reversed} | rev; echo; "
    "echo kept: sk-not-a-real-key-0123456789abcdef"
)


def texts(folder: Path) -> dict[Path, bytes]:
    """Return what each file below a folder holds, unpacked as deeply as it was packed."""
    found = {}
    for path in folder.rglob("*"):
        if not path.is_file() or path.is_symlink():
            continue
        data = path.read_bytes()
        for unpack in (zlib.decompress, gzip.decompress):
            try:
                data = unpack(data)
            except (OSError, zlib.error, EOFError):
                continue
        found[path] = data
    return found


def test_no_value_of_a_key_is_in_any_file_of_a_run(project: Project) -> None:
    canary = f"canary{secrets.token_hex(12)}"
    project.certified("one")
    project.candidate(
        "paid", model="openai/m", api_base="http://127.0.0.1:9/v1", api_key_env="ACME_API_KEY"
    )
    command = LOOK.format(reversed=canary[::-1])
    calls = [
        {"name": "run_command", "arguments": {"command": command}},
        {"name": "write_file", "arguments": {"path": "answer.txt", "content": "one\n"}},
    ]
    steps = "".join(
        "[[default.steps]]\n"
        + "".join(
            f"[[default.steps.calls]]\nname = {json.dumps(call['name'])}\n"
            f"arguments = {json.dumps(json.dumps(call['arguments']))}\n"
            for call in some
        )
        for some in (calls, [{"name": "finish", "arguments": {}}])
    )
    project.write("scripts/thief.toml", steps)
    project.candidate("thief", agent="scripted", script="scripts/thief.toml")
    ran = project.run("--models", "thief,paid", "-q", "-n", "2", environ={"ACME_API_KEY": canary})
    # The one that calls the server is a fault (nothing listens), the other one passes.
    assert ran.exit == 1, ran.out
    assert [record.outcome.value for record in project.tries("thief")] == ["passed"]
    places = [project.path, project.temporary]
    everything = {path: data for place in places for path, data in texts(place).items()}
    everything |= {path: path.read_bytes() for path in project.path.parent.glob("run*")}
    transcripts = [data for data in everything.values() if b"kept: sk-not-a-real" in data]
    assert transcripts, "the command's output is in no transcript, so nothing was shown"
    leaks = [str(path) for path, data in everything.items() if canary.encode() in data]
    assert leaks == []
    assert canary not in ran.out
    assert any(record.flags for record in project.tries("thief"))
    assert os.environ.get("ACME_API_KEY") is None
