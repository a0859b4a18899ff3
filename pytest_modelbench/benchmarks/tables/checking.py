"""``check.py`` of a pack: rules for fields that no rule of ours can compare."""

from __future__ import annotations

import hashlib
import reprlib
import traceback
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_modelbench.errors import PackProblem

CHECK_FILE = "check.py"

Compare = Callable[[str, object], float]
"""Gold and answer → the share that is right."""


@dataclass(frozen=True)
class Checks:
    """The functions of a ``check.py``, by name; ``code`` is its digest, '' where there is none."""

    path: Path
    code: str = ""
    functions: Mapping[str, Compare] = field(default_factory=dict)

    def named(self, name: str) -> Compare:
        """Return the function of a field; PackProblem where there is none."""
        if name not in self.functions:
            raise PackProblem(
                f"has no function {name!r}" if self.code else "is not there",
                path=self.path,
                remedy=f"write def {name}(gold, answer), which returns True, False or a share",
            )
        return self.functions[name]


def read_checks(folder: Path) -> Checks:
    """Read the ``check.py`` of a pack's folder; it may be missing until it is asked for.

    Its code is the pack author's, and trusted. PackProblem where it cannot be imported.
    """
    path = folder / CHECK_FILE
    try:
        source = path.read_bytes()
    except FileNotFoundError:
        return Checks(path)
    module = types.ModuleType("modelbench_check")
    module.__file__ = str(path)
    try:
        # Made of the bytes that the digest is of: a cached compilation goes by time and size.
        exec(compile(source, str(path), "exec", dont_inherit=True), module.__dict__)
    except Exception as error:  # whatever a file of the user's raises
        what = f"cannot be imported: {type(error).__name__}: {error}"
        raise PackProblem(what, path=path, remedy="mend it") from error
    found = {
        name: _share_of(path, name, function)
        for name, function in vars(module).items()
        if isinstance(function, types.FunctionType) and function.__module__ == module.__name__
    }
    return Checks(path, hashlib.sha256(source).hexdigest(), found)


def _share_of(path: Path, name: str, function: Callable[[str, object], object]) -> Compare:
    """Return a function whose result is a share; PackProblem for another result, or none.

    Where an answer is judged that is a fault; an import, or a report, says it.
    """

    def share(gold: str, answer: object) -> float:
        called = f"{name}({reprlib.repr(gold)}, {reprlib.repr(answer)})"
        try:
            found = function(gold, answer)
        except Exception as error:  # whatever a function of the user's raises
            what = f"{called} raised {type(error).__name__}: {error}"
            raise PackProblem(what, path=path, line=_line(path, error), remedy="mend it") from error
        if not isinstance(found, bool | int | float) or not 0 <= found <= 1:
            what = f"{called} returned {found!r}"
            remedy = "return True, False or a share of 0 to 1"
            raise PackProblem(what, path=path, remedy=remedy)
        return float(found)

    return share


def _line(path: Path, error: Exception) -> int | None:
    """Return the last line of the file that an exception went through."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((one.lineno for one in reversed(frames) if one.filename == str(path)), None)
