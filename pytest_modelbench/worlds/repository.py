"""The seed repository: one commit made of a seed folder alone, and its private copies.

A case's seed becomes, once, a bare repository with fixed author, date and message: the same content
gives the same commit everywhere. Each attempt gets a copy and a work tree of that copy, so nothing
of another attempt, of the project's history or of a reference is in reach, and no lock is shared.

Git is run by the harness only here, before a candidate has started: afterwards configuration and
attributes of the copy are the candidate's to plant.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pytest_modelbench.errors import Fault, PackProblem, UsageProblem
from pytest_modelbench.identity import content_files
from pytest_modelbench.worlds.removal import remove

TREE = "work"
REPOSITORY = "work.git"
"""Names side by side in a world and, with a slash, in a box: links between them are relative."""

_FORMAT = 1  # counts up when what is built of the same seed changes
_CONFIG = """\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
[gc]
\tauto = 0
[maintenance]
\tauto = false
[user]
\tname = Candidate
\temail = candidate@box.invalid
[advice]
\tdetachedHead = false
"""
# Attributes of a seed must not change its bytes on the way into a work tree.
_ATTRIBUTES = "* -text -ident -filter -working-tree-encoding\n"
_AUTHOR = b"Modelbench <seed@modelbench.invalid> 1700000000 +0000"
_GIT = (
    *("git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0"),
    *("-c", "fastimport.unpackLimit=0", "-c", "protocol.allow=never", "-c", "core.fsync=none"),
)
_GIT_SECONDS = 120.0

_checked: dict[Path, SeedRepository] = {}
_keys: dict[Path, tuple[tuple[tuple[str, int, int, int, int], ...], str]] = {}


@dataclass(frozen=True)
class SeedRepository:
    """A checked bare repository of one commit; ``files`` and ``folders`` are all of it."""

    folder: Path
    commit: str
    folders: tuple[str, ...]
    files: tuple[str, ...]

    def fork(self, place: Path) -> None:
        """Make ``place/work.git`` and its detached work tree ``place/work``; links are relative."""
        copy = place / REPOSITORY
        copy.mkdir()
        for name in self.folders:
            (copy / name).mkdir()
        for name in self.files:
            shutil.copyfile(self.folder / name, copy / name)
        tree = place / TREE
        # Locked, as git's own clean-up must not take a tree for gone where it sees it elsewhere.
        _git(copy, "worktree", "add", "--quiet", "--detach", "--lock", str(tree), self.commit)
        (tree / ".git").write_text(f"gitdir: ../{REPOSITORY}/worktrees/{TREE}\n")
        (copy / "worktrees" / TREE / "gitdir").write_text(f"../../../{TREE}/.git\n")


def seed_repository(seed: Path | None, cache: Path) -> SeedRepository:
    """Return the repository of a seed folder (None: of an empty one), built in ``cache`` when new.

    What is found in ``cache`` is compared with the digests taken when it was built, once a process,
    and built anew when it differs. Builders at the same time are safe: the first to end wins.
    """
    entries = [] if seed is None else list(_entries(seed))
    key = _key(seed, entries)
    folder = cache / key
    if (known := _checked.get(folder)) is not None:
        return known
    for _ in range(3):
        found = _check(folder)
        if found is not None:
            _checked[folder] = found
            return found
        _build(seed, entries, folder)
    raise Fault("world", f"{folder}: the seed repository is changed as soon as it is built")


def _entries(seed: Path) -> Iterator[_Entry]:
    """Yield what counts of a seed, sorted: what its digest is of is what a world has."""
    for file in content_files(seed):
        info = file.status
        if ".git" in file.name.lower().split("/"):
            raise PackProblem("a seed may not hold a .git", path=file.path, remedy="remove it")
        if stat.S_ISLNK(info.st_mode):
            _check_link(seed, file.name)
        elif not stat.S_ISREG(info.st_mode):
            raise PackProblem("a seed holds regular files only", path=file.path, remedy="remove it")
        yield _Entry(file.name, info.st_mode, info.st_size, info.st_mtime_ns, info.st_ino)


@dataclass(frozen=True)
class _Entry:
    name: str
    mode: int
    size: int
    changed: int
    inode: int

    @property
    def git_mode(self) -> str:
        if stat.S_ISLNK(self.mode):
            return "120000"
        return "100755" if self.mode & 0o100 else "100644"

    def content(self, seed: Path) -> bytes:
        path = seed / self.name
        return os.fsencode(path.readlink()) if stat.S_ISLNK(self.mode) else path.read_bytes()


def _check_link(seed: Path, name: str) -> None:
    target = PurePosixPath((seed / name).readlink())
    depth = len(PurePosixPath(name).parts) - 1
    for part in target.parts:
        depth += -1 if part == ".." else 1
        if depth < 0 or target.is_absolute():
            raise PackProblem(
                f"a link of a seed leads out of it: {target}",
                path=seed / name,
                remedy="copy what it leads to into the seed",
            )


def _key(seed: Path | None, entries: list[_Entry]) -> str:
    """Return the digest of a seed's content; contents are read once for each state of the files."""
    state = tuple((e.name, e.mode, e.size, e.changed, e.inode) for e in entries)
    if seed is not None and (known := _keys.get(seed)) is not None and known[0] == state:
        return known[1]
    digest = hashlib.sha256(f"{_FORMAT}\0{_CONFIG}\0{_ATTRIBUTES}".encode())
    for entry in sorted(entries, key=lambda entry: entry.name):
        content = b"" if seed is None else entry.content(seed)
        head = f"{entry.name}\0{entry.git_mode}\0{len(content)}\0"
        digest.update(os.fsencode(head) + content)
    key = digest.hexdigest()[:40]
    if seed is not None:
        _keys[seed] = (state, key)
    return key


def _build(seed: Path | None, entries: list[_Entry], folder: Path) -> None:
    """Build a seed repository under another name and put it in its place."""
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = folder.with_name(f".{folder.name[:8]}-{secrets.token_hex(8)}")
    repository = fresh / "repository"
    try:
        for name in ("objects", "refs/heads", "hooks", "info"):
            (repository / name).mkdir(parents=True)
        (repository / "HEAD").write_text("ref: refs/heads/main\n")
        (repository / "config").write_text(_CONFIG)
        (repository / "info" / "attributes").write_text(_ATTRIBUTES)
        _git(repository, "fast-import", "--quiet", "--done", stdin=_stream(seed, entries))
        commit = (repository / "refs" / "heads" / "main").read_text().strip()
        folders, files = _census(repository)
        digests = {name: _digest(repository / name) for name in files}
        record = {"commit": commit, "folders": folders, "files": digests}
        (fresh / "seed.json").write_text(json.dumps(record))
        if folder.exists():  # it did not pass its check
            stale = folder.with_name(f".{folder.name[:8]}-{secrets.token_hex(8)}")
            with contextlib.suppress(FileNotFoundError):
                folder.rename(stale)
                remove(stale)
        with contextlib.suppress(OSError):  # another builder was first; the check decides
            fresh.rename(folder)
    except OSError as error:
        raise Fault(
            "world",
            f"{fresh}: cannot build the seed repository: {error}; MODELBENCH_CACHE names another "
            "place for it",
        ) from error
    finally:
        remove(fresh)


def _stream(seed: Path | None, entries: list[_Entry]) -> bytes:
    """Return the commit as a stream of git-fast-import: no filter, index or ignore file acts."""
    message = b"Seed"
    parts = [b"commit refs/heads/main\nauthor %s\ncommitter %s\n" % (_AUTHOR, _AUTHOR)]
    parts.append(b"data %d\n%s\n" % (len(message), message))
    for entry in entries:
        content = b"" if seed is None else entry.content(seed)
        name = os.fsencode(entry.name).replace(b"\\", b"\\\\").replace(b'"', b'\\"')
        name = name.replace(b"\n", b"\\n")
        parts.append(b'M %s inline "%s"\n' % (entry.git_mode.encode(), name))
        parts.append(b"data %d\n%s\n" % (len(content), content))
    return b"".join([*parts, b"done\n"])


def _check(folder: Path) -> SeedRepository | None:
    """Return the repository in a folder when it is, file for file, what was built."""
    repository = folder / "repository"
    try:
        record = json.loads((folder / "seed.json").read_text())
        folders, files = _census(repository)
        digests = {name: _digest(repository / name) for name in files}
        if digests != record["files"] or folders != record["folders"]:
            return None
        return SeedRepository(repository, record["commit"], tuple(folders), tuple(files))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _census(repository: Path) -> tuple[list[str], list[str]]:
    """Return the folders (parents first) and files of a repository, by relative name."""
    folders: list[str] = []
    files: list[str] = []
    for path in sorted(repository.rglob("*")):
        name = path.relative_to(repository).as_posix()
        (folders if path.is_dir() and not path.is_symlink() else files).append(name)
    return folders, files


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _git(repository: Path, *arguments: str, stdin: bytes = b"") -> None:
    """Run git on a repository that only the harness has written, with nothing of the user's."""
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": "/dev/null",
        "LC_ALL": "C",
        "TZ": "UTC",
        "GIT_DIR": str(repository),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_SYSTEM": "/dev/null",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }
    try:
        done = subprocess.run(
            [*_GIT, *arguments],
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=repository,
            env=environment,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise UsageProblem("git is not on the PATH; worlds are made with it: install git") from None
    except subprocess.TimeoutExpired:
        raise Fault("world", f"{repository}: git {arguments[0]} took too long") from None
    if done.returncode != 0:
        told = done.stdout.decode(errors="replace").strip()[-1000:]
        raise Fault("world", f"{repository}: git {' '.join(arguments[:2])} failed: {told}")
