"""What ends a hidden check: the candidate's doing (not passed), or ours (a fault).

Most of these are no ``Exception``, so that ``pytest.raises(Exception)`` in a check is satisfied by
what the candidate's code raises, and not by its worker's death, its silence or its odd values. They
are pytest's own kind of outcome, since pytest keeps its books in order for that and for
``Exception``, but not for any other exception that leaves a fixture.
"""

from __future__ import annotations

import builtins
import contextlib
import re

# Public only through its subclasses, ``pytest.fail.Exception`` for one.
from _pytest.outcomes import OutcomeException


class CandidateError(OutcomeException):
    """The candidate's doing: the check is not passed. ``reason`` is a short stable word."""

    reason = "candidate"


class NotPlain(CandidateError):
    """A handle was asked for what only plain data has: truth, comparison, length, hash, text."""

    reason = "not plain"


class NoLength(NotPlain, TypeError):
    """``len(handle)``. Python's ``list(handle)`` asks for it too, and goes on at a TypeError."""


class Stale(CandidateError):
    """A handle is used whose worker has ended."""

    reason = "stale"


class WorkerEnded(CandidateError):
    """The candidate's code ended its process."""

    reason = "worker ended"


class TimedOut(CandidateError):
    """The candidate's code did not answer in time."""

    reason = "timed out"


class BadAnswer(CandidateError):
    """What came from the box is not the one answer to the one request."""

    reason = "bad answer"


class TooMuch(CandidateError):
    """A value is too large, too deep or cyclic; or an iterator does not end."""

    reason = "too much"


class GraderBroken(OutcomeException):
    """Our own machinery failed, or the check asks what cannot be: a fault, never a score."""


class Raised(CandidateError):
    """An exception of the candidate's: an instance of its nearest builtin type, and its name.

    ``type_name``, ``places`` (``file:line``, outermost first) and ``exception``, a handle.
    """

    type_name: str
    places: tuple[str, ...]
    exception: object
    _text: str

    def __init__(self) -> None:
        """Set pytest's part; ``raised`` sets the rest, whatever the builtin type's signature."""
        self.msg = None
        self.pytrace = True

    def __str__(self) -> str:
        return self._text

    @property
    def reason(self) -> str:  # type: ignore[override]  # here it is the name of the exception
        """Return the name of the candidate's exception when it is an ordinary one."""
        return self.type_name if _NAME.fullmatch(self.type_name) else type(self).__name__

    def __getattr__(self, name: str) -> object:
        if name.startswith("_") or "exception" not in self.__dict__:
            raise AttributeError(name)
        result: object = getattr(self.exception, name)
        return result


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,59}")

# These steer Python or pytest itself: a candidate's StopIteration would end a check's own loop.
_STEERING = (
    KeyboardInterrupt,
    GeneratorExit,
    StopIteration,
    StopAsyncIteration,
    BaseExceptionGroup,
)
_KINDS: dict[str, type[Raised]] = {}


def raised(
    base: str,
    type_name: str,
    text: str,
    arguments: tuple[object, ...] | None,
    places: tuple[str, ...],
    exception: object,
) -> Raised:
    """Make the exception that stands for one of the candidate's."""
    kind = _KINDS.get(base)
    if kind is None:
        kind = _KINDS[base] = _kind(base)
    error = kind()
    if arguments is not None:
        error.args = arguments
        with contextlib.suppress(TypeError, ValueError):
            # The builtin type's own: it sets errno, code, start and their like.
            super(OutcomeException, error).__init__(*arguments)
    error.type_name = type_name
    error.places = places
    error._text = text
    error.exception = exception
    return error


def _kind(base: str) -> type[Raised]:
    found = getattr(builtins, base, None)
    if (
        not isinstance(found, type)
        or not issubclass(found, Exception | SystemExit)
        or issubclass(found, _STEERING)
    ):
        found = Exception
    return type(found.__name__, (Raised, found), {"__module__": __name__})
