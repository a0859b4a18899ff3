from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_modelbench.errors import UsageProblem
from pytest_modelbench.worlds import levels


@pytest.fixture
def program_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """The only folder of the PATH, empty at first; probed anew, and forgotten afterwards."""
    monkeypatch.setenv("PATH", str(tmp_path))
    levels.probe.cache_clear()
    yield tmp_path
    levels.probe.cache_clear()


def _program(folder: Path, script: str) -> None:
    (folder / "bwrap").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "bwrap").chmod(0o755)


def test_strict_says_what_is_missing_and_how_to_get_it(program_folder: Path) -> None:
    with pytest.raises(UsageProblem, match="install the package bubblewrap"):
        levels.choose("strict")
    assert levels.choose("auto").level == "portable"


def test_named_level_is_never_replaced(program_folder: Path) -> None:
    with pytest.raises(UsageProblem, match="'bubblewrap' is not available"):
        levels.choose("bubblewrap")


def test_installed_is_not_enough(program_folder: Path) -> None:
    _program(
        program_folder,
        """
case "$1" in --version) echo bubblewrap 0.9.0;; *)
    echo 'bwrap: No permissions to create a new namespace' >&2; exit 1;; esac""",
    )
    bubblewrap = levels.probe()[0]
    assert not bubblewrap.available
    assert "No permissions to create a new namespace" in bubblewrap.why_not
    assert "allow user namespaces" in bubblewrap.why_not


def test_old_version_is_refused(program_folder: Path) -> None:
    _program(program_folder, "echo bubblewrap 0.6.1")
    assert "too old" in levels.probe()[0].why_not


def test_box_that_drops_nothing_is_refused(program_folder: Path) -> None:
    """A program that runs the command, but not in a box."""
    _program(
        program_folder,
        """
case "$1" in --version) echo bubblewrap 0.9.0; exit;; esac
while [ "$1" != -- ]; do
    case "$1" in --json-status-fd) status=$2;; --block-fd) gate=$2;; esac; shift; done
shift
echo "{ \\"child-pid\\": $$ }" >/proc/self/fd/$status
while [ "$1" != /bin/sh ]; do shift; done
"$@"; echo "{ \\"exit-code\\": $? }" >/proc/self/fd/$status; exit 0""",
    )
    bubblewrap = levels.probe()[0]
    assert not bubblewrap.available


def test_unknown_name_lists_the_known(program_folder: Path) -> None:
    with pytest.raises(UsageProblem, match="auto, strict, bubblewrap, portable"):
        levels.choose("docker")


def test_user_namespaces_refused(tmp_path: Path) -> None:
    """Really refused, by the kernel, to a process that has no power on the host."""
    if not levels.probe()[0].available:
        pytest.skip("bubblewrap does not work here in any case")
    limit = 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"'
    outer = ["unshare", "--user", "--map-root-user", "sh", "-c", limit, "sh"]
    script = "from pytest_modelbench.worlds.levels import probe; print(probe()[0].why_not)"
    paths = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    paths["TMPDIR"] = str(tmp_path)  # inside, uid 0 is not the uid 0 whose folder may be there
    done = subprocess.run(
        [*outer, sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | paths,
    )
    assert "allow user namespaces" in done.stdout


def test_available_where_bubblewrap_works() -> None:
    """Else every test of a box would be skipped when the box is broken."""
    options = ["--unshare-all", "--dev-bind", "/", "/", "--proc", "/proc"]
    try:
        plain = subprocess.run(["bwrap", *options, "true"], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("bubblewrap is not installed")
    if plain.returncode != 0:
        pytest.skip(f"bubblewrap does not work here: {plain.stderr.decode()}")
    assert levels.probe()[0] == levels.Level("bubblewrap", available=True)


def test_probe_is_made_once() -> None:
    assert levels.probe() is levels.probe()
