"""Function candidates: which Python function is meant, where its source is, what it is made of."""

from __future__ import annotations

import ast
import hashlib
import re
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from pytest_modelbench.candidates.flaws import Flaw
from pytest_modelbench.errors import RegistryProblem
from pytest_modelbench.identity import folder_digest
from pytest_modelbench.packs.model import PACK_MANIFEST
from pytest_modelbench.records import Candidate

FUNCTION = "function"
FUNCTION_VERSION = "1"
"""Part of a function candidate's identity: raised when a function is met otherwise."""

_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


class Source(NamedTuple):
    """A function's module and name, and the file or folder of the topmost module it is in."""

    module: str
    name: str
    top: Path


def flaw_of_function(candidate: Candidate) -> Flaw | None:
    """Return what is wrong with the keys of a candidate as far as functions go, None for nothing.

    Whether the function is there is found out when somebody asks for the candidate.
    """
    if (candidate.agent == FUNCTION) is not bool(candidate.function):
        what = 'a function candidate needs agent = "function" and function = "MODULE:NAME"'
        return Flaw(what, ("function" if candidate.function else "agent",), "write both")
    if not candidate.function:
        return None
    if not _NAME.fullmatch(candidate.function):
        what = f"{candidate.function!r} names no function"
        return Flaw(what, ("function",), 'write "package.module:function"')
    for key in ("model", "api_base", "params", "tuning", "script"):
        if getattr(candidate, key):
            return Flaw(f"a function has no {key}", (key,), "remove it")
    return None


def source_of(candidate: Candidate) -> Source:
    """Return where the function of a candidate is; RegistryProblem where there is no such module.

    The project's folder is looked at first, then its ``src``, then what is installed. Nothing is
    imported here: a function's code runs in a box only.
    """
    module, _, name = candidate.function.partition(":")
    first = module.partition(".")[0]
    root = Path(candidate.root)
    spec = PathFinder.find_spec(first, [str(root), str(root / "src"), *filter(None, sys.path)])
    top = _place(spec)
    if top is None:
        raise _problem(candidate, f"there is no module {first!r}", f"write {first}.py beside it")
    if top.is_dir() and any(top.rglob(PACK_MANIFEST)):
        what = f"{top} holds packs, and a function is given the whole folder that it is in"
        raise _problem(candidate, what, "move the function to a package of its own")
    return Source(module, name, top)


def undefined(source: Source) -> str:
    """Return why a module has no such function, as its text tells; "" where it may have one."""
    path = source.top
    if path.is_dir():
        base = path.joinpath(*source.module.split(".")[1:])
        path = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    if not path.is_file():
        return f"there is no {path}"
    try:
        names = set(_bound(ast.parse(path.read_bytes())))
    except (SyntaxError, ValueError) as error:
        return f"{path}: {error}"
    if names & {source.name.partition(".")[0], "*", "__getattr__"}:
        return ""
    return f"{path} does not define {source.name!r}"


def _bound(node: ast.AST) -> Iterator[str]:
    """Yield the names that a module binds at its top, in branches too; ``*`` for all of another."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name):
                yield name
            case ast.alias(name=name, asname=other):
                yield other or name.partition(".")[0]
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case _:
                yield from _bound(child)


def identity_of_function(candidate: Candidate) -> dict[str, JsonValue]:
    """Return what makes the results of a function what they are: its name, all of its package."""
    top = source_of(candidate).top
    is_file = top.is_file()
    digest = hashlib.sha256(top.read_bytes()).hexdigest() if is_file else folder_digest(top)
    return {"function": candidate.function, "source": digest}


def _place(spec: ModuleSpec | None) -> Path | None:
    if spec is None:
        return None
    if spec.submodule_search_locations is not None:
        return Path(next(iter(spec.submodule_search_locations)))
    ours = spec.origin is not None and spec.origin.endswith(".py")
    return Path(spec.origin) if ours and spec.origin is not None else None


def _problem(candidate: Candidate, what: str, remedy: str) -> RegistryProblem:
    return RegistryProblem(
        f"candidate {candidate.name}, function {candidate.function!r}: {what}",
        path=Path(candidate.root) / "modelbench.toml",
        remedy=remedy,
    )
