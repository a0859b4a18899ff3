"""Agent programs: how one is started from its template, and what it says about its own end."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from pydantic import JsonValue

from pytest_modelbench.candidates.flaws import Flaw
from pytest_modelbench.gateway.windows import Reading, readings_of_output
from pytest_modelbench.parsing import amount, parse
from pytest_modelbench.records import Candidate, Command

PLACES = ("task", "task_file", "base_url", "token", "model", "home", "work", "window", "turns")
"""What ``{…}`` in a template may name; other braces are left as they are."""

TREE = "/work"
"""Where a box has the work tree: `worlds.box.WORK`, of which this module must not know."""

TASK_FILE = ".task.md"
STDIN_FILE = ".stdin"

_PLACE = re.compile(r"\{(" + "|".join(PLACES) + r")\}")
_PATH = re.compile(r"json:[^.\s]+(\.[^.\s]+)*")


@dataclass(frozen=True)
class Started:
    """One program with its template filled in; ``files`` are relative to its home."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    files: Mapping[str, str]
    has_stdin: bool


def fill(command: Command, values: Mapping[str, str]) -> Started:
    """Fill a template. ``values`` has every name of ``PLACES``.

    KeyError where one is missing that the template asks for: what it is to say is not known.
    """

    def filled(text: str) -> str:
        return _PLACE.sub(lambda found: values[found[1]], text)

    files = {name: filled(text) for name, text in command.files.items()}
    files[TASK_FILE] = values["task"]
    if command.stdin:
        files[STDIN_FILE] = filled(command.stdin)
    return Started(
        tuple(filled(word) for word in command.argv),
        {name: filled(value) for name, value in command.environment.items()},
        files,
        bool(command.stdin),
    )


@dataclass(frozen=True)
class Told:
    """What a program says about its end: worth nothing where the gateway knows better.

    ``failed`` is None where it says nothing; ``text`` is why, in its own words. ``windows`` are the
    usage windows of its provider that it tells of.
    """

    failed: bool | None
    text: str = ""
    cost_usd: float | None = None
    windows: tuple[Reading, ...] = ()


def read_told(command: Command, status: int | None, output: str, result: str = "") -> Told:
    """Read a program's output, and the ``result_file`` where one is declared.

    A flag in the output that says error outweighs both its exit status and every other word.
    """
    documents = [*_documents(output), *_documents(result)]
    told = _end_told(command, status, documents)
    return replace(
        told,
        cost_usd=amount(_at(documents, command.cost)),
        windows=readings_of_output(documents),
    )


def _end_told(command: Command, status: int | None, documents: Sequence[JsonValue]) -> Told:
    flag = _at(documents, "json:is_error")
    if flag is True:
        words = _at(documents, "json:result")
        return Told(True, words if isinstance(words, str) else "is_error is true")
    if command.result == "exit":
        failed = None if status is None else status != 0
        return Told(failed, f"exit status {status}" if failed else "")
    value = _at(documents, command.result)
    if value is None:
        return Told(None, f"its output has no {command.result.removeprefix('json:')}")
    name = command.result.removeprefix("json:")
    failed = str(value) not in command.success if command.success else bool(value)
    return Told(failed, f"{name} is {value}" if failed else "")


def flaw_of_command(candidate: Candidate) -> Flaw | None:
    """Return what is wrong with the command of a candidate, None for nothing."""
    command = candidate.command
    if (command is None) != (candidate.agent != "command"):
        what = 'an agent program needs agent = "command" and a table command'
        return Flaw(what, ("command",) if command else ("agent",), "see docs/agent-programs.md")
    if command is None:
        return None
    if not command.argv or not command.argv[0]:
        return Flaw("the command is empty", ("command", "argv"), 'write argv = ["PROGRAM", …]')
    for key in ("result", "cost"):
        value = getattr(command, key)
        if not (_PATH.fullmatch(value) or (value == "exit" and key == "result") or not value):
            return Flaw(f"{value!r} is no way to read it", ("command", key), 'write "json:PATH"')
    for name in (*command.files, *filter(None, [command.result_file])):
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            remedy = "write a path below the program's home, such as .config/x.toml"
            return Flaw(f"{name!r} is not below the home", ("command", "files"), remedy)
    for name in command.programs:
        if not all(place.startswith("/") for place in places_of(name)):
            remedy = 'write "/FOLDER" of the host, or "/FOLDER:/FOLDER-IN-THE-BOX"'
            return Flaw(f"{name!r} is not absolute", ("command", "programs"), remedy)
        source, place = places_of(name)
        if PurePosixPath(TREE) in (PurePosixPath(place), *PurePosixPath(place).parents):
            what = f"{place!r} is in {TREE}, where a box has the work tree"
            remedy = f'write "{source}:/FOLDER-IN-THE-BOX", and that folder in argv'
            return Flaw(what, ("command", "programs"), remedy)
    texts = [*command.argv, command.stdin, *command.environment.values(), *command.files.values()]
    if not any("{task}" in text or "{task_file}" in text for text in texts):
        remedy = "write {task} or {task_file} into argv, stdin, environment or a file"
        return Flaw("the program is not told its task", ("command", "argv"), remedy)
    return None


def places_of(program: str) -> tuple[str, str]:
    """Return where a program's folder is on the host, and where it is in the box."""
    source, _, target = program.partition(":")
    return source, target or source


def place_on_host(command: Command) -> Path | None:
    """Return where the program that a command starts is on this host, as far as that is known.

    None for a name that the box looks up, and for one that holds a field.
    """
    first = command.argv[0]
    if not first.startswith("/") or "{" in first:
        return None
    for source, place in map(places_of, command.programs):
        if PurePosixPath(first).is_relative_to(place):
            return Path(source, PurePosixPath(first).relative_to(place))
    return Path(first)


def missing_programs(command: Command) -> list[str]:
    """Return the folders of a command's programs that this host has not got."""
    return [source for source, _ in map(places_of, command.programs) if not Path(source).exists()]


def identity_of_command(command: Command) -> dict[str, JsonValue]:
    """Return what of a command makes its results what they are: not where it is installed."""
    data = command.model_dump(mode="json", exclude={"programs", "version", "cost"})
    first, *rest = command.argv
    return {**data, "argv": [PurePosixPath(first).name, *rest]}


def _documents(text: str) -> list[JsonValue]:
    """Return the JSON documents of an output: the whole of it, or its lines that are some."""
    try:
        return [parse(text)]
    except ValueError:
        pass
    found: list[JsonValue] = []
    for line in text.splitlines():
        if line.lstrip().startswith("{"):
            try:
                found.append(parse(line))
            except ValueError:
                continue
    return found


def _at(documents: Sequence[JsonValue], path: str) -> JsonValue:
    """Return the value at a path of the last document that has it, None for none."""
    if not path.startswith("json:"):
        return None
    for document in reversed(documents):
        value = document
        for name in path.removeprefix("json:").split("."):
            if isinstance(value, dict):
                value = value.get(name)
            elif isinstance(value, list) and name.lstrip("-").isdigit():
                place = int(name)
                value = value[place] if -len(value) <= place < len(value) else None
            else:
                value = None
        if value is not None:
            return value
    return None
