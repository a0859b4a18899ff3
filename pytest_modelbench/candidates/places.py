"""Where a key stands in a TOML text: the parser of the standard library does not say."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_modelbench.errors import RegistryProblem


def read_toml(path: Path) -> tuple[dict[str, Any], str]:  # Any: whatever the user wrote
    """Return a TOML file's tables and its text; RegistryProblem with the line where it is none."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise RegistryProblem(f"cannot be read ({error.strerror})", path=path) from None
    except UnicodeDecodeError as error:
        raise RegistryProblem(
            f"is not UTF-8 (byte {error.start})", path=path, remedy="save it as UTF-8"
        ) from None
    try:
        return tomllib.loads(text), text
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        what = re.sub(r"\s*\(at .*\)$", "", str(error))
        line = int(found.group(1)) if found else text.count("\n") + 1
        raise RegistryProblem(f"is not TOML: {what}", path=path, line=line) from None


def line_of(text: str, keys: Sequence[str]) -> int | None:
    """Return the line (from 1) on which a key or a table of a sound TOML text begins.

    Found by parsing longer and longer beginnings of the text, so that every way of writing a key
    (dotted, quoted, inline) counts. None where the text has no such key. Meant for messages: it
    costs a parse a line.
    """
    lines = text.splitlines()
    begun = 0
    for end in range(1, len(lines) + 1):
        try:
            table = tomllib.loads("\n".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            continue
        if _has(table, keys):
            statement = range(begun, end)
            first = next((n for n in statement if _says_something(lines[n])), begun)
            return first + 1
        begun = end
    return None


def _has(table: object, keys: Sequence[str]) -> bool:
    for key in keys:
        if not isinstance(table, dict) or key not in table:
            return False
        table = table[key]
    return True


def _says_something(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")
