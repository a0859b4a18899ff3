"""``check.py`` of a pack: rules for fields that no rule of ours can compare."""

from __future__ import annotations

import hashlib
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
        name: _share_of(name, function)
        for name, function in vars(module).items()
        if isinstance(function, types.FunctionType) and function.__module__ == module.__name__
    }
    return Checks(path, hashlib.sha256(source).hexdigest(), found)


def _share_of(name: str, function: Callable[[str, object], object]) -> Compare:
    """Return a function whose result is a share; TypeError, so a fault, for another result."""

    def share(gold: str, answer: object) -> float:
        found = function(gold, answer)
        if not isinstance(found, bool | int | float) or not 0 <= found <= 1:
            raise TypeError(f"{CHECK_FILE}: {name} returned {found!r}, and no share of 0 to 1")
        return float(found)

    return share
