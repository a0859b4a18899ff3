"""Environments are built by a real pip of wheels that are made here; no index is asked."""

from __future__ import annotations

import os
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_modelbench.errors import UsageProblem
from pytest_modelbench.packs.model import EnvironmentSpec
from pytest_modelbench.worlds.box import Box, BoxSpec, Mount
from pytest_modelbench.worlds.environment import environment

SOURCE = "WORD = '{name}'\n\n\ndef say():\n    print(WORD, 'by a script')\n"
SPEC = EnvironmentSpec(("greeting==1.0",))


def _wheel(folder: Path, name: str, requires: str = "") -> None:
    info = f"{name}-1.0.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{requires}"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}.py", SOURCE.format(name=name))
        wheel.writestr(f"{info}/entry_points.txt", f"[console_scripts]\n{name}-say = {name}:say\n")
        wheel.writestr(f"{info}/METADATA", metadata)
        wheel.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr(f"{info}/RECORD", "")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty cache and a folder of wheels for all tests of this file."""
    folder = tmp_path_factory.mktemp("environment")
    wheels = folder / "wheels"
    wheels.mkdir()
    _wheel(wheels, "greeting")
    _wheel(wheels, "needy", "Requires-Dist: greeting\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MODELBENCH_CACHE", str(folder / "cache"))
        patch.setenv("PIP_NO_INDEX", "1")
        patch.setenv("PIP_FIND_LINKS", str(wheels))
        patch.setenv("PIP_CONFIG_FILE", os.devnull)
        yield folder / "cache"


def test_no_packages_need_no_environment(cache: Path) -> None:
    assert environment(EnvironmentSpec()) is None
    assert not cache.exists()


def test_built_once_and_read_by_every_box(cache: Path, box: Box) -> None:
    old = os.umask(0o077)
    try:
        folder = environment(SPEC)
    finally:
        os.umask(old)
    assert folder is not None
    assert folder.parent == cache / "env"
    spec = BoxSpec(workdir="/tmp", mounts=(Mount(folder, "/env"),))
    script = "import greeting, sys; print(greeting.WORD, greeting.__cached__); import pytest"
    told = box.run(["python", "-c", script], spec, seconds=60).output.decode()
    assert "greeting /" in told
    assert "No module named 'pytest'" in told
    assert list(folder.rglob("greeting.*.pyc"))
    assert (folder / "lib").stat().st_mode & 0o055 == 0o055
    before = (folder / "complete").stat()
    assert environment(SPEC) == folder
    assert (folder / "complete").stat() == before


def test_script_of_a_package_runs_in_every_box(cache: Path, box: Box) -> None:
    folder = environment(SPEC)
    assert folder is not None
    spec = BoxSpec(workdir="/tmp", mounts=(Mount(folder, "/env"),))
    done = box.run(["greeting-say"], spec, seconds=60)
    assert (done.status, done.output) == (0, b"greeting by a script\n")


def test_environment_is_read_only_in_a_box(cache: Path, strict_box: Box) -> None:
    folder = environment(SPEC)
    assert folder is not None
    spec = BoxSpec(workdir="/tmp", mounts=(Mount(folder, "/env"),))
    done = strict_box.run(
        ["sh", "-c", "echo >/env/lib/python*/site-packages/greeting.py"], spec, seconds=60
    )
    assert done.status != 0
    assert (next(folder.rglob("greeting.py"))).read_text() == SOURCE.format(name="greeting")


def test_half_built_is_built_anew(cache: Path) -> None:
    folder = environment(SPEC)
    assert folder is not None
    (folder / "complete").unlink()
    next(folder.rglob("greeting.py")).write_text("torn")
    assert environment(SPEC) == folder
    assert next(folder.rglob("greeting.py")).read_text() == SOURCE.format(name="greeting")


def test_lock_without_a_dependency_is_refused(cache: Path) -> None:
    with pytest.raises(UsageProblem, match=r"needy 1\.0 requires greeting, which is not installed"):
        environment(EnvironmentSpec(("needy==1.0",)))
    assert [
        path for path in (cache / "env").iterdir() if "needy" in str(list(path.rglob("*")))
    ] == []


def test_whole_lock_is_another_environment(cache: Path) -> None:
    both = environment(EnvironmentSpec(("needy==1.0", "greeting==1.0")))
    turned = environment(EnvironmentSpec(("greeting==1.0", "needy==1.0")))
    assert both is not None
    assert both == turned != environment(SPEC)


def test_offline_and_not_cached_says_what_to_run(cache: Path) -> None:
    with pytest.raises(UsageProblem, match=r"pip download --no-deps --dest wheels absent==2\.0"):
        environment(EnvironmentSpec(("absent==2.0",)))


@pytest.mark.parametrize(
    "package",
    ["greeting", "greeting>=1", "greeting==1.*", "-r x", "greeting @ file:///x", "a==1 b"],
)
def test_what_is_no_pin_is_refused(cache: Path, package: str) -> None:
    with pytest.raises(UsageProblem, match="name==version"):
        environment(EnvironmentSpec((package,)))


def test_cache_that_cannot_be_made_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("MODELBENCH_CACHE", str(tmp_path / "file"))
    with pytest.raises(UsageProblem, match="set MODELBENCH_CACHE"):
        environment(SPEC)


@pytest.mark.parametrize("room", [4096, 400 * 2**10], ids=["at-once", "midway"])
def test_a_cache_without_room_is_told_with_its_folder(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    """A large package does not fit, or nothing does; nothing half made is left either way."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(place)]
    made = subprocess.run(mount, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no file system can be mounted: {made.stderr.strip()}")
    try:
        status = os.statvfs(place)
        (place / "filler").write_bytes(bytes(status.f_bavail * status.f_frsize - room))
        _wheel(cache.parent / "wheels", "large")
        with zipfile.ZipFile(cache.parent / "wheels/large-1.0-py3-none-any.whl", "a") as wheel:
            wheel.writestr("large.bin", bytes(2**20))
        monkeypatch.setenv("MODELBENCH_CACHE", str(place))
        told = f"cannot be built in {place}/env/.*No space left.*let MODELBENCH_CACHE name another"
        with pytest.raises(UsageProblem, match=told):
            environment(EnvironmentSpec(("large==1.0",)))
        assert not list((place / "env").glob("*/complete"))
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
