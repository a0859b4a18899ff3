"""TOML manifests whose every problem is told with its file, its line and a remedy."""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from pytest_modelbench.errors import PackProblem, PackProblems


class Problems:
    """What is wrong with a pack, gathered so that an author sees all of it at once."""

    def __init__(self) -> None:
        self._found: list[PackProblem] = []

    def add(self, what: str, path: Path, line: int | None = None, *, remedy: str) -> None:
        """Note one problem."""
        self._found.append(PackProblem(what, path=path, line=line, remedy=remedy))

    def extend(self, problem: PackProblem) -> None:
        """Note what another reader raised, one or many."""
        self._found.extend(problem.problems if isinstance(problem, PackProblems) else (problem,))

    def __len__(self) -> int:
        return len(self._found)

    def check(self) -> None:
        """Raise the one problem, or all of them as one PackProblems; return when there is none."""
        if len(self._found) == 1:
            raise self._found[0]
        if self._found:
            raise PackProblems(self._found)


class Table:
    """A table of a manifest, read key by key.

    Each ``take_*`` returns the value, or the default where the key is missing or has a wrong type;
    the latter is noted as a problem. ``finish`` notes the keys that nobody took.
    """

    def __init__(
        self, manifest: Manifest, values: Mapping[str, object], where: tuple[str, ...] = ()
    ) -> None:
        self._manifest = manifest
        self._values = values
        self._where = where
        self._known: list[str] = []

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def line(self, key: str = "") -> int | None:
        """Return the line on which a key stands, or the table's own."""
        return self._manifest.line((*self._where, key) if key else self._where)

    def problem(self, key: str, what: str, remedy: str) -> None:
        """Note a problem at a key of this table."""
        self._manifest.problems.add(what, self._manifest.path, self.line(key), remedy=remedy)

    def take_table(self, key: str) -> Table:
        """Return a table below this one, empty where there is none."""
        value = self._take(key)
        if value is not None and not isinstance(value, dict):
            self._wrong(key, "a table", value, f"write [{'.'.join((*self._where, key))}]")
            value = None
        return Table(self._manifest, value or {}, (*self._where, key))

    def take_text(self, key: str, default: str = "") -> str:
        """Return a string."""
        value = self._take(key)
        if value is None:
            return default
        if not isinstance(value, str):
            self._wrong(key, "a string", value, f'write {key} = "…"')
            return default
        return value

    def take_choice(self, key: str, choices: Sequence[str], default: str) -> str:
        """Return a string that is one of some."""
        value = self.take_text(key, default)
        if value not in choices:
            self.problem(key, f"{key} {value!r} is not known", f"use one of {_listed(choices)}")
            return default
        return value

    def take_texts(self, key: str) -> tuple[str, ...]:
        """Return a list of different strings, none of them empty."""
        value = self._take(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            self._wrong(key, "a list of strings", value, f'write {key} = ["…", "…"]')
            return ()
        texts = tuple(one for one in value if isinstance(one, str))
        repeated = sorted({text for text in texts if texts.count(text) > 1})
        if repeated:
            self.problem(key, f"{key} holds {_listed(repeated)} more than once", "name each once")
            return ()
        if "" in texts:
            self.problem(key, f"{key} holds an empty string", "remove it")
            return ()
        return texts

    def take_number(self, key: str, *, whole: bool, most: float = math.inf) -> float | None:
        """Return a number above 0 and up to ``most``; None where there is none."""
        value = self._take(key)
        if value is None:
            return None
        wanted = "a whole number" if whole else "a number"
        kinds = (int,) if whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds):
            self._wrong(key, wanted, value, f"write {key} = {'30' if whole else '30.0'}")
            return None
        if not 0 < value <= most or not _finite(value):
            top = "" if math.isinf(most) else f" and at most {most:g}"
            shown = f"{value}" if -1e15 < value < 1e15 or value != value else "far too large"
            remedy = f"give {wanted} above 0{top}, or leave {key} out"
            self.problem(key, f"{key} is {shown}", remedy)
            return None
        return value

    def take_rest(self) -> dict[str, object]:
        """Return all that nobody took yet; what it means is for others to say."""
        rest = {key: value for key, value in self._values.items() if key not in self._known}
        self._known += rest
        return rest

    def finish(self) -> None:
        """Note every key that is not known here."""
        for key in self._values:
            if key in self._known:
                continue
            near = difflib.get_close_matches(key, self._known, 1)
            place = f"[{'.'.join(self._where)}]" if self._where else "the top of the file"
            hint = f"did you mean {near[0]!r}? " if near else ""
            self.problem(
                key,
                f"unknown key {key!r} in {place}",
                f"{hint}known here: {', '.join(self._known)}",
            )

    def _take(self, key: str) -> object | None:
        self._known.append(key)
        return self._values.get(key)

    def _wrong(self, key: str, wanted: str, value: object, remedy: str) -> None:
        self.problem(key, f"{key} is {_kind(value)}, and must be {wanted}", remedy)


class Manifest(Table):
    """A TOML file: its top table, with the line of each key."""

    def __init__(self, path: Path, problems: Problems) -> None:
        """Read and parse; a file that cannot be read is a problem and an empty table."""
        self.path = path
        self.problems = problems
        text = _read_text(path, problems)
        values = None if text is None else _parse(text, path, problems)
        self.sound = values is not None
        self._text = text if text is not None and self.sound else ""
        super().__init__(self, values or {})

    @cached_property
    def _lines(self) -> dict[tuple[str, ...], int]:
        """Return the line of each key; nobody asks where there is no problem."""
        return key_lines(self._text)

    def line(self, key: str | tuple[str, ...] = "") -> int | None:
        """Return the line of a key, or of the nearest table above it; None where none is known."""
        where = key if isinstance(key, tuple) else (key,)
        for length in range(len(where), 0, -1):
            if where[:length] in self._lines:
                return self._lines[where[:length]]
        return None


def read_prose(path: Path, problems: Problems) -> str:
    """Return the text of a file without white space around it; line ends are newlines.

    So a prompt is the same in ``prompt.md``, in ``case.toml`` and after a checkout elsewhere.
    """
    text = _read_text(path, problems) or ""
    return text.replace("\r\n", "\n").strip()


_COMPONENT = r'"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|[A-Za-z0-9_-]+'
_KEY = re.compile(rf"[ \t]*({_COMPONENT})[ \t]*(\.?)")
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_REST_OF_LINE = re.compile(r"[^\n]*")
_VALUE_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"""{1,3}'
    r"|'''.*?''''{0,2}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*"
    r"|.",
    re.DOTALL,
)


def key_lines(text: str) -> dict[tuple[str, ...], int]:
    """Return the line, from 1, of each key and table of a text that is sound TOML.

    Keys inside inline tables are not told apart from the key that holds them.
    """
    lines: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    counted, line = 0, 1
    at = _end(_BLANK, text, 0)
    while at < len(text):
        line += text.count("\n", counted, at)
        counted = at
        header = text[at] == "["
        if header:
            at += 2 if text.startswith("[[", at) else 1
        key, at = _key(text, at)
        if not key:
            break
        path = key if header else table + key
        for length in range(1, len(path) + 1):
            lines.setdefault(path[:length], line)
        if header:
            table = path
            at = _end(_REST_OF_LINE, text, at)
        else:
            at = _after_value(text, at)
        at = _end(_BLANK, text, at)
    return lines


def _key(text: str, at: int) -> tuple[tuple[str, ...], int]:
    parts: list[str] = []
    while match := _KEY.match(text, at):
        at = match.end()
        raw = match[1]
        parts.append(next(iter(tomllib.loads(f"{raw}=0"))) if raw[0] in "\"'" else raw)
        if not match[2]:
            break
    return tuple(parts), at


def _after_value(text: str, at: int) -> int:
    depth = 0
    while match := _VALUE_TOKEN.match(text, at):
        token = match[0]
        if token == "\n" and depth == 0:
            break
        depth += (token in "[{") - (token in "]}")
        at = match.end()
    return at


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _read_text(path: Path, problems: Problems) -> str | None:
    try:
        data = path.read_bytes()
    except OSError as error:
        problems.add(
            f"cannot be read: {error.strerror or error}", path, remedy="make it a readable file"
        )
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The codec counts from behind a byte order mark that it dropped; a line is exact enough.
        line = data.count(b"\n", 0, error.start) + 1
        problems.add("is not UTF-8 text", path, line, remedy="save it as UTF-8")
        return None


def _parse(text: str, path: Path, problems: Problems) -> dict[str, object] | None:
    try:
        return tomllib.loads(text)
    except RecursionError:
        problems.add(
            "is nested too deeply", path, remedy="write a manifest by docs/write-a-pack.md"
        )
    except ValueError as error:  # TOMLDecodeError, and the int of thousands of digits
        match = re.search(r"\(at line (\d+), column \d+\)", str(error))
        line = int(match[1]) if match else None
        if "at end of document" in str(error):
            line = text.count("\n", 0, len(text.rstrip())) + 1
        what = re.sub(r" \(at .*\)$", "", str(error), flags=re.DOTALL)
        problems.add(f"is not TOML: {what}", path, line, remedy="mend the line")
    return None


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _kind(value: object) -> str:
    names = {bool: "a boolean", int: "a whole number", float: "a number", str: "a string"}
    names |= {list: "a list", dict: "a table"}
    return names.get(type(value), "a date or time")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)
