"""The process in the box that a function candidate runs in: import it, call it, pass calls on.

This file is whole in itself: its text is handed to a bare interpreter, so it imports nothing of
this project. Each message is one line of JSON, both ways. The first that comes says what to do;
what goes back is ``{"loaded": true}`` once the function is there, or ``{"unloadable": why}``; then
any number of ``{"call": name, "arguments": {…}}``, each answered by ``{"text": …, "worked": …}``;
and in the end ``{"answer": text or null}`` or ``{"raised": what}``, with what was printed.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import sys
import traceback

TYPE_CHECKING = False  # the module ``typing`` is dear to import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any  # Any: JSON, and whatever a function returns

PRINTED = 100_000


class Task:
    """What a function is asked: ``prompt``, ``messages`` as a model would get them, ``options``."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.prompt: str = told["prompt"]
        self.messages: list[Any] = told["messages"]
        self.options: dict[str, Any] = told["options"]


class Tools:
    """The tools by name: ``tools.read_file(path="a.py")``, or ``tools["read_file"](…)``.

    A call returns the text that a model would read, and raises RuntimeError with it where the call
    did not work. ``schemas`` are the tools as OpenAI's API describes them.
    """

    def __init__(self, schemas: list[Any], ask: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        self.schemas = schemas
        self._names = [schema["function"]["name"] for schema in schemas]
        self._ask = ask

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, name: str) -> Callable[..., str]:
        def call(**arguments: object) -> str:
            told = self._ask({"call": name, "arguments": arguments})
            if not told["worked"]:
                raise RuntimeError(told["text"])
            return str(told["text"])

        return call

    def __getattr__(self, name: str) -> Callable[..., str]:
        if name not in self.__dict__.get("_names", ()):
            raise AttributeError(f"there is no tool {name!r}; there are: {', '.join(self)}")
        return self[name]


def main() -> None:
    """Do the whole conversation on what stdin and stdout were at the start."""
    source = os.fdopen(os.dup(0), "rb")
    wire = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    printed = io.StringIO()
    sys.stdout = sys.stderr = printed

    def say(message: dict[str, Any]) -> None:
        wire.write(json.dumps(message).encode("ascii") + b"\n")
        wire.flush()

    def ask(message: dict[str, Any]) -> dict[str, Any]:
        say(message)
        answer: dict[str, Any] = json.loads(source.readline() or b"null") or os._exit(0)
        return answer

    told = json.loads(source.readline())
    try:
        _load_top(told["module"].partition(".")[0], os.environ.pop(told["place"]))
        function = getattr(importlib.import_module(told["module"]), told["name"])
    except BaseException as error:
        say({"unloadable": _last(error), "printed": printed.getvalue()[-PRINTED:]})
        return
    say({"loaded": True})
    try:
        answer = function(Task(told["task"]), Tools(told["tools"], ask))
        if answer is not None and not isinstance(answer, str):
            raise TypeError(f"it returned a {type(answer).__name__}, and neither text nor None")
        ended: dict[str, Any] = {"answer": answer}
    except BaseException as error:
        printed.write(traceback.format_exc())
        ended = {"raised": _last(error)}
    say({**ended, "printed": printed.getvalue()[-PRINTED:]})


def _load_top(name: str, place: str) -> None:
    """Import the topmost module from its own file or folder: nothing beside it may be read."""
    spec = importlib.util.spec_from_file_location(name, place)
    if not place.endswith(".py"):
        start = f"{place}/__init__.py"
        spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
        if pathlib.Path(start).exists():
            spec = importlib.util.spec_from_file_location(
                name, start, submodule_search_locations=[place]
            )
        elif spec.submodule_search_locations is not None:
            spec.submodule_search_locations.append(place)
    if spec is None:
        raise ImportError(f"{place} is no module")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    if spec.loader is not None:
        spec.loader.exec_module(module)


def _last(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(error)).strip()[-500:]


if __name__ == "__main__":
    main()
