from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_modelbench.candidates.command import (
    flaw_of_command,
    identity_of_command,
    read_told,
)
from pytest_modelbench.candidates.registry import Registry
from pytest_modelbench.errors import RegistryProblem
from pytest_modelbench.identity import candidate_digest
from pytest_modelbench.records import Candidate, Command

TOML = """
[candidates.local-mini]
agent = "command"
model = "openai/m"
api_base = "http://127.0.0.1:8081/v1"

[candidates.local-mini.command]
argv = ["/opt/mini/bin/mini", "-t", "{task}"]
environment = { OPENAI_BASE_URL = "{base_url}/v1" }
files = { ".codex/config.toml" = "model = '{model}'" }
version = ["/opt/mini/bin/mini", "--version"]
"""


def test_a_command_is_read_from_the_registry(tmp_path: Path) -> None:
    (tmp_path / "modelbench.toml").write_text(TOML)
    (candidate,) = Registry.read(tmp_path).resolve(["local-mini"])
    assert candidate.command is not None
    assert candidate.command.argv[2] == "{task}"
    assert candidate.calls_model


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"{task}"', '"x"', "the program is not told its task"),
        ('agent = "command"', "", "needs agent"),
        ('".codex/config.toml"', '"/etc/x"', "'/etc/x' is not below the home"),
        ('".codex/config.toml"', '"../x"', "'../x' is not below the home"),
        ("version = ", 'result = "yaml"\nversion = ', "'yaml' is no way to read it"),
        ("version = ", "wersion = ", "unknown key candidates.local-mini.command.wersion"),
        ("version = ", 'programs = ["opt"]\nversion = ', "'opt' is not absolute"),
        (
            "version = ",
            'programs = ["/work/agent"]\nversion = ',
            "'/work/agent' is in /work, where a box has the work tree; write \"/work/agent:/FOLDER",
        ),
        ("version = ", 'programs = ["/opt/a:/work"]\nversion = ', "'/work' is in /work, where"),
    ],
)
def test_what_is_wrong_with_a_command_is_said_with_its_line(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    assert old in TOML
    (tmp_path / "modelbench.toml").write_text(TOML.replace(old, new))
    with pytest.raises(RegistryProblem) as caught:
        Registry.read(tmp_path)
    assert said in str(caught.value)
    assert caught.value.line is not None


CLAUDE = '{"type":"system"}\n{"type":"result","is_error":%s,"result":"busy","total_cost_usd":0.5}\n'


@pytest.mark.parametrize(
    ("command", "status", "output", "failed", "text"),
    [
        ({}, 0, "all good", False, ""),
        ({}, 3, "oh", True, "exit status 3"),
        ({}, None, "", None, ""),
        ({}, 0, CLAUDE % "true", True, "busy"),
        ({}, 1, CLAUDE % "false", True, "exit status 1"),
        ({"result": "json:is_error"}, 1, CLAUDE % "false", False, ""),
        ({"result": "json:info.status"}, 0, '{"info": {"status": "Gone"}}', True, "status is Gone"),
        ({"result": "json:a.1", "success": ["ok"]}, 1, '{"a": [0, "ok"]}', False, ""),
        ({"result": "json:info.status"}, 1, "no json at all", None, "has no info.status"),
    ],
)
def test_what_a_program_says_of_its_end(
    command: dict[str, Any], status: int | None, output: str, failed: bool | None, text: str
) -> None:
    told = read_told(Command(argv=["x"], cost="json:total_cost_usd", **command), status, output)
    assert told.failed is failed
    assert text in told.text
    assert told.cost_usd == (0.5 if "total_cost_usd" in output else None)


def test_version_and_switches_are_identity_and_the_place_is_not() -> None:
    def digest(version: str, /, **given: Any) -> str:
        command = Command(**{"argv": ["/a/mini", "{task}"], "programs": ["/a"]} | given)
        candidate = Candidate(name="x", agent="command", command=command)
        return candidate_digest(candidate, version, identity_of_command(command))

    same = digest("1")
    assert digest("1", argv=["/b/mini", "{task}"], programs=["/b"]) == same
    assert digest("1", version=["mini", "--version"], cost="json:x") == same
    others = [
        digest("2"),
        digest("1", argv=["/a/mini", "--fast", "{task}"]),
        digest("1", files={".x": "y"}),
        digest("1", environment={"A": "b"}),
    ]
    assert len({same, *others}) == 5


def test_candidates_without_a_command_keep_their_identity() -> None:
    plain = Candidate(name="x", model="openai/m")
    assert flaw_of_command(plain) is None
    assert candidate_digest(plain, "1") == candidate_digest(plain, "1", None)
