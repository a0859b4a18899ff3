"""A naive runner: what many projects do, and what each attack of the corpus beats or harms.

The project's repository is shared, the environment is handed on, hidden tests are copied into the
tree, ``python -m pytest`` decides by its exit code. Run as a program by ``test_attacks.py``: one
JSON object in, one out. Nothing of it is ever to be used.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


def main() -> None:
    """Try one fixture. ``seconds`` is when it gives a step up, as a person with Ctrl-C would."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: to see what is left
    told = json.load(sys.stdin)
    task, fixture, work = (Path(told[name]) for name in ("task", "fixture", "work"))
    project = make_project(task, work)
    runs = []
    for number in range(1, told["runs"] + 1):
        runs.append(one(told, task, fixture, work, project, number))
    print(json.dumps(runs))


def make_project(task: Path, work: Path) -> Path:
    """Make a repository whose second commit is the solution, as after a fix that was merged."""
    project = work / "project"
    shutil.copytree(task / "seed", project)
    git(project, "init", "-q", "-b", "main", ".")
    git(project, "config", "user.name", "n")
    git(project, "config", "user.email", "n@n.invalid")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "before")
    shutil.copy(task / "reference" / "calc.py", project / "calc.py")
    git(project, "commit", "-qam", "the fix")
    (project / "reference_solutions").mkdir()
    shutil.copy(task / "reference" / "calc.py", project / "reference_solutions")
    return project


def one(
    told: dict[str, Any], task: Path, fixture: Path, work: Path, project: Path, number: int
) -> dict[str, Any]:
    """Let the candidate work in a tree of the shared repository, then test in place."""
    begin = time.monotonic()
    seconds = int(told["seconds"])
    tree = project / "attempts" / str(number)
    git(project, "worktree", "add", "-q", "--detach", str(tree), "HEAD~1")
    log = work / f"log{number}"
    hung = False
    for path in sorted((fixture / "files").rglob("*")):
        if path.is_file():
            place = tree / path.relative_to(fixture / "files")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(replaced(path.read_text(), told))
    with log.open("ab") as out:
        program = fixture / "candidate.py"
        ended: int | None = None
        if program.exists():
            text = f"import os; os.write(1, b'{told['started']}')\n"
            text += replaced(program.read_text(), told)
            ended = run([sys.executable, "-"], tree, out, seconds, text.encode())
            hung = ended is None
        hidden = (task / "hidden" / "test_hidden_calc.py").read_text()
        if told["careless"]:
            hidden = hidden.replace("    assert type(got) is type(expected)\n", "")
        with contextlib.suppress(OSError):
            (tree / "tests" / "test_hidden_calc.py").write_text(hidden)
        for arguments in (["status", "--short"], ["add", "-A"], ["diff", "--cached"], ["status"]):
            hung |= run(["git", *arguments], tree, out, seconds) is None
        code = run([sys.executable, "-m", "pytest", "-p", "no:randomly"], tree, out, seconds)
        hung |= code is None
    copied = evidence(tree, seconds)
    hung |= copied is None
    kept = (copied or b"") + log.read_bytes() + listing(tree)
    left = descendants()
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return {
        "passed": code == 0,
        "hung": hung,
        "script": ended,
        "started": told["started"].encode() in log.read_bytes(),
        "survivors": len(left),
        "kept": kept[: 2**20].decode("latin-1"),
        "canary": told["canary"].encode() in kept,
        "escape": b"\x1b" in kept,
        "bytes": len(kept),
        "seconds": time.monotonic() - begin,
        "files": {
            name: (tree / name).read_text(errors="replace")
            for name in told["wanted"]
            if (tree / name).is_file()
        },
    }


def replaced(text: str, told: dict[str, Any]) -> str:
    """Put this test's own paths into a fixture's text."""
    for old, new in told["replace"].items():
        text = text.replace(old, new)
    return text


def run(command: list[str], tree: Path, out: Any, seconds: int, stdin: bytes = b"") -> int | None:
    """Run a command; None when it had to be given up."""
    process = subprocess.Popen(
        command, cwd=tree, stdin=subprocess.PIPE, stdout=out, stderr=out, start_new_session=True
    )
    try:
        process.communicate(stdin, timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None
    return process.returncode


def evidence(tree: Path, seconds: int) -> bytes | None:
    """Read all files of a tree, as a copy of it would; None when it had to be given up."""

    def give_up(number: int, frame: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    pieces = []
    try:
        for folder, folders, files in os.walk(tree):
            folders[:] = [name for name in folders if name not in (".git", "__pycache__")]
            for name in files:
                try:
                    pieces.append(Path(folder, name).read_bytes())
                except TimeoutError:
                    return None
                except OSError:
                    continue
    finally:
        signal.alarm(0)
    return b"".join(pieces)


def listing(tree: Path) -> bytes:
    """Return the names of a tree's files, as a report would print them."""
    return b"\n".join(
        os.fsencode(Path(folder, name)) for folder, _, files in os.walk(tree) for name in files
    )


def git(folder: Path, *arguments: str) -> None:
    """Run git; CalledProcessError when it fails."""
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)


def descendants() -> set[int]:
    """Return every living process below this one."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if fields[0] != "Z":
                parents[int(stat.parent.name)] = int(fields[1])
    found: set[int] = set()
    level = {os.getpid()}
    while level:
        level = {pid for pid, parent in parents.items() if parent in level} - found
        found |= level
    return found


if __name__ == "__main__":
    main()
