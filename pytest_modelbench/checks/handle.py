"""The handle: a thing that stays in the box, seen from a hidden check."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn, Protocol

from pytest_modelbench.checks.failures import BadAnswer, NoLength, NotPlain, TooMuch

__tracebackhide__ = True  # what failed is the line of the check; pytest reads this

MAX_ITEMS = 100_000
"""What one loop over a handle may give; an iterator that goes on is taken for endless."""

_ONE_BY_ONE = 32
_AT_ONCE = 256

# Python and its libraries look for these on any object; they are not asked of the candidate.
_PLAIN_DUNDERS = frozenset(
    ("__all__", "__doc__", "__name__", "__qualname__", "__module__", "__version__", "__author__")
)


class Asking(Protocol):
    """What a handle asks its worker by."""

    @property
    def ended(self) -> str:
        """Return why its worker ended, empty while it lives."""
        ...

    def request(self, verb: str, *arguments: object) -> object:
        """Ask the worker that holds the thing; see ``BoxedWorker.ask``."""
        ...


class Handle:
    """A thing that is no plain data: attributes, calls, items and iteration happen in the box.

    It has no truth, no comparison, no order, no length, no hash and no text, since any of these
    would be the candidate's word about itself: they raise ``NotPlain``. Ask for plain data instead,
    or ask in the box by name: ``solution.load("operator").eq(a, b)``.
    """

    __slots__ = ("_modelbench",)
    _modelbench: tuple[Asking, int, str]

    def __init__(self, worker: Asking, number: int, type_name: str) -> None:
        object.__setattr__(self, "_modelbench", (worker, number, type_name))

    def modelbench_number(self) -> tuple[Asking, int]:
        """Return the worker that holds the thing, and the thing's number there."""
        return self._modelbench[:2]

    def __getattr__(self, name: str) -> object:
        if name.startswith("__") and name.endswith("__") and name not in _PLAIN_DUNDERS:
            raise AttributeError(name)
        return _ask(self, "get", name)

    def __setattr__(self, name: str, value: object) -> None:
        _ask(self, "set", name, value)

    def __call__(self, *arguments: object, **keywords: object) -> object:
        return _ask(self, "call", arguments, keywords)

    def __getitem__(self, key: object) -> object:
        return _ask(self, "item", key)

    def __setitem__(self, key: object, value: object) -> None:
        _ask(self, "setitem", key, value)

    def __delitem__(self, key: object) -> None:
        _ask(self, "delitem", key)

    def __iter__(self) -> Iterator[object]:
        return _items(self, _ask(self, "iter"))

    def __next__(self) -> object:
        items, ended = _batch(self, 1)
        if ended:
            raise StopIteration
        return items[0]

    def __repr__(self) -> str:
        return f"<handle of {self._modelbench[2]}>"

    def __str__(self) -> str:
        return _refuse(self, "text")

    def __format__(self, spec: str) -> str:
        return _refuse(self, "text")

    def __bool__(self) -> bool:
        return _refuse(self, "truth value")

    def __eq__(self, other: object) -> bool:
        return _refuse(self, "equality")

    def __ne__(self, other: object) -> bool:
        return _refuse(self, "equality")

    def __lt__(self, other: object) -> bool:
        return _refuse(self, "order")

    def __le__(self, other: object) -> bool:
        return _refuse(self, "order")

    def __gt__(self, other: object) -> bool:
        return _refuse(self, "order")

    def __ge__(self, other: object) -> bool:
        return _refuse(self, "order")

    def __hash__(self) -> int:
        return _refuse(self, "hash")

    def __contains__(self, item: object) -> bool:
        return _refuse(self, "containment")

    def __len__(self) -> int:
        raise NoLength(_refusal(self, "length"))


def type_name_of(handle: Handle) -> str:
    """Return the name of the thing's type, as the box says it."""
    return handle._modelbench[2]


def _ask(handle: Handle, verb: str, *arguments: object) -> object:
    return handle._modelbench[0].request(verb, handle, *arguments)


def _items(handle: Handle, iterator: object) -> Iterator[object]:
    given = 0
    while True:
        # One at a time at first, so that a lazy iterator is seen to be lazy.
        items, ended = _batch(iterator, 1 if given < _ONE_BY_ONE else _AT_ONCE)
        for item in items:
            given += 1
            if given > MAX_ITEMS:
                raise TooMuch(f"an iterator gave more than {MAX_ITEMS} items")
            yield item
        if ended:
            return


def _batch(iterator: object, most: int) -> tuple[list[object], bool]:
    answer = _ask(iterator, "next", most) if isinstance(iterator, Handle) else None
    match answer:
        case ([*items], bool(ended)) if 0 < len(items) <= most or (not items and ended):
            return items, ended
    raise BadAnswer("what the box gave is no part of an iteration")


def _refuse(handle: Handle, what: str) -> NoReturn:
    raise NotPlain(_refusal(handle, what))


def _refusal(handle: Handle, what: str) -> str:
    return (
        f"{handle!r} has no {what}: it is no plain data. Compare plain data, or ask in the box: "
        'solution.load("operator").eq(a, b), solution.load("builtins").str(a)'
    )
