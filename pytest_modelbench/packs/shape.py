"""Which shapes of a pack's folders are refused, and why."""

from __future__ import annotations

import os
import re
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


def check_top(
    folder: Path,
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
    if not folder.is_dir():
        return
    for entry in _entries(folder):
        path = folder / entry.name
        if entry.name == "conftest.py":
            problems.add(
                "pytest would run this file whenever its folder is an argument",
                path,
                remedy="move fixtures of your own tests to a conftest.py above the packs",
            )
        elif entry.name in _PYTEST_INI:
            problems.add(
                "pytest would take this file as its configuration whenever its folder is an "
                "argument",
                path,
                remedy="remove it, or move it into the seed that it belongs to",
            )
        elif (
            entry.name.startswith("test")
            and (path / "conftest.py").exists()
            and not (path / CASE_MANIFEST).exists()  # told when that case is read
        ):
            problems.add(
                "pytest would run this file: it stands in a folder whose name begins with 'test'",
                path / "conftest.py",
                remedy="rename the folder, or move the file below a seed",
            )
        elif folders is not None and entry.name not in folders and entry.is_dir():
            if entry.name[0] not in "._":
                problems.add(
                    f"the folder {entry.name!r} has no meaning in a case",
                    path,
                    remedy=f"known here: {', '.join(folders)}",
                )
        elif folders is None and entry.name == "cases.jsonl" and not may_list_cases:
            problems.add(
                "a file of one case a line is read where pack.toml names a benchmark for it",
                path,
                remedy="write [benchmark] to pack.toml, or a folder with a case.toml for each case",
            )


def check_task_folder(folder: Path, problems: Problems) -> None:
    """Refuse links that leave a seed or hidden folder, nested repositories and special files."""
    _check_tree(folder, problems, links=True)


def check_solution_folder(folder: Path, problems: Problems) -> None:
    """Refuse all but plain files in a reference or a damaged variant: they are laid over a seed."""
    _check_tree(folder, problems, links=False)


def _check_tree(folder: Path, problems: Problems, *, links: bool) -> None:
    if folder.is_symlink() or not folder.is_dir():
        problems.add("is not a folder of its own", folder, remedy="replace it by a folder")
        return
    _check_below(folder, folder, problems, links=links)


def _check_below(here: Path, top: Path, problems: Problems, *, links: bool) -> None:
    for entry in _entries(here):
        path = here / entry.name
        if not _is_text(entry.name):
            problems.add("has a name that is not UTF-8", path, remedy="rename it")
        elif entry.is_symlink():
            _check_link(path, top.resolve(), problems, links=links)
        elif entry.name.lower() == ".git":
            problems.add(
                "is a repository inside of a pack, and its history may hold the answer",
                path,
                remedy="remove it: a world makes a repository of its own",
            )
        elif entry.is_dir():
            _check_below(path, top, problems, links=links)
        elif not entry.is_file():
            problems.add("is neither a file nor a folder", path, remedy="remove it")


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return what a folder holds, sorted by name; the kind of each costs no further call."""
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
