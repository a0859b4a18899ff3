"""A process that closed itself is closed to commands that run as its own user."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pytest_modelbench.gateway.process import GatewayProcess
from pytest_modelbench.worlds.box import TEMPORARY, BoxSpec
from pytest_modelbench.worlds.portable import PortableBox

SHOW = "import ctypes; print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"  # PR_GET_DUMPABLE
CLOSE = "from pytest_modelbench.privacy import close_to_others; close_to_others(); "


def _said(program: str) -> str:
    paths = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | paths,
    )
    return done.stdout.strip()


def test_it_is_undumpable_from_then_on() -> None:
    assert _said(SHOW) == "1"
    assert _said(CLOSE + SHOW) == "0"


def test_the_portable_level_closes_its_process() -> None:
    made = "from pytest_modelbench.worlds.portable import PortableBox; PortableBox(); "
    assert _said(made + SHOW) == "0"


def test_the_environment_of_the_gateway_is_closed_at_the_weakest_level(tmp_path: Path) -> None:
    box = PortableBox()
    with GatewayProcess.start([], retries=0) as gateway:
        places = [
            f"/proc/{pid}/{name}"
            for pid in (gateway.pid, os.getpid())
            for name in ("environ", "maps")
        ]
        done = box.run(
            ["sh", "-c", f"cat {' '.join(places)}"], BoxSpec(workdir=TEMPORARY), seconds=30
        )
    assert done.output.count(b"Permission denied") == 4, done.output
