"""Which shapes of a pack's folders are refused, and why."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from pytest_modelbench.packs.manifest import Problems
from pytest_modelbench.packs.model import CASE_MANIFEST, DAMAGED_SUFFIX

LONGEST_ID = 100

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

_PYTEST_INI = (
    "pytest.toml",
    ".pytest.toml",
    "pytest.ini",
    ".pytest.ini",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
)


def check_id(what: str, name: str, path: Path, line: int | None, problems: Problems) -> None:
    """Refuse an id that cannot be a folder, a node id and part of a results path alike."""
    shown = name if len(name) <= 60 else f"{name[:57]}…"
    if not _ID.fullmatch(name):
        problems.add(
            f"{shown!r} cannot be the id of a {what}",
            path,
            line,
            remedy="use letters, digits, '.', '_' and '-', the first a letter or digit",
        )
    elif len(name) > LONGEST_ID:
        problems.add(
            f"the id {shown!r} of a {what} has {len(name)} characters",
            path,
            line,
            remedy=f"use at most {LONGEST_ID}",
        )
    elif name.lower().endswith(DAMAGED_SUFFIX):
        problems.add(
            f"{shown!r} cannot be the id of a {what}: damaged variants are kept under such names",
            path,
            line,
            remedy=f"use a name that does not end in {DAMAGED_SUFFIX}",
        )


Entries = Mapping[str, os.DirEntry[str]]
"""What a folder holds, by name; the kind of each costs no further call."""


def listing(folder: Path) -> Entries:
    """Return what a folder holds, sorted by name; nothing where there is no folder."""
    return {entry.name: entry for entry in _entries(folder)} if folder.is_dir() else {}


def is_folder(entry: os.DirEntry[str] | None) -> bool:
    """Tell whether there is a folder, or a link to one; a ring of links is none."""
    if entry is None:
        return False
    return Path(entry.path).is_dir() if entry.is_symlink() else entry.is_dir()


def check_top(
    folder: Path,
    entries: Entries,
    problems: Problems,
    folders: tuple[str, ...] | None = None,
    *,
    may_list_cases: bool = False,
) -> None:
    """Refuse what pytest would run or obey as soon as this folder is its argument.

    pytest executes ``conftest.py`` of an argument, of the folders above it and of the ``test*``
    folders in it before any plugin can stop it. ``folders``: the only folders that may be here.
    ``may_list_cases``: a file of one case a line is read by somebody.
    """
    for name, entry in entries.items():
        if name == "conftest.py":
            problems.add(
                "pytest would run this file whenever its folder is an argument",
                folder / name,
                remedy="move fixtures of your own tests to a conftest.py above the packs",
            )
        elif name in _PYTEST_INI:
            problems.add(
                "pytest would take this file as its configuration whenever its folder is an "
                "argument",
                folder / name,
                remedy="remove it, or move it into the seed that it belongs to",
            )
        elif (
            name.startswith("test")
            and (folder / name / "conftest.py").exists()
            and not (folder / name / CASE_MANIFEST).exists()  # told when that case is read
        ):
            problems.add(
                "pytest would run this file: it stands in a folder whose name begins with 'test'",
                folder / name / "conftest.py",
                remedy="rename the folder, or move the file below a seed",
            )
        elif folders is not None and name not in folders and entry.is_dir():
            if name[0] not in "._":
                problems.add(
                    f"the folder {name!r} has no meaning in a case",
                    folder / name,
                    remedy=f"known here: {', '.join(folders)}",
                )
        elif folders is None and name == "cases.jsonl" and not may_list_cases:
            problems.add(
                "a file of one case a line is read where pack.toml names a benchmark for it",
                folder / name,
                remedy="write [benchmark] to pack.toml, or a folder with a case.toml for each case",
            )


def check_task_folder(folder: os.DirEntry[str], problems: Problems) -> list[str]:
    """Refuse links that leave a seed or hidden folder, nested repositories and special files.

    Return the names of the files in it, at any depth.
    """
    return _check_tree(folder, problems, links=True)


def check_solution_folder(folder: os.DirEntry[str], problems: Problems) -> None:
    """Refuse all but plain files in a reference or a damaged variant: they are laid over a seed."""
    _check_tree(folder, problems, links=False)


def _check_tree(folder: os.DirEntry[str], problems: Problems, *, links: bool) -> list[str]:
    files: list[str] = []
    if folder.is_symlink() or not folder.is_dir():
        path = Path(folder.path)
        problems.add("is not a folder of its own", path, remedy="replace it by a folder")
    else:
        _check_below(folder.path, folder.path, problems, files, links=links)
    return files


def _check_below(here: str, top: str, problems: Problems, files: list[str], *, links: bool) -> None:
    for entry in _entries(here):
        if not _is_text(entry.name):
            problems.add("has a name that is not UTF-8", Path(entry.path), remedy="rename it")
        elif entry.is_symlink():
            _check_link(Path(entry.path), Path(top).resolve(), problems, links=links)
            files.append(entry.name)
        elif entry.name.lower() == ".git":
            problems.add(
                "is a repository inside of a pack, and its history may hold the answer",
                Path(entry.path),
                remedy="remove it: a world makes a repository of its own",
            )
        elif entry.is_dir():
            _check_below(entry.path, top, problems, files, links=links)
        elif not entry.is_file():
            path = Path(entry.path)
            problems.add("is neither a file nor a folder", path, remedy="remove it")
        else:
            files.append(entry.name)


def _entries(folder: str | Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as listing:
        return sorted(listing, key=lambda entry: entry.name)


def _check_link(path: Path, top: Path, problems: Problems, *, links: bool) -> None:
    if not links:
        problems.add("is a symbolic link", path, remedy="put a copy of the file there")
        return
    target = path.readlink()
    remedy = f"link to a place below {top.name}/ with a relative path, or put a copy there"
    parent = path.parent.resolve()
    try:
        inside = not target.is_absolute() and path.resolve().is_relative_to(top)
    except (OSError, RuntimeError):  # a ring of links
        problems.add("is a symbolic link that leads to itself", path, remedy="remove it")
        return
    # A path that leaves and comes back would lead elsewhere once the folder is copied.
    if not inside or _leaves(parent, target, top):
        problems.add(f"is a symbolic link that leaves {top.name}/: {target}", path, remedy=remedy)


def _leaves(parent: Path, target: Path, top: Path) -> bool:
    here = parent
    for part in target.parts:
        here = Path(os.path.normpath(here / part))
        if not here.is_relative_to(top):
            return True
    return False


def _is_text(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
