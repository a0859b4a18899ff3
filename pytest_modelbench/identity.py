"""Content hashes: what makes a stored result the result of this cell.

Identity has four parts, *task*, *check*, *candidate* and *reference*, so that each change
invalidates the least. Every digest is 32 hexadecimal characters of a SHA-256 over canonical JSON.
Key order, comments, file times and the order of a folder's listing enter none of them.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from pytest_modelbench.errors import RegistryProblem
from pytest_modelbench.records import Candidate, Limits

IGNORED_NAMES = frozenset(
    {
        "__pycache__",
        ".git",
        ".pytest_cache",
        ".mypy_cache",
        ".ruff_cache",
        ".hypothesis",
        ".DS_Store",
        "Thumbs.db",
        "desktop.ini",
    }
)
"""Names that tools and systems leave in a folder; no content of a pack."""

IGNORED_SUFFIXES = (".pyc", ".pyo")


def task_digest(
    *,
    prompt: str,
    seed: Path | None,
    limits: Limits,
    protocol: JsonValue,
    packages: Iterable[str] = (),
    network: bool = False,
) -> str:
    """Return the identity of what a candidate meets.

    ``protocol`` is its name and version, with the tools and schemas that it offers; ``packages`` is
    the lock of the environment.
    """
    return digest(
        {
            "prompt": prompt,
            "seed": None if seed is None else folder_digest(seed),
            "limits": limits.model_dump(mode="json", exclude_none=True),
            "protocol": protocol,
            "packages": [*sorted(packages)],
            "network": network,
        }
    )


def check_digest(
    *,
    hidden: Path | None,
    mode: str,
    seconds: float,
    grader: str,
    versions: Mapping[str, str] | None = None,
    judge: Sequence[str] = (),
) -> str:
    """Return the identity of what judges: hidden files, how they are run, and by which grader.

    ``versions`` are those of the check-side libraries that the pack names, ``judge`` what there is
    to say of the model that its checks ask.
    """
    return digest(
        {
            "hidden": None if hidden is None else folder_digest(hidden),
            "mode": mode,
            "seconds": seconds,
            "grader": grader,
            "versions": dict(versions or {}),
            **({"judge": [*judge]} if judge else {}),
        }
    )


def reference_digest(
    reference: Path | None,
    damaged: Mapping[str, tuple[Path, Sequence[str]]],
    *,
    leave_out: Iterable[str] = (),
) -> str:
    """Return the identity of a reference and of its damaged variants; '' for no reference.

    ``damaged`` is name → (folder, the checks that it loses); ``leave_out`` names files at the top
    of those folders that are not laid.
    """
    if reference is None:
        return ""
    return digest(
        {
            "reference": folder_digest(reference),
            "damaged": {
                name: [folder_digest(folder, leave_out=leave_out), *sorted(loses)]
                for name, (folder, loses) in damaged.items()
            },
        }
    )


def candidate_digest(
    candidate: Candidate,
    agent_version: str,
    program: Mapping[str, JsonValue] | None = None,
    window: int | None = None,
) -> str:
    """Return the identity of what is measured; raise RegistryProblem where its script is missing.

    Neither the name is in it, nor prices, the key's variable, notes, the server or declared facts.
    ``program`` is what counts of an agent program's command, or of a function; its version is
    ``agent_version``. ``window`` is the context window where a fact alone tells it: histories are
    shortened and replies are bounded by it, as by the one that ``tuning`` names.
    """
    script = ""
    if candidate.script:
        try:
            script = hashlib.sha256(Path(candidate.script).read_bytes()).hexdigest()
        except OSError as error:
            raise RegistryProblem(
                f"the script of {candidate.name!r} cannot be read: {error.strerror}",
                path=Path(candidate.script),
                remedy="write it, or correct `script` of this candidate",
            ) from error
    return digest(
        {
            "model": candidate.model,
            "address": (candidate.same_as or candidate.api_base).rstrip("/"),
            "params": candidate.params,
            "tuning": candidate.tuning,
            "limits": candidate.limits.model_dump(mode="json", exclude_none=True),
            "options": candidate.options,
            "script": script,
            "agent": candidate.agent,
            "agent_version": agent_version,
            **({} if program is None else {"command": dict(program)}),
            **({"window": window} if window is not None else {}),
            **({"speaks": [*sorted(candidate.speaks)]} if candidate.speaks else {}),
        }
    )


def digest(value: JsonValue) -> str:
    """Return the digest of plain data."""
    return hashlib.sha256(canonical(value)).hexdigest()[:32]


def canonical(value: JsonValue) -> bytes:
    """Return the one JSON form of plain data: sorted keys, ASCII, ``1.0`` as ``1``.

    A lone surrogate stays apart from every other text; so do infinities and NaN.
    """
    return _CANONICAL.encode(_plain(value)).encode("ascii")


_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
)


class ContentFile(NamedTuple):
    """A file or a symbolic link of a folder: its place in it, with ``/``, and its lstat."""

    name: str
    path: Path
    status: os.stat_result


def content_files(folder: Path) -> Iterator[ContentFile]:
    """Yield what counts as content of a folder, sorted by name; empty folders do not.

    Whoever copies a seed or a reference copies these, so that a digest is of what was copied.
    """
    with os.scandir(folder) as listing:
        entries = sorted(listing, key=lambda entry: os.fsencode(entry.name))
    for entry in entries:
        if entry.name in IGNORED_NAMES or entry.name.endswith(IGNORED_SUFFIXES):
            continue
        path = folder / entry.name
        if entry.is_dir(follow_symlinks=False):
            for below in content_files(path):
                yield below._replace(name=f"{entry.name}/{below.name}")
        else:
            yield ContentFile(entry.name, path, entry.stat(follow_symlinks=False))


def folder_digest(path: Path, *, leave_out: Iterable[str] = ()) -> str:
    """Return the digest of a folder's content: names, executable bits, bytes, targets of links.

    ``leave_out`` names files at its top that do not count.
    """
    skipped = frozenset(leave_out)
    total = hashlib.sha256()
    for file in content_files(path):
        if file.name in skipped:
            continue
        if stat.S_ISLNK(file.status.st_mode):
            kind = b"link"
            content = hashlib.sha256(os.fsencode(file.path.readlink())).hexdigest()
        else:
            kind = b"exec" if file.status.st_mode & stat.S_IXUSR else b"file"
            content = _file_digest(file)
        # No name holds a NUL, so that no two folders give one stream.
        total.update(b"%s\0%s\0%s\n" % (os.fsencode(file.name), kind, content.encode("ascii")))
    return total.hexdigest()[:32]


_Signature = tuple[int, int, int, int, int]
_known_files: dict[Path, tuple[_Signature, str]] = {}

_READ_WHOLE = 2**18
"""Files up to this size, in bytes, are read at once."""

_SETTLED_SECONDS = 2.0
"""A file that changed less than this ago may change again within one tick of its time stamps."""


def _file_digest(file: ContentFile) -> str:
    status = file.status
    signature = (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )
    known = _known_files.get(file.path)
    if known is not None and known[0] == signature:
        return known[1]
    with file.path.open("rb") as stream:
        if status.st_size <= _READ_WHOLE:  # file_digest makes a buffer of as much for each file
            found = hashlib.sha256(stream.read()).hexdigest()
        else:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
    if time.time() - status.st_ctime > _SETTLED_SECONDS:
        _known_files[file.path] = (signature, found)
    return found


def _plain(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            return {"float": repr(value)}
        if value.is_integer() and abs(value) < 2**53:
            return int(value)
    return value
