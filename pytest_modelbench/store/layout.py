"""Where results lie: ``results/<pack>/<candidate>/<UTC start>-<run id>.jsonl``, one file a run.

Beside them, not to be committed: ``.evidence/`` (blobs by content), ``.locks/`` and ``.logs/``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote, unquote

from pytest_modelbench.errors import StoreProblem, UsageProblem

EVIDENCE = ".evidence"
LOCKS = ".locks"
LOGS = ".logs"
"""What the commands of servers print: a folder a run."""

LONGEST_NAME = 200
"""Bytes of one quoted folder name; file systems end at 255, and a temporary name needs room."""

BUFFER = 2**16
"""Bytes to read at once: some thirty lines, since asking for each takes as long as splitting it."""


def quoted(name: str) -> str:
    """Return a folder name that is safe on every file system and that ``unquoted`` turns back.

    Letters, digits, ``_ - + ~`` and inner dots stay; all else is percent-encoded UTF-8.
    """
    safe = quote(name, safe="+")
    if safe.startswith("."):
        safe = "%2E" + safe[1:]
    if safe.endswith("."):
        safe = safe[:-1] + "%2E"
    if _DEVICE.match(safe):
        safe = f"%{ord(safe[0]):02X}{safe[1:]}"
    if not safe or len(safe) > LONGEST_NAME:
        raise StoreProblem(
            f"the name {name[:60]!r} cannot be a folder's name: quoted it has {len(safe)} bytes",
            remedy=f"give it an alias of 1 to {LONGEST_NAME} characters in modelbench.toml",
        )
    return safe


def unquoted(folder: str) -> str:
    """Return the name that ``quoted`` was given."""
    return unquote(folder)


def results_file(root: Path, pack: str, candidate: str, started: str, run: str) -> Path:
    """Return the file of one run for one candidate on one pack; ``started`` as in records."""
    return root / quoted(pack) / quoted(candidate) / f"{moment_of(started)}-{quoted(run)}.jsonl"


def moment_of(started: str) -> str:
    """Return a record's time as it stands in the name of a file."""
    return re.sub(r"[-:]|\.\d+", "", started)


def results_files(
    root: Path, packs: Collection[str] | None = None, candidates: Collection[str] | None = None
) -> Iterator[Path]:
    """Yield every results file in a stable order; None means all packs, all candidates.

    Raises:
        StoreProblem: something else has the name of one: what it held is not known.
    """
    for pack in _folders(root):
        if packs is not None and unquoted(pack.name) not in packs:
            continue
        for candidate in _folders(pack):
            if candidates is not None and unquoted(candidate.name) not in candidates:
                continue
            for path in sorted(candidate.glob("*.jsonl")):
                _require_file(path)
                yield path


def open_results(path: Path) -> BinaryIO:
    """Open a file of results to be read; StoreProblem where that cannot be done."""
    _require_file(path)
    try:
        return path.open("rb", buffering=BUFFER)
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error


def _require_file(path: Path) -> None:
    if not path.is_file():  # gone, a folder, a pipe that nobody writes, a link to nowhere
        raise _unreadable(path, "it is no file")


def _unreadable(path: Path, why: str) -> StoreProblem:
    return StoreProblem(
        f"results cannot be read: {why}",
        path=path,
        remedy="mend that, or move it out of the results, for what it holds is not known",
    )


def stored_candidates(root: Path) -> list[tuple[str, str]]:
    """Return the (pack, candidate) pairs that have a folder."""
    return [
        (unquoted(pack.name), unquoted(candidate.name))
        for pack in _folders(root)
        for candidate in _folders(pack)
    ]


def require_stored(
    root: Path, packs: Collection[str] = (), candidates: Collection[str] = ()
) -> None:
    """Raise UsageProblem, with the names that there are, for one of which nothing is stored."""
    stored = stored_candidates(root)
    for noun, named, known in (
        ("pack", packs, sorted({pack for pack, _ in stored})),
        ("candidate", candidates, sorted({name for _, name in stored})),
    ):
        for name in named:
            if name not in known:
                there = ", ".join(known) or "nothing at all"
                raise UsageProblem(f"{root}: nothing is stored of {noun} {name!r}, but of {there}")


def prepare(root: Path) -> None:
    """Make the results folder, and tell git what in it is to be committed and how to merge it.

    Files that the user has already are left as they are.
    """
    try:
        (root / LOCKS).mkdir(parents=True, exist_ok=True)
        for name, text in _GIT_FILES.items():
            path = root / name
            if not path.exists():
                # Written aside and renamed: two workers at once never see half a file.
                aside = root / LOCKS / f"{name}.{os.getpid()}"
                aside.write_text(text, encoding="utf-8")
                aside.replace(path)
    except OSError as error:
        raise StoreProblem(
            f"the results folder cannot be written: {error.strerror}",
            path=root,
            remedy="make it writable, or name another with --modelbench-results",
        ) from error


_DEVICE = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)

_GIT_FILES = {
    ".gitignore": f"""\
# Evidence, locks and logs stay on their machine; results (*.jsonl) are to be committed.
/{EVIDENCE}/
/{LOCKS}/
/{LOGS}/
""",
    ".gitattributes": """\
# One file a run, so merges seldom meet; where they do, the union of the lines is right: a line that
# stands twice counts once. -text: the bytes are evidence, so no line ends are converted.
*.jsonl -text merge=union
""",
}


def _folders(path: Path) -> list[Path]:
    if not path.is_dir():
        return []
    return sorted(p for p in path.iterdir() if p.is_dir() and not p.name.startswith("."))
