"""The harvest: what a candidate left in its tree, taken as plain data after its end.

Nothing of the tree is run, followed or waited for, and git is not asked. What is no regular file is
recorded as an oddity and left behind. Grading and the evidence are made from the harvest alone.
"""

from __future__ import annotations

import difflib
import functools
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_modelbench.parsing import parse
from pytest_modelbench.worlds.ownership import give
from pytest_modelbench.worlds.walk import Entry, Kind, Walk

MANIFEST_VERSION = 1

FILE_MODE = 0o644
PROGRAM_MODE = 0o755

_ODDITIES_KEPT = 200
_DIFF_LINES = 4000
_DIFF_BYTES = 512 * 2**10


@dataclass(frozen=True)
class HarvestLimits:
    """What a harvest may hold; bytes, and numbers of entries and of folders inside each other."""

    file_bytes: int = 8 * 2**20
    total_bytes: int = 64 * 2**20
    count: int = 10_000
    depth: int = 64


@dataclass(frozen=True)
class Oddity:
    """What was not taken, and why: a ``Kind``, ``too-big``, ``too-much`` or ``vanished``."""

    path: str
    kind: str


@dataclass(frozen=True)
class Harvest:
    """Files by path relative to the tree, their modes (0o644 or 0o755), and what was left behind.

    ``truncated`` tells that a limit of count, total or oddities was met, so files may be missing.
    """

    files: Mapping[str, bytes]
    modes: Mapping[str, int]
    oddities: tuple[Oddity, ...] = ()
    truncated: bool = False

    @functools.cached_property
    def blobs(self) -> dict[str, bytes]:
        """Return the contents by their SHA-256, as the evidence keeps them."""
        return {hashlib.sha256(data).hexdigest(): data for data in self.files.values()}

    @functools.cached_property
    def digest(self) -> str:
        """Return the digest of paths, modes and contents; the same files give the same digest."""
        lines = [(row["path"], row["mode"], row["sha256"]) for row in self._rows()]
        return hashlib.sha256(json.dumps(lines).encode()).hexdigest()

    @property
    def manifest(self) -> str:
        """Return the JSON text that, with the blobs, makes this harvest again."""
        document = {
            "manifest": MANIFEST_VERSION,
            "digest": self.digest,
            "files": self._rows(),
            "oddities": [{"path": odd.path, "kind": odd.kind} for odd in self.oddities],
            "truncated": self.truncated,
        }
        return json.dumps(document, separators=(",", ":"))

    def diff(self, seed: Mapping[str, bytes]) -> str:
        """Return the change from a seed's files as a unified diff for people."""
        return "".join(
            part
            for path in sorted({*seed, *self.files})
            if seed.get(path) != self.files.get(path)
            for part in _file_diff(path, seed.get(path), self.files.get(path))
        )

    def lay(self, folder: Path, owner: int | None = None) -> None:
        """Write the files into an empty or missing folder; all can read them, ``owner`` write."""
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise ValueError(f"{folder} is not empty")
        folder.chmod(0o755)
        base = str(folder)
        made: set[str] = set()
        for path, data in self.files.items():
            parent = ""
            for part in path.split("/")[:-1]:
                parent = f"{parent}/{part}" if parent else part
                if parent not in made:
                    Path(base, parent).mkdir()
                    Path(base, parent).chmod(0o755)
                    made.add(parent)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(f"{base}/{path}", flags, 0o600)
            with os.fdopen(descriptor, "wb", buffering=0) as file:
                left = memoryview(data)
                while left:
                    left = left[file.write(left) or 0 :]
                os.fchmod(descriptor, self.modes[path])
        give(folder, owner)

    def _rows(self) -> list[dict[str, str | int]]:
        return [
            {
                "path": path,
                "mode": self.modes[path],
                "size": len(data),
                "sha256": hashlib.sha256(data).hexdigest(),
            }
            for path, data in sorted(self.files.items())
        ]


def harvest(tree: Path, limits: HarvestLimits | None = None) -> Harvest:
    """Take what is in a tree. Call when the candidate has ended and no descendant is left."""
    limits = limits or HarvestLimits()
    files: dict[str, bytes] = {}
    modes: dict[str, int] = {}
    oddities: list[Oddity] = []
    truncated = False
    left = limits.total_bytes
    walk = Walk(tree, depth=limits.depth, count=limits.count)
    for entry in walk:
        if entry.kind is Kind.FOLDER:
            continue
        kind = "" if entry.kind is Kind.FILE else entry.kind.value
        if not kind:
            taken = _take(entry, min(limits.file_bytes, left))
            if isinstance(taken, bytes):
                files[entry.path] = taken
                modes[entry.path] = PROGRAM_MODE if entry.mode & 0o100 else FILE_MODE
                left -= len(taken)
                continue
            kind = taken
            if kind == "too-big" and entry.size <= limits.file_bytes:
                kind, truncated = "too-much", True
        if len(oddities) < _ODDITIES_KEPT:
            oddities.append(Oddity(entry.path, kind))
        else:
            truncated = True
    return Harvest(files, modes, tuple(oddities), truncated or walk.truncated)


def from_manifest(text: str, blob: Callable[[str], bytes]) -> Harvest:
    """Make a harvest again from its manifest and a way to get a blob by its SHA-256.

    Nothing in the text is trusted: ValueError when a path leads elsewhere, a content is not what
    its hash says, or the digest is not that of the files.
    """
    try:
        document = parse(text)
        if document["manifest"] != MANIFEST_VERSION:
            raise ValueError(f"manifest version {document['manifest']!r} is not known")
        files: dict[str, bytes] = {}
        modes: dict[str, int] = {}
        for row in document["files"]:
            path, mode, digest = row["path"], row["mode"], row["sha256"]
            _check_path(path, files)
            if mode not in (FILE_MODE, PROGRAM_MODE):
                raise ValueError(f"{path!r} has mode {mode!r}")
            data = blob(digest)
            if hashlib.sha256(data).hexdigest() != digest or len(data) != row["size"]:
                raise ValueError(f"the content of {path!r} is not what its hash says")
            files[path], modes[path] = data, mode
        _check_folders(files)
        oddities = tuple(Oddity(str(o["path"]), str(o["kind"])) for o in document["oddities"])
        found = Harvest(files, modes, oddities, bool(document["truncated"]))
        if found.digest != document["digest"]:
            raise ValueError("the digest is not that of the files")
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no manifest of a harvest: {error!r}") from error
    return found


def read_folder(folder: Path) -> dict[str, bytes]:
    """Return the regular files of a folder of ours (a seed, for ``Harvest.diff``) by their path."""
    return dict(harvest(folder).files)


def _take(entry: Entry, most: int) -> bytes | str:
    """Return a file's content, or the word for why not; reads no more than ``most`` + 1 bytes."""
    if entry.size > most:
        return "too-big"
    try:
        descriptor = entry.open()
    except PermissionError:
        return Kind.UNREADABLE.value
    except OSError:
        return "vanished"
    try:
        chunks: list[bytes] = []
        size = 0
        while size <= most and (chunk := os.read(descriptor, min(entry.size, most) + 1)):
            chunks.append(chunk)
            size += len(chunk)
        return "too-big" if size > most else b"".join(chunks)
    except OSError:
        return Kind.UNREADABLE.value
    finally:
        os.close(descriptor)


def _check_path(path: object, known: Mapping[str, bytes]) -> None:
    if not isinstance(path, str) or path in known:
        raise ValueError(f"{path!r} is no path, or is there twice")
    path.encode()  # a lone surrogate is a UnicodeEncodeError, which is a ValueError
    parts = path.split("/")
    if "\0" in path or any(part in ("", ".", "..") or part.lower() == ".git" for part in parts):
        raise ValueError(f"{path!r} is no path inside a tree")


def _check_folders(files: Mapping[str, bytes]) -> None:
    for path in files:
        parts = path.split("/")
        for end in range(1, len(parts)):
            if "/".join(parts[:end]) in files:
                raise ValueError(f"{'/'.join(parts[:end])!r} is a file and a folder")


def _file_diff(path: str, before: bytes | None, after: bytes | None) -> Iterator[str]:
    old, new = _text(before), _text(after)
    sides = (
        "/dev/null" if before is None else f"a/{_quoted(path)}",
        "/dev/null" if after is None else f"b/{_quoted(path)}",
    )
    if old is None or new is None:
        yield f"{sides[0]} and {sides[1]} differ (binary or too large to show)\n"
        return
    for line in difflib.unified_diff(old, new, *sides):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _text(data: bytes | None) -> list[str] | None:
    """Return the lines of a text that is small enough for difflib, which is quadratic at worst."""
    if data is None:
        return []
    if len(data) > _DIFF_BYTES or b"\0" in data:
        return None
    lines = data.decode(errors="replace").splitlines(keepends=True)
    return lines if len(lines) <= _DIFF_LINES else None


def _quoted(path: str) -> str:
    return path if path.isprintable() else ascii(path)[1:-1]
