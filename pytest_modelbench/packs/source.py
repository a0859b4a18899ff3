"""Cases that a benchmark gives, rather than folders: what is public of each, and what is not."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import re
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Protocol, cast

from pydantic import JsonValue

from pytest_modelbench.errors import UsageProblem

ENTRY_POINTS = "pytest_modelbench.benchmarks"
"""The group of entry points by which a package offers a benchmark under a name."""


@dataclass(frozen=True)
class Private:
    """What judges a case and is never shown: gold answers, hidden data. Its text says nothing."""

    data: Mapping[str, JsonValue] = field(repr=False)


@dataclass(frozen=True, eq=False)
class BenchmarkCase:
    """One case of a benchmark.

    ``public`` is all that the world, the tools and the prompt may be made of. ``world`` is a digest
    of what the world is made of beside it (a database, a workbook). ``damaged`` names the damaged
    answers that ``reference`` can give, each with the checks that it has to lose.
    """

    id: str
    prompt: str
    private: Private
    public: Mapping[str, JsonValue] = field(default_factory=dict)
    title: str = ""
    tags: tuple[str, ...] = ()
    group: str = ""
    world: str = ""
    damaged: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class CaseSource(Protocol):
    """What packs need of a benchmark; ``benchmarks.benchmark.Benchmark`` says the rest.

    ``version`` is raised when a case is made into something else to meet (prompt, tools), and
    ``rules_version`` when an answer could be judged otherwise.
    """

    version: str
    rules_version: str

    def cases(self) -> Iterable[BenchmarkCase]:
        """Return the cases, in the order in which they count."""
        ...

    def reference(self, case: BenchmarkCase, variant: str = "") -> object:
        """Return the answer that passes, or the damaged answer of a name; None for none."""
        ...


@dataclass(frozen=True, eq=False)
class Source:
    """A benchmark that is loaded; ``code`` is the digest of its file where that is the pack's."""

    name: str
    benchmark: CaseSource
    code: str = ""


def load_source(use: str, folder: Path, options: Mapping[str, JsonValue]) -> Source:
    """Load the benchmark that a pack names and give it its options.

    ``use`` is the name of an entry point, ``package.module:Class``, or ``file.py:Class`` of a file
    in the pack's folder. UsageProblem where it cannot be loaded, or refuses its options.
    """
    factory, code = _factory(use, folder)
    try:
        return Source(use, factory(folder, options), code)
    except UsageProblem:
        raise
    except Exception as error:  # whatever code of others raises
        raise UsageProblem(f"the benchmark {use!r} cannot be set up: {_said(error)}") from error


def read_cases(source: Source) -> list[BenchmarkCase]:
    """Return the cases of a source; UsageProblem where they cannot be read."""
    try:
        return list(source.benchmark.cases())
    except UsageProblem:
        raise
    except Exception as error:  # whatever code of others raises
        what = f"the cases of the benchmark {source.name!r} cannot be read: {_said(error)}"
        raise UsageProblem(what) from error


Factory = Callable[[Path, Mapping[str, JsonValue]], CaseSource]


def _factory(use: str, folder: Path) -> tuple[Factory, str]:
    place, colon, name = use.partition(":")
    if not colon:
        return _entry_point(use), ""
    if place.endswith(".py"):
        return _in_file(folder / place, name)
    try:
        module = importlib.import_module(place)
    except ImportError as error:
        raise UsageProblem(f"the benchmark {use!r} cannot be imported: {error}") from error
    return _class(module, name, use), ""


def _entry_point(name: str) -> Factory:
    known = {entry.name: entry for entry in metadata.entry_points(group=ENTRY_POINTS)}
    if name not in known:
        names = ", ".join(sorted(known)) or "none"
        raise UsageProblem(
            f"there is no benchmark {name!r}; installed: {names}. Or name a file of the pack's "
            'folder, use = "FILE.py:Class", or package.module:Class'
        )
    try:
        factory = known[name].load()
    except (ImportError, AttributeError) as error:
        raise UsageProblem(f"the benchmark {name!r} cannot be imported: {error}") from error
    return _callable(factory, name)


def _in_file(path: Path, name: str) -> tuple[Factory, str]:
    if path.parent.name.startswith("test") or re.match(r"(test_|conftest)", path.name):
        raise UsageProblem(f"{path}: pytest would run a file of this name; give it another")
    try:
        source = path.read_bytes()
    except OSError as error:
        raise UsageProblem(f"{path}: cannot be read: {error.strerror or error}") from error
    code = hashlib.sha256(source).hexdigest()
    module_name = f"modelbench_pack_{code[:16]}"
    module = sys.modules.get(module_name)
    if module is None:
        # Made of the bytes that the digest is of: a cached compilation goes by time and size.
        module = types.ModuleType(module_name)
        module.__file__ = str(path)
        sys.modules[module_name] = module  # dataclasses look their module up there
        try:
            exec(compile(source, str(path), "exec", dont_inherit=True), module.__dict__)
        except Exception as error:  # whatever a file of the user's raises
            del sys.modules[module_name]
            raise UsageProblem(f"{path}: cannot be imported: {_said(error)}") from error
    return _class(module, name, f"{path}:{name}"), code


def _class(module: object, name: str, use: str) -> Factory:
    try:
        return _callable(getattr(module, name), use)
    except AttributeError:
        raise UsageProblem(f"there is no {name} in {use!r}") from None


def _callable(found: object, use: str) -> Factory:
    if not inspect.isclass(found) or not callable(getattr(found, "cases", None)):
        raise UsageProblem(f"{use!r} is no benchmark: write a class that extends Benchmark")
    return cast(Factory, found)  # what it lacks of a benchmark shows when it is asked for it


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
