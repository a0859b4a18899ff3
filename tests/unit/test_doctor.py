"""What ``modelbench doctor`` says of a machine and a project."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from pytest_modelbench.cli import main
from pytest_modelbench.commands.doctor import signs
from pytest_modelbench.worlds import levels


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project, which is the current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(results: Path) -> dict[str, tuple[str, str]]:
    return {sign.name: (sign.state, sign.text) for sign in signs(results)}


def test_levels_and_what_strict_does(project: Path) -> None:
    seen = told(project / "results")
    for level in levels.probe():
        assert seen[f"box level {level.name}"][0] == ("ok" if level.available else "note")
    for name in levels.ON_DEMAND:
        known = levels.probe_named(name)
        state, text = seen[f"box level {name}"]
        assert state == ("ok" if known.available else "note")
        assert text == (known.why_not or "works (taken by this name only)")
    taken = [name for name, (_, text) in seen.items() if "what `auto` takes" in text]
    assert taken == [f"box level {levels.choose('auto').level}"]
    assert seen["git"][0] == "ok"
    assert "GiB free" in seen["room for results"][1]


def test_without_a_box_it_says_why_and_what_to_do(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(project))
    for found in (levels.probe, levels.probe_named):
        found.cache_clear()
    try:
        seen = told(project / "results")
    finally:
        for found in (levels.probe, levels.probe_named):
            found.cache_clear()
    assert "install the package bubblewrap" in seen["box level bubblewrap"][1]
    for name in ("docker", "podman"):
        assert f"{name} is not on the PATH; install it" in seen[f"box level {name}"][1]
    state, text = seen["--modelbench-isolation strict"]
    assert state == "note"
    assert text.startswith("refuses to run: bwrap is not on the PATH")
    assert seen["git"][0] == "bad"


def test_keys_are_told_by_name_and_servers_are_tried(
    project: Path,
    quiet_port: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as up:
        there, away = up.getsockname()[1], quiet_port
        (project / "modelbench.toml").write_text(
            f'[candidates.near]\nmodel = "openai/m"\napi_base = "http://127.0.0.1:{there}/v1"\n'
            'api_key_env = "NEAR_KEY"\n'
            f'[candidates.far]\nmodel = "openai/m"\napi_base = "http://127.0.0.1:{away}/v1"\n'
            'api_key_env = "FAR_KEY"\n'
        )
        monkeypatch.setenv("NEAR_KEY", "canary-value-of-the-key")
        monkeypatch.delenv("FAR_KEY", raising=False)
        assert main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "canary" not in said
    assert "ok    key NEAR_KEY: is set" in said
    assert "BAD   key FAR_KEY: is not set, and far needs it" in said
    assert f"ok    server 127.0.0.1:{there} of near: takes connections" in said
    assert f"BAD   server 127.0.0.1:{away} of far: does not take connections" in said


def test_candidates_of_every_kind_are_told(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "solver.py").write_text("def solve(task): ...\n")
    (project / "played.toml").touch()
    (project / "modelbench.toml").write_text(
        '[candidates.mine]\nagent = "function"\nfunction = "solver:solve"\n'
    )
    main(["doctor"])
    said = capsys.readouterr().out
    assert "ok    candidates: mine (function)\n" in said
    assert f"ok    function solver:solve: is in {project / 'solver.py'}\n" in said
    with (project / "modelbench.toml").open("a") as file:
        file.write('[candidates.gone]\nagent = "function"\nfunction = "no_such:solve"\n')
        file.write('[candidates.played]\nagent = "scripted"\nscript = "played.toml"\n')
        file.write('[candidates.asked]\nmodel = "openai/m"\n')
    assert main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "candidates: mine (function), gone (function), played (scripted), asked\n" in said
    assert "BAD   function no_such:solve: " in said
    assert "there is no module 'no_such'" in said


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("def other(task): ...\n", "bad"),
        ("class A:\n    def solve(self): ...\n", "bad"),
        ("def (\n", "bad"),
        ("try:\n    from fast import solve\nexcept ImportError:\n    pass\n", "ok"),
        ("solve = print\n", "ok"),
        ("from elsewhere import *\n", "ok"),
    ],
)
def test_a_function_is_looked_for_in_its_module(project: Path, text: str, state: str) -> None:
    (project / "rules").mkdir()
    (project / "rules" / "__init__.py").write_text("def solve(task): ...\n")
    (project / "rules" / "best.py").write_text(text)
    (project / "modelbench.toml").write_text(
        '[candidates.mine]\nagent = "function"\nfunction = "rules.best:solve"\n'
    )
    seen = told(project / "results")["function rules.best:solve"]
    assert seen[0] == state
    assert str(project / "rules" / ("best.py" if state == "bad" else "")).rstrip("/") in seen[1]


def test_a_program_is_looked_for_where_its_place_is_known(project: Path) -> None:
    (project / "bin").mkdir()
    (project / "bin" / "run").write_text("#!/bin/sh\n")
    (project / "bin" / "run").chmod(0o755)
    tables = [
        f'[candidates.{name}]\nagent = "command"\n'
        f'command = {{argv = ["{first}", "{{task}}"], programs = ["{project}/bin:/tools"]}}\n'
        for name, first in (
            ("there", "/tools/run"),
            ("gone", "/tools/walk"),
            ("nowhere", "/opt/no/such"),
            ("looked-up", "python3"),
        )
    ]
    (project / "modelbench.toml").write_text("\n".join(tables))
    seen = told(project / "results")
    assert seen["program of there"] == ("ok", f"is {project}/bin/run")
    assert seen["program of gone"] == (
        "bad",
        f"{project}/bin/walk is not there; install it, or mend its argv",
    )
    assert seen["program of nowhere"][0] == "bad"
    assert "program of looked-up" not in seen


def test_many_candidates_of_one_server_are_counted(project: Path, quiet_port: int) -> None:
    (project / "modelbench.toml").write_text(
        "\n".join(
            f'[candidates.m{i}]\nmodel = "openai/m{i}"\n'
            f'api_base = "http://127.0.0.1:{quiet_port}/v1"\n'
            for i in range(5)
        )
    )
    seen = told(project / "results")
    assert seen[f"server 127.0.0.1:{quiet_port} of m0, m1, m2 and 2 more"][0] == "bad"


def test_it_changes_nothing(project: Path) -> None:
    told(project / "results")
    assert list(project.iterdir()) == []
