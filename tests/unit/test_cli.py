"""The modelbench command as a program: how it ends."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_modelbench.cli import MODULES, main


def test_ctrl_c_ends_a_command_without_a_traceback(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        (tmp_path / "modelbench.toml").write_text(
            '[candidates.silent]\nmodel = "openai/m"\n'
            f'api_base = "http://127.0.0.1:{server.getsockname()[1]}/v1"\n',
            encoding="utf-8",
        )
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "probe", "silent"],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        connection, _ = server.accept()  # it waits for a reply from here on
        with connection:
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said == "modelbench: interrupted; what it had written stays\n"


PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
from pytest_modelbench.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize("command", MODULES)
def test_a_command_adds_itself_under_the_name_by_which_it_is_found(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: modelbench {command} ")


@pytest.mark.parametrize("word", ["--help", "no-command"])
def test_all_commands_are_listed_where_none_is_named(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([word])
    told = "".join(capsys.readouterr())
    assert all(command in told for command in ["report", "new-pack", *MODULES])
