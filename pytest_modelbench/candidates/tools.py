"""The tools of the agent loop: what a model is offered, and what a call does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from pytest_modelbench.candidates.prompts import clip
from pytest_modelbench.errors import Fault

HOME = "/work"
COMMAND_SECONDS = 60.0
OUTPUT_CHARS = 16_000
LISTED = 400
HINTED = 20


@dataclass(frozen=True)
class Ran:
    """How a command ended. ``output``: both streams, their head and tail where they are long."""

    status: int | None
    signal: int | None
    output: bytes
    output_total: int
    timed_out: bool


class Refused(Exception):
    """A tool cannot do what it was asked to; the text says why, to the model."""


class Workbench(Protocol):
    """The work tree and the box of one attempt, as the tools use them.

    Paths are the model's: relative to the tree, or below ``/work``. No method follows a link.
    Refused for what the model could mend (no such file); Fault, or OSError, for what is ours.
    """

    def list(self, path: str, *, limit: int) -> tuple[Sequence[str], bool]:
        """Return files below a folder, relative to the tree, and whether there are more."""
        ...

    def read(self, path: str) -> bytes:
        """Return a file's content."""
        ...

    def write(self, path: str, content: bytes) -> None:
        """Write a file; folders on its way are made."""
        ...

    def run(self, command: str, *, seconds: float, output_bytes: int) -> Ran:
        """Run a shell command in the tree to its end or its deadline."""
        ...


@dataclass(frozen=True)
class Result:
    """What a call came to: the text for the model, did it work, was it a command."""

    text: str
    worked: bool
    command: bool = False


@dataclass(frozen=True)
class Tools:
    """The tools of one attempt. ``output_chars`` bounds the text of each result."""

    bench: Workbench
    output_chars: int = OUTPUT_CHARS
    command_seconds: float = COMMAND_SECONDS

    def call(self, name: str, arguments: Mapping[str, JsonValue], seconds: float) -> Result:
        """Run a call of ``ACTIONS`` within some seconds; Fault where the world is broken."""
        problem = problem_with(name, arguments)
        if problem:
            return Result(f"Error: {problem}. Nothing was done.", worked=False)
        try:
            return self._run(name, arguments, seconds)
        except Refused as refused:
            return Result(f"Error: {refused}.{self._what_there_is()}", worked=False)
        except UnicodeDecodeError:
            return Result("Error: this file is not text.", worked=False)
        except OSError as error:
            raise Fault("world", f"{name}: {error.strerror or error}") from error

    def _run(self, name: str, arguments: Mapping[str, JsonValue], seconds: float) -> Result:
        if name == "run_command":
            return self._run_command(str(arguments["command"]), seconds)
        path = str(arguments.get("path") or ".")
        if name == "list_files":
            return self._list(path)
        if name == "read_file":
            return self._read(path, arguments)
        if name == "write_file":
            content = str(arguments["content"])
            self.bench.write(path, _bytes(content))
            return Result(f"Wrote {path} ({_lines(content)}).", worked=True)
        return self._edit(path, str(arguments["old"]), str(arguments["new"]))

    def _list(self, path: str) -> Result:
        found, more = self.bench.list(path, limit=LISTED)
        text = "\n".join(found) + ("\n[and more files]" if more else "")
        return Result(clip(text, self.output_chars) or "(no files)", worked=True)

    def _what_there_is(self) -> str:
        """Return the names of some files, for a model that guessed at one."""
        found, more = self.bench.list(".", limit=HINTED)
        return f" The files are: {', '.join(found)}{', …' if more else ''}." if found else ""

    def _read(self, path: str, arguments: Mapping[str, JsonValue]) -> Result:
        text = self.bench.read(path).decode("utf-8")
        first, count = arguments.get("first_line"), arguments.get("lines")
        if first is not None or count is not None:
            lines = text.splitlines(keepends=True)
            start = max(int(first), 1) - 1 if isinstance(first, int | float) else 0
            end = start + int(count) if isinstance(count, int | float) else len(lines)
            text = "".join(lines[start:end])
            if not text:
                return Result(f"Error: {path} has only {len(lines)} lines.", worked=False)
        return Result(clip(text, self.output_chars) if text else "(empty file)", worked=True)

    def _edit(self, path: str, old: str, new: str) -> Result:
        text = self.bench.read(path).decode("utf-8")
        found = text.count(old) if old else 0
        if found != 1:
            what = (
                f"the old text is in {path} {found} times; give more of it, so that it fits once"
                if found
                else f"the old text is not in {path}; copy it exactly, every line and space of it, "
                "or give the whole file with write_file"
            )
            return Result(f"Error: {what}. Nothing was changed.", worked=False)
        self.bench.write(path, _bytes(text.replace(old, new)))
        return Result(f"Changed {path}.", worked=True)

    def _run_command(self, command: str, seconds: float) -> Result:
        allowed = min(seconds, self.command_seconds)
        # A multiple of what is shown: then the place where the box joins head and tail never shows.
        ran = self.bench.run(
            command, seconds=allowed, output_bytes=max(2**16, 8 * self.output_chars)
        )
        text = ran.output.decode("utf-8", "replace")
        total = len(text) + max(0, ran.output_total - len(ran.output))
        text = clip(text, self.output_chars, total).rstrip("\n") or "(no output)"
        if ran.timed_out:
            return Result(f"{text}\n[stopped after {allowed:.0f} seconds]", False, command=True)
        if ran.signal:
            return Result(f"{text}\n[ended by signal {ran.signal}]", False, command=True)
        return Result(f"{text}\n[exit status {ran.status}]", ran.status == 0, command=True)


def problem_with(name: str, arguments: Mapping[str, JsonValue]) -> str:
    """Return what is wrong with the arguments of a call, '' for nothing."""
    parameters = _PARAMETERS[name]
    takes = f"{name} takes {', '.join(parameters) or 'nothing'}"
    for key in arguments:
        if key not in parameters:
            return f"{takes}; it has no {key!r}"
    for key, (kind, required, _) in parameters.items():
        value = arguments.get(key)
        if value is None and required:
            return f"{takes}; {key} is missing"
        if value is not None and not _is(value, kind):
            return f"{key} must be {'text' if kind == 'string' else 'a whole number'}"
    return ""


_PARAMETERS: dict[str, dict[str, tuple[str, bool, str]]] = {
    "list_files": {"path": ("string", False, "folder, default: the whole project")},
    "read_file": {
        "path": ("string", True, "file"),
        "first_line": ("integer", False, "first line to show, from 1"),
        "lines": ("integer", False, "how many lines to show"),
    },
    "write_file": {
        "path": ("string", True, "file"),
        "content": ("string", True, "the whole new content of the file"),
    },
    "edit_file": {
        "path": ("string", True, "file"),
        "old": ("string", True, "text to replace; must be in the file exactly once"),
        "new": ("string", True, "text to put in its place"),
    },
    "run_command": {"command": ("string", True, "shell command")},
    "finish": {"summary": ("string", False, "what you did, in one sentence")},
    "escalate": {"reason": ("string", True, "why the task cannot be done")},
}
_TEXTS = {
    "list_files": "List the files of the project.",
    "read_file": "Show a file.",
    "write_file": "Create a file or replace all of it.",
    "edit_file": "Replace one piece of text in a file.",
    "run_command": f"Run a shell command in {HOME} and show its output.",
    "finish": "Say that the task is done. Call this last.",
    "escalate": "Give up, because the task cannot be done.",
}
ACTIONS = ("list_files", "read_file", "write_file", "edit_file", "run_command")
NAMES = tuple(_TEXTS)


def schema(name: str) -> dict[str, JsonValue]:
    """Return one of the tools as the chat interface takes it."""
    parameters = _PARAMETERS[name]
    properties: dict[str, JsonValue] = {
        key: {"type": kind, "description": text} for key, (kind, _, text) in parameters.items()
    }
    required: list[JsonValue] = [key for key, (_, needed, _) in parameters.items() if needed]
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": _TEXTS[name],
            "parameters": {"type": "object", "properties": properties, "required": required},
        },
    }


SCHEMAS: tuple[dict[str, JsonValue], ...] = tuple(schema(name) for name in NAMES)
"""The tools as the chat interface takes them."""


def _is(value: JsonValue, kind: str) -> bool:
    if kind == "string":
        return isinstance(value, str)
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return whole and not isinstance(value, bool)


def _bytes(text: str) -> bytes:
    # Half a surrogate pair is legal in JSON and no text in a file: it becomes a question mark.
    return text.encode("utf-8", "replace")


def _lines(text: str) -> str:
    count = len(text.splitlines())
    return f"{count} line" if count == 1 else f"{count} lines"
