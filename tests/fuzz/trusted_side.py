"""Fuzz what the trusted side reads of a candidate: messages, manifests, trees.

    python tests/fuzz/trusted_side.py message|manifest|harvest [-runs=1000000] [libFuzzer options]

Needs atheris, which is for Linux and few versions of Python. Each input is bounded in time and
memory; a crash is any exception but the one that says that the input is refused. ``make fuzz`` runs
a million inputs of each; hypothesis does less of the same in ``make test``.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(
    include=["pytest_modelbench.checks.wire", "pytest_modelbench.worlds"]
):
    from pytest_modelbench.checks import wire
    from pytest_modelbench.worlds.harvest import HarvestLimits, from_manifest, harvest

SECONDS = 5.0
"""Longest that one input may take; some tenths of a second are ordinary on a machine at work."""

GROWTH_KB = 512 * 2**10
"""Most that the process may grow over all inputs."""

LIMITS = HarvestLimits(file_bytes=2**12, total_bytes=2**14, count=64, depth=8)


def message(data: bytes) -> None:
    """Decode an answer of a boxed worker; what is decoded encodes to the same meaning."""
    with contextlib.suppress(wire.Malformed):
        wire.decode(data, lambda number, name: (number, name), lambda value, name: None)
    with contextlib.suppress(wire.Malformed):
        wire.frame_length(data[:4].ljust(4, b"\0"))


def manifest(data: bytes) -> None:
    """Read a manifest; blobs are whatever it asks for."""
    provider = atheris.FuzzedDataProvider(data)
    if provider.ConsumeBool():
        rows = [
            {
                "path": provider.ConsumeUnicode(12),
                "mode": provider.PickValueInList([0o644, 0o755, 0, -1, "644", None]),
                "size": provider.ConsumeIntInRange(-1, 3),
                "sha256": provider.PickValueInList([EMPTY, "", 5, None, "0" * 64]),
            }
            for _ in range(provider.ConsumeIntInRange(0, 4))
        ]
        text = json.dumps(
            {
                "manifest": provider.PickValueInList([1, 2, None]),
                "files": rows,
                "oddities": [],
                "truncated": False,
                "digest": "",
            }
        )
    else:
        text = provider.ConsumeUnicode(2000)
    with contextlib.suppress(ValueError):
        found = from_manifest(text, lambda name: b"")
        for path in found.files:
            assert not path.startswith("/")
            assert ".." not in path.split("/")


EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
_MEMORY = Path("/dev/shm")
_place = (_MEMORY if _MEMORY.is_dir() else Path(tempfile.gettempdir())) / f"fuzz-{os.getpid()}"


def tree(data: bytes) -> None:
    """Make a tree as a candidate could, and harvest it."""
    provider = atheris.FuzzedDataProvider(data)
    top = os.fsencode(_place / "tree")
    Path(os.fsdecode(top)).mkdir(parents=True)
    folders = [top]
    try:
        for _ in range(provider.ConsumeIntInRange(0, 8)):
            parent = provider.PickValueInList(folders)
            name = provider.ConsumeBytes(6).replace(b"/", b"_").replace(b"\0", b"_") or b"x"
            path = parent + b"/" + name
            with contextlib.suppress(OSError):
                _make(provider, path, folders)
        found = harvest(Path(os.fsdecode(top)), LIMITS)
        assert sum(map(len, found.files.values())) <= LIMITS.total_bytes
        assert len(found.files) <= LIMITS.count
        again = from_manifest(found.manifest, found.blobs.__getitem__)
        assert again.digest == found.digest
    finally:
        # All of it, since libFuzzer ends the process without a last word.
        shutil.rmtree(_place, ignore_errors=True)


def _make(provider: atheris.FuzzedDataProvider, raw: bytes, folders: list[bytes]) -> None:
    # Files are made, never opened: the name may be that of a FIFO, or of a link out of the tree.
    path = Path(os.fsdecode(raw))
    kind = provider.ConsumeIntInRange(0, 6)
    if kind == 0:
        path.mkdir()
        folders.append(raw)
    elif kind == 1:
        os.mkfifo(path)
    elif kind == 2:
        path.symlink_to(provider.PickValueInList(["/etc/passwd", ".", "..", "/dev/zero"]))
    elif kind == 3:
        with path.open("xb") as file:
            file.truncate(provider.ConsumeIntInRange(0, 2**40))
    else:
        with path.open("xb") as file:
            file.write(provider.ConsumeBytes(64))
        if kind == 6:
            path.chmod(provider.ConsumeIntInRange(0, 0o777))


TARGETS: dict[str, Callable[[bytes], None]] = {
    "message": message,
    "manifest": manifest,
    "harvest": tree,
}


def main() -> None:
    """Run one target for as long as libFuzzer's options say."""
    name = sys.argv.pop(1)
    target = TARGETS[name]
    begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def one(data: bytes) -> None:
        begin = time.monotonic()
        target(data)
        assert time.monotonic() - begin < SECONDS, "an input took too long"
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - begun
        assert grown < GROWTH_KB, f"memory grew by {grown} kB"

    atheris.Setup(sys.argv, one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
