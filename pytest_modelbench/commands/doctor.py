"""``modelbench doctor``: what this machine can do, why not more, and what to do about it."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pytest_modelbench.candidates.command import missing_programs, place_on_host
from pytest_modelbench.candidates.function import FUNCTION, source_of, undefined
from pytest_modelbench.candidates.registry import Registry
from pytest_modelbench.errors import UsageProblem
from pytest_modelbench.records import Candidate, Command
from pytest_modelbench.report.escape import escape
from pytest_modelbench.settings import RESULTS, in_project, project_root
from pytest_modelbench.worlds import landlock
from pytest_modelbench.worlds.environment import cache_folder
from pytest_modelbench.worlds.levels import ON_DEMAND, STRICT, probe, probe_named
from pytest_modelbench.worlds.runs import runs_root

CONNECT_SECONDS = 3.0
LITTLE_ROOM = 2 * 2**30
"""Bytes; below this much a folder for worlds or results is called short of room."""

MOST_NAMES = 3
"""Candidates of one server that are named; the others are counted."""

PROVIDER_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "MISTRAL_API_KEY")
"""Variables that LiteLLM looks at on its own account; which ones are set is told, and no value."""


@dataclass(frozen=True)
class Sign:
    """One thing that was looked at: ``ok``, ``note`` or ``bad``, and what to say of it."""

    state: str
    name: str
    text: str


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "doctor", help="say what this machine can do, and why not more; change nothing"
    )
    parser.add_argument("--results", type=Path, default=in_project(RESULTS), metavar="DIR")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the signs; exit status 1 when one is bad."""
    bad = False
    for sign in signs(options.results):
        mark = {"ok": "ok  ", "note": "note", "bad": "BAD "}[sign.state]
        print(f"{mark}  {sign.name}: {escape(sign.text)}")
        bad = bad or sign.state == "bad"
    return 1 if bad else 0


def signs(results: Path) -> Iterator[Sign]:
    """Yield what was seen, the most important first. Runs a probe of each level."""
    yield from _levels()
    yield _namespaces()
    yield _git()
    yield from _places(results)
    yield from _registry()


def _levels() -> Iterator[Sign]:
    levels = probe()
    taken = next(level.name for level in levels if level.available)
    for level in levels:
        if level.available:
            what = "works" + (" (what `auto` takes)" if level.name == taken else "")
            if level.name == "portable":
                what += "; files, processes and network of this user are in a candidate's reach"
        else:
            what = level.why_not
        yield Sign("ok" if level.available else "note", f"box level {level.name}", what)
    for level in map(probe_named, ON_DEMAND):
        what = "works (taken by this name only)" if level.available else level.why_not
        yield Sign("ok" if level.available else "note", f"box level {level.name}", what)
    strict = [level.name for level in levels if level.available and level.name in STRICT]
    if strict:
        yield Sign("ok", "--modelbench-isolation strict", f"can run, with {strict[0]}")
    else:
        reasons = "; ".join(level.why_not for level in levels if level.name in STRICT)
        yield Sign("note", "--modelbench-isolation strict", f"refuses to run: {reasons}")


def _namespaces() -> Sign:
    name = "user namespaces"
    if sys.platform != "linux":
        return Sign("note", name, f"{platform.system()} has none")
    facts = [f"Linux {platform.release()}", f"Landlock version {landlock.version()}"]
    for setting in (
        "user/max_user_namespaces",
        "kernel/unprivileged_userns_clone",
        "kernel/apparmor_restrict_unprivileged_userns",
    ):
        path = Path("/proc/sys", setting)
        if path.exists():
            facts.append(f"{setting.replace('/', '.')}={path.read_text().strip()}")
    program = shutil.which("unshare")
    if program is None:
        return Sign("note", name, f"not tried, there is no unshare; {', '.join(facts)}")
    tried = subprocess.run([program, "--user", "true"], capture_output=True, check=False)
    told = "can be made" if tried.returncode == 0 else tried.stderr.decode(errors="replace").strip()
    state = "ok" if tried.returncode == 0 else "note"
    user = "root" if os.geteuid() == 0 else f"uid {os.geteuid()}"
    return Sign(state, name, f"{told} (as {user}); {', '.join(facts)}")


def _git() -> Sign:
    program = shutil.which("git")
    if program is None:
        return Sign("bad", "git", "is not on the PATH; work trees need git 2.30 or newer")
    told = subprocess.run([program, "--version"], capture_output=True, check=False)
    return Sign("ok", "git", told.stdout.decode(errors="replace").strip())


def _places(results: Path) -> Iterator[Sign]:
    """Say how much room there is where worlds, what is built once, and results are."""
    try:
        yield _room("room for worlds", runs_root())
        yield _room("room for what is built once", cache_folder("seeds"))
    except UsageProblem as problem:
        yield Sign("bad", "room", str(problem))
    yield _room("room for temporary files", Path(tempfile.gettempdir()))
    place = results.absolute()
    while not place.is_dir():
        place = place.parent
    if not os.access(place, os.W_OK):
        yield Sign(
            "bad", "results", f"{place} cannot be written; --modelbench-results names another"
        )
    yield _room("room for results", place)


def _room(name: str, folder: Path) -> Sign:
    free = shutil.disk_usage(folder).free
    text = f"{free / 2**30:.1f} GiB free in {folder}"
    if free < LITTLE_ROOM:
        return Sign("note", name, f"{text}: less than {LITTLE_ROOM / 2**30:.0f} GiB")
    return Sign("ok", name, text)


def _registry() -> Iterator[Sign]:
    """Say which keys are set, by name alone, and which declared servers take a connection."""
    try:
        registry = Registry.read(project_root())
    except UsageProblem as problem:
        yield Sign("bad", "candidates", str(problem))
        return
    every = list(registry.candidates.values())
    named = [c.name if c.agent == "loop" else f"{c.name} ({c.agent})" for c in every]
    yield Sign("ok", "candidates", ", ".join(named) or "none are declared")
    for candidate in every:
        if candidate.agent == FUNCTION:
            try:
                found = source_of(candidate)
            except UsageProblem as problem:
                yield Sign("bad", f"function {candidate.function}", str(problem))
            else:
                wrong = undefined(found)
                text = wrong or f"is in {found.top}"
                yield Sign("bad" if wrong else "ok", f"function {candidate.function}", text)
        elif candidate.command is not None:
            yield from _program(candidate.name, candidate.command)
    candidates = [c for c in every if c.calls_model]
    declared = {c.api_key_env: c.name for c in reversed(candidates) if c.api_key_env}
    for variable, user in sorted(declared.items()):
        if os.environ.get(variable):
            yield Sign("ok", f"key {variable}", "is set")
        else:
            yield Sign("bad", f"key {variable}", f"is not set, and {user} needs it")
    others = [name for name in PROVIDER_KEYS if os.environ.get(name) and name not in declared]
    if others:
        yield Sign("ok", "keys of providers", f"set: {', '.join(others)}")
    yield from _servers(candidates)


def _program(name: str, command: Command) -> Iterator[Sign]:
    """Say whether the program of a candidate is on this machine, where its place is known."""
    for folder in missing_programs(command):
        yield Sign("bad", f"program of {name}", f"there is no {folder}, which its programs name")
        return
    place = place_on_host(command)
    if place is None:
        return
    if os.access(place, os.X_OK) and place.is_file():
        yield Sign("ok", f"program of {name}", f"is {place}")
    else:
        what = "cannot be executed" if place.exists() else "is not there"
        yield Sign("bad", f"program of {name}", f"{place} {what}; install it, or mend its argv")


def _servers(candidates: list[Candidate]) -> Iterator[Sign]:
    users: dict[tuple[str, int], list[str]] = {}
    for candidate in candidates:
        parts = urlsplit(candidate.api_base)
        if parts.hostname:
            try:
                port = parts.port or {"http": 80, "https": 443}.get(parts.scheme, 80)
            except ValueError:
                yield Sign("bad", f"server of {candidate.name}", "its api_base has no sound port")
                continue
            users.setdefault((parts.hostname, port), []).append(candidate.name)
    for (host, port), names in users.items():
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        name = f"server {host}:{port} of {', '.join(names[:MOST_NAMES])}{more}"
        try:
            with socket.create_connection((host, port), timeout=CONNECT_SECONDS):
                yield Sign("ok", name, "takes connections")
        except OSError as error:
            why = error.strerror or str(error)
            yield Sign("bad", name, f"does not take connections: {why}; start it")
