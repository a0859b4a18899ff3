"""Scripts of assistant messages, for candidates with ``agent = "scripted"``.

A script is a TOML file::

    [[default.steps]]                   # cases that are not named below
    content = "I do not know."

    [[cases."fix-bug".steps]]           # one step for each turn
    calls = [{ name = "read_file", arguments = { path = "calc.py" } }]

    [[cases."fix-bug".steps]]
    content = "Done."
    usage = { prompt_tokens = 100, completion_tokens = 5 }

    [[cases."fix-bug".variants]]        # these repeats play another one
    repeats = [2, 3]
    steps = [{ content = "I give up." }]

The step is the number of assistant messages in the history, so the script keeps no state. With
``loop = true`` beside ``steps`` the last step is played for ever; otherwise a turn after the last
one is a fault that names the script. A step may have ``delay_s``, ``reasoning``, ``finish``, and
``error = { status = 503, message = "…", times = 2 }``, an error for the first two tries of it.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from pydantic import ConfigDict, Field, JsonValue, ValidationError

from pytest_modelbench.errors import RegistryProblem
from pytest_modelbench.records import Record


class ScriptedCall(Record):
    """One tool call; ``arguments`` may be a string, to script ones that cannot be read."""

    name: str
    arguments: dict[str, JsonValue] | str = Field(default_factory=dict)


class ScriptedError(Record):
    """An error in place of a reply, for the first ``times`` tries of the step; None: every time."""

    status: int = Field(ge=400, lt=600)
    message: str = ""
    code: str = ""
    headers: dict[str, str] = Field(default_factory=dict)
    times: int | None = Field(default=None, gt=0)


class Step(Record):
    """One assistant message."""

    content: str | None = None
    reasoning: str | None = None
    calls: tuple[ScriptedCall, ...] = ()
    finish: str = ""
    usage: dict[str, JsonValue] | None = None
    delay_s: float = Field(default=0.0, ge=0)
    error: ScriptedError | None = None


class _Steps(Record):
    steps: tuple[Step, ...] = ()
    loop: bool = False


class _Variant(_Steps):
    repeats: tuple[int, ...]


class _Case(_Steps):
    variants: tuple[_Variant, ...] = ()


class Script(Record):
    """A script that was read and found sound."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    default: _Case | None = None
    cases: dict[str, _Case] = Field(default_factory=dict)

    def covers(self, case: str) -> bool:
        """Tell whether the script has steps for a case."""
        return case in self.cases or self.default is not None

    def step(self, case: str, repeat: int, position: int) -> Step | None:
        """Return the step at a position (from 0) of a case; None past the last one."""
        entry = self.cases.get(case, self.default)
        if entry is None:
            return None
        chosen: _Steps = next((v for v in entry.variants if repeat in v.repeats), entry)
        if position < len(chosen.steps):
            return chosen.steps[position]
        return chosen.steps[-1] if chosen.loop and chosen.steps else None


def read_script(path: Path) -> Script:
    """Read a script file; RegistryProblem with file and line when it is not sound."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RegistryProblem(
            f"the script cannot be read: {error}",
            path=path,
            remedy="give the path of a TOML file as `script` of the candidate",
        ) from None
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        raise RegistryProblem(
            f"the script is not TOML: {error}",
            path=path,
            line=int(found[1]) if found else text.count("\n"),
        ) from None
    try:
        script = Script.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        raise RegistryProblem(
            f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}",
            path=path,
            line=_line_of(text, first["loc"]),
            remedy="a script has [[default.steps]] and [[cases.NAME.steps]] with content or calls",
        ) from None
    entries = [(("cases", name), entry) for name, entry in script.cases.items()]
    default = [] if script.default is None else [(("default",), script.default)]
    for place, entry in [*default, *entries]:
        bare = not entry.steps and not entry.variants
        if bare or any(not variant.steps for variant in entry.variants):
            raise RegistryProblem(
                f"{'.'.join(place)} has no steps", path=path, line=_line_of(text, place)
            )
    if script.default is None and not script.cases:
        raise RegistryProblem("the script is empty", path=path, remedy="add [[default.steps]]")
    return script


def _line_of(text: str, place: tuple[str | int, ...]) -> int | None:
    """Find the line of a value: walk down to the table, count its repetitions, then the key."""
    lines = text.splitlines()
    names = [part for part in place if isinstance(part, str)]
    counts = [part for part in place if isinstance(part, int)]
    at: int | None = None
    header = 0
    for number, line in enumerate(lines, 1):
        stripped = line.strip()
        if not stripped.startswith("["):
            continue
        keys = re.findall(r'"([^"]+)"|\'([^\']+)\'|([\w-]+)', stripped.strip("[] "))
        table = ["".join(key) for key in keys]
        if table and table == names[: len(table)]:
            if stripped.startswith("[[") and counts and len(table) == len(names[:-1] or names):
                if header == counts[0]:
                    return _key_line(lines, number, names[-1]) or number
                header += 1
            at = at or number
    return at


def _key_line(lines: list[str], start: int, key: str) -> int | None:
    for number in range(start, len(lines)):
        if lines[number].lstrip().startswith("["):
            return None
        if re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", lines[number]):
            return number + 1
    return None
