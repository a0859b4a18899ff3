"""Keep what is too large for a line: blobs named by their SHA-256, compressed, never changed."""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from pytest_modelbench.errors import StoreProblem
from pytest_modelbench.records import AttemptRecord
from pytest_modelbench.store.layout import EVIDENCE, prepare


class Evidence:
    """The blobs of one results folder: ``.evidence/<first two digits>/<sha256>``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._folder = root / EVIDENCE

    def put(self, data: bytes) -> str:
        """Keep some bytes and return their name, ``sha256:…``; they are on disk on return."""
        digest = hashlib.sha256(data).hexdigest()
        path = self._path(digest)
        if path.exists():  # only whole blobs are ever given their name
            return f"sha256:{digest}"
        aside = path.with_name(f".{uuid4().hex}.tmp")
        try:
            if not path.parent.is_dir():
                prepare(self.root)
                path.parent.mkdir(parents=True, exist_ok=True)
            with aside.open("xb") as file:
                file.write(zlib.compress(data, 6))
                file.flush()
                os.fsync(file.fileno())
            aside.replace(path)
            _sync(path.parent)
        except OSError as error:
            with suppress(OSError):
                aside.unlink(missing_ok=True)
            raise StoreProblem(
                f"{len(data)} bytes of evidence were not stored: {error.strerror or error}",
                path=path,
                remedy="make room or rights, then run again: what is stored is not run again",
            ) from error
        return f"sha256:{digest}"

    def get(self, name: str) -> bytes:
        """Return the bytes of a name; StoreProblem where they are missing or not those bytes."""
        digest = _digest(name)
        path = self._path(digest)
        try:
            data = zlib.decompress(path.read_bytes())
        except FileNotFoundError as error:
            raise StoreProblem(
                f"the evidence {name} is not here",
                path=path,
                remedy="it is not committed: copy .evidence from the machine that ran the attempt, "
                "or run the cell again",
            ) from error
        except OSError as error:
            raise StoreProblem(f"evidence cannot be read: {error.strerror}", path=path) from error
        except zlib.error as error:
            raise self._spoilt(path, name) from error
        if hashlib.sha256(data).hexdigest() != digest:
            raise self._spoilt(path, name)
        return data

    def has(self, name: str) -> bool:
        """Tell whether the bytes of a name are here."""
        return self._path(_digest(name)).exists()

    def has_harvest(self, record: AttemptRecord) -> bool:
        """Tell whether all that a regrade of an attempt needs is here, or in its own line."""
        return record.harvest is not None or (
            "harvest" in record.evidence and self.has(record.evidence["harvest"])
        )

    def _path(self, digest: str) -> Path:
        return self._folder / digest[:2] / digest

    @staticmethod
    def _spoilt(path: Path, name: str) -> StoreProblem:
        return StoreProblem(
            f"the evidence is damaged: it is not what {name} names",
            path=path,
            remedy="delete the file and copy it from elsewhere, or run the cell again",
        )


def _digest(name: str) -> str:
    match = re.fullmatch(r"sha256:([0-9a-f]{64})", name)
    if match is None:
        raise StoreProblem(f"{name[:80]!r} is no name of evidence; it begins with sha256:")
    return match[1]


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
