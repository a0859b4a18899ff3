from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_modelbench.errors import UsageProblem
from pytest_modelbench.worlds import landlock, levels, names, seccomp


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


def test_every_level_has_a_name_that_can_be_asked_for() -> None:
    on_machines = [level.name for level in levels.probe()]
    assert list(names.NAMES) == ["auto", "strict", *on_machines, *levels.ON_DEMAND]


def test_strict_says_what_is_missing_and_how_to_get_it(program_folder: Path) -> None:
    with pytest.raises(UsageProblem, match="install the package bubblewrap"):
        levels.choose("strict")
    # The next best, under its own name.
    held = levels.probe()[1]
    assert levels.choose("auto").level == ("landlock" if held.available else "portable")


def test_the_baseline_is_there_where_nothing_else_is(
    program_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landlock, "version", lambda: 1)
    assert levels.choose("auto").level == "portable"
    with pytest.raises(UsageProblem, match=r"version 1 of it; version 6 .Linux 6.12. is needed"):
        levels.choose("landlock")


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
    with pytest.raises(
        UsageProblem, match=r"auto, strict, bubblewrap, landlock, portable.*docker, podman"
    ):
        levels.choose("prison")


PROBE = """
import json, os, sys
from pytest_modelbench.errors import UsageProblem
from pytest_modelbench.worlds.levels import choose, probe
from pytest_modelbench.worlds.box import BoxSpec
told = {level.name: level.why_not for level in probe() if not level.available}
try:
    strict = choose("strict").level
except UsageProblem as problem:
    strict = str(problem)
box = choose("auto")
ran = box.run(["/bin/sh", "-c", "id -u; cat /etc/shadow"], BoxSpec(workdir="/tmp"), seconds=60)
print(json.dumps({"why_not": told, "strict": strict, "auto": box.level, "uid": os.geteuid(),
                  "inside": ran.output.decode().split()[0],
                  "shadow": "root:" in ran.output.decode()}))
"""


def _probed(prefix: list[str], tmp_path: Path, first: str = "") -> dict:
    """Return what a process that is started under ``prefix`` finds; ``first`` runs in it before."""
    paths = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    paths["TMPDIR"] = str(tmp_path)  # inside, uid 0 is not the uid 0 whose folder may be there
    done = subprocess.run(
        [*prefix, sys.executable, "-c", first + PROBE],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | paths,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _needs_bubblewrap() -> None:
    if not levels.probe()[0].available:
        pytest.skip("bubblewrap does not work here in any case")


def test_user_namespaces_refused(tmp_path: Path) -> None:
    """Really refused, by the kernel, to a process that has no power on the host."""
    _needs_bubblewrap()
    limit = 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"'
    outer = ["unshare", "--user", "--map-root-user", "sh", "-c", limit, "sh"]
    seen = _probed(outer, tmp_path)
    assert "allow user namespaces" in seen["why_not"]["bubblewrap"]
    assert "allow user namespaces" in seen["strict"]
    assert seen["auto"] in ("landlock", "portable")
    assert not (seen["auto"] == "landlock" and seen["shadow"])


FILTERED_PARENT = """
import ctypes, struct
from pytest_modelbench.worlds import seccomp
code = seccomp.program()
buffer = ctypes.create_string_buffer(code, len(code))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer)), 0, 0) == 0
"""


def test_user_namespaces_refused_by_a_filter_of_the_parent(tmp_path: Path) -> None:
    """As in a container: a filter of system calls that all children inherit."""
    if not seccomp.supported():
        pytest.skip("the filter is not known for this machine")
    seen = _probed([], tmp_path, FILTERED_PARENT)
    assert "bubblewrap" in seen["why_not"]
    assert "'strict' is not available on this machine: bubblewrap: " in seen["strict"]
    assert "allow user namespaces" in seen["strict"]
    assert seen["auto"] in ("landlock", "portable")
    assert not (seen["auto"] == "landlock" and seen["shadow"])


def test_an_ordinary_user_has_the_same_levels(tmp_path: Path) -> None:
    _needs_bubblewrap()
    if os.geteuid() != 0:
        pytest.skip("this user is one: all other tests of levels show it")
    seen = _probed(["unshare", "--user", "--map-user=1234", "--map-group=1234"], tmp_path)
    assert seen["uid"] == 1234
    assert "bubblewrap" not in seen["why_not"]
    assert seen["strict"] == seen["auto"] == "bubblewrap"
    assert seen["inside"] == "1000"


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
