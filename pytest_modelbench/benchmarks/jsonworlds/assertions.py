"""What can be asserted of a world: types by name, each with the parameters that it knows.

A type or a parameter that is not known is a mistake of the task and never "does not hold": a check
that is skipped in silence, or looser than it was meant, would be a score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_modelbench.benchmarks.jsonworlds.scoring import Assertion, World
from pytest_modelbench.errors import UsageProblem

Holds = Callable[[World, Assertion], bool]

COMMON = frozenset({"type", "name", "scored", "excluded", "description"})
"""What any assertion may say."""


class AssertionProblem(UsageProblem):
    """An assertion is of no known type, or does not fit its type."""


@dataclass(frozen=True)
class AssertionType:
    """One type: what has to be said, what may be said, and when it holds."""

    holds: Holds
    required: frozenset[str]
    optional: frozenset[str]


class AssertionTypes:
    """The types that are known; more can be registered."""

    def __init__(self) -> None:
        self._known: dict[str, AssertionType] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def register(
        self, *names: str, required: Iterable[str] = (), optional: Iterable[str] = ()
    ) -> Callable[[Holds], Holds]:
        """Return a decorator that makes a function of world and assertion a type, by its names."""

        def take(holds: Holds) -> Holds:
            for name in names:
                if name in self._known:
                    raise AssertionProblem(f"the assertion type {name!r} is registered already")
                self._known[name] = AssertionType(holds, frozenset(required), frozenset(optional))
            return holds

        return take

    def oppose(self, name: str, of: str) -> None:
        """Register a type that holds where another does not."""
        other = self._known[of]
        opposite = self.register(name, required=other.required, optional=other.optional)
        opposite(lambda world, assertion: not other.holds(world, assertion))

    def validate(self, assertion: Assertion) -> AssertionType:
        """Return the type of an assertion; AssertionProblem where it does not fit one."""
        name = assertion.get("type")
        if not isinstance(name, str) or name not in self._known:
            raise AssertionProblem(
                f"the assertion type {name!r} is not known; register it, or leave the task out"
            )
        known = self._known[name]
        given = frozenset(assertion) - COMMON
        missing = sorted(known.required - given)
        if missing:
            raise AssertionProblem(f"{name}: {', '.join(missing)} is missing")
        unknown = sorted(given - known.required - known.optional)
        if unknown:
            may = ", ".join(sorted(known.required | known.optional))
            raise AssertionProblem(f"{name}: {', '.join(unknown)} is not known; known: {may}")
        return known

    def check(self, world: World, assertion: Assertion) -> bool:
        """Tell whether an assertion holds in a world."""
        return self.validate(assertion).holds(world, assertion)


# -- reading a world ------------------------------------------------------------------------------


def records(world: World, *path: str) -> list[Mapping[str, object]]:
    """Return the records of a list in a world; none where it is not there."""
    found: object = world
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return objects(found)


def objects(value: object) -> list[Mapping[str, object]]:
    """Return the objects of a list."""
    if not isinstance(value, list):
        return []
    return [one for one in value if isinstance(one, Mapping)]


def texts(value: object) -> list[str]:
    """Return a text or a list of them as a list; None is none."""
    if value is None:
        return []
    return [str(one) for one in value] if isinstance(value, list | tuple) else [str(value)]


def lowered(value: object) -> list[str]:
    """Return texts in lower case."""
    return [one.lower() for one in texts(value)]


def contains_all(text: object, wanted: object) -> bool:
    """Tell whether a text holds each of some texts, capitals aside."""
    whole = "" if text is None else str(text).lower()
    return all(one in whole for one in lowered(wanted))


def first_of(mapping: Mapping[str, object], *keys: str) -> object:
    """Return the first value that is not None."""
    return next((mapping[key] for key in keys if mapping.get(key) is not None), None)


def same_value(found: object, wanted: object) -> bool:
    """Tell whether two values are equal; a number is equal to its text."""
    if found == wanted:
        return True
    numbers = (int, float)
    if isinstance(found, str) and isinstance(wanted, numbers):
        return found.strip() == str(wanted)
    if isinstance(wanted, str) and isinstance(found, numbers):
        return wanted.strip() == str(found)
    return False


def digits(value: object) -> str:
    """Return the digits of a telephone number."""
    return "".join(sign for sign in str(value or "") if sign.isdigit())


def named(sequence: Sequence[Mapping[str, object]], wanted: object, *keys: str) -> set[object]:
    """Return the ids of records that are called so by their id or by one of some keys."""
    name = str(wanted).lstrip("#").lower()
    return {
        one.get("id")
        for one in sequence
        if name in [str(one.get(key, "")).lstrip("#").lower() for key in ("id", *keys)]
    }
