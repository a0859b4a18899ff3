"""Requests and tokens a minute: as declared, and as a server says of itself in its headers."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

MINUTE = 60.0
CHARS_PER_TOKEN = 4
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass
class Taken:
    """One call that was let through, and the tokens that it is taken to need."""

    at: float
    tokens: int


class Limit(Protocol):
    """Something that calls have to stay below. Times are those of one clock, in seconds."""

    @property
    def counts_tokens(self) -> bool:
        """Tell whether tokens matter to it."""
        ...

    def wait(self, now: float, tokens: int) -> float:
        """Return the seconds until a call of so many tokens may go; 0.0: now."""
        ...

    def take(self, now: float, tokens: int) -> Taken:
        """Let a call through."""
        ...

    def settle(self, taken: Taken, tokens: int) -> None:
        """Correct what a call was taken to need by what it used."""
        ...


class DeclaredLimit:
    """At most so many requests and tokens within any ``seconds``.

    A call that is larger than the limit on tokens alone goes when nothing else has gone.
    """

    def __init__(
        self, requests: int | None, tokens: int | None, *, seconds: float = MINUTE
    ) -> None:
        self._requests = requests
        self._tokens = tokens
        self._seconds = seconds
        self._gone: deque[Taken] = deque()
        self._sum = 0

    @property
    def counts_tokens(self) -> bool:
        """Tell whether tokens are limited."""
        return self._tokens is not None

    def wait(self, now: float, tokens: int) -> float:
        """Return the seconds until enough of what has gone is ``seconds`` old."""
        while self._gone and self._gone[0].at <= now - self._seconds:
            self._sum -= self._gone.popleft().tokens
        # Of ages, not of moments: so rounding makes no wait longer than ``seconds``.
        wait = 0.0
        if self._requests is not None and len(self._gone) >= self._requests:
            wait = self._seconds - (now - self._gone[len(self._gone) - self._requests].at)
        if self._tokens is not None:
            over = self._sum + tokens - self._tokens
            for taken in self._gone:
                if over <= 0:
                    break
                over -= taken.tokens
                wait = max(wait, self._seconds - (now - taken.at))
        return wait

    def take(self, now: float, tokens: int) -> Taken:
        """Note a call that goes now."""
        taken = Taken(now, tokens)
        self._gone.append(taken)
        self._sum += tokens
        return taken

    def settle(self, taken: Taken, tokens: int) -> None:
        """Correct a call's tokens, unless it is so old that it counts no more."""
        if self._gone and taken.at >= self._gone[0].at:
            self._sum += tokens - taken.tokens
            taken.tokens = tokens


@dataclass
class _Level:
    """What is left of one thing, as a bucket that is full again at the reset the server named."""

    limit: float
    left: float
    rate: float
    at: float
    taken: float = 0.0

    def wait(self, now: float, need: float) -> float:
        need = min(need, self.limit)
        there = min(self.limit, self.left + self.rate * (now - self.at)) - self.taken
        return max(0.0, (need - there) / self.rate) if self.rate > 0 else 0.0


@dataclass
class LearnedLimit:
    """What a server's headers say is left, less what has been sent since.

    Servers name the moment at which all is there again, which for the bucket that most of them keep
    gives the rate. One that hands out all at once at that moment refuses a call that came too
    early, and says when to come again.
    """

    _levels: dict[str, _Level] = field(default_factory=dict)

    def read(self, headers: Mapping[str, str], *, now: float, wall: float) -> None:
        """Take up the headers of a reply; ``wall`` is seconds since the epoch, for dates."""
        for name, (limit, left, reset) in _said(headers, wall).items():
            known = self._levels.get(name)
            full = limit if limit is not None else max(left, known.limit if known else 0.0)
            rate = (full - left) / reset if reset > 0 and full > left else 0.0
            self._levels[name] = _Level(full, left if rate else full, rate, now)

    @property
    def counts_tokens(self) -> bool:
        """Tell whether the server has spoken of tokens."""
        return "tokens" in self._levels

    def wait(self, now: float, tokens: int) -> float:
        """Return the seconds until there is enough of everything."""
        return max((one.wait(now, _need(n, tokens)) for n, one in self._levels.items()), default=0)

    def take(self, now: float, tokens: int) -> Taken:
        """Take what a call needs off what is left, until the next reply says what it is."""
        for name, level in self._levels.items():
            level.taken += _need(name, tokens)
        return Taken(now, tokens)

    def settle(self, taken: Taken, tokens: int) -> None:
        """Do nothing: the reply itself says what is left."""


def estimated_tokens(characters: int, answer: object) -> int:
    """Return what a call is taken to need before its reply says so: input and the answer's room."""
    room = answer if isinstance(answer, int) and not isinstance(answer, bool) else 0
    return characters // CHARS_PER_TOKEN + room + 1


def _need(name: str, tokens: int) -> float:
    return 1.0 if name == "requests" else float(tokens)


_OPENAI = re.compile(r"x-ratelimit-(limit|remaining|reset)-(requests|tokens)\Z")
_ANTHROPIC = re.compile(r"anthropic-ratelimit-(requests|tokens)-(limit|remaining|reset)\Z")
_PLAIN = re.compile(r"(?:x-)?ratelimit-(limit|remaining|reset)\Z")


def _said(headers: Mapping[str, str], wall: float) -> dict[str, tuple[float | None, float, float]]:
    """Return limit, what is left and seconds to the reset, of requests and tokens, where told."""
    found: dict[str, dict[str, str]] = {}
    for header, value in headers.items():
        if match := _OPENAI.match(header):
            found.setdefault(match[2], {})[match[1]] = value
        elif match := _ANTHROPIC.match(header):
            found.setdefault(match[1], {})[match[2]] = value
        elif match := _PLAIN.match(header):
            found.setdefault("requests", {}).setdefault(match[1], value)
    said: dict[str, tuple[float | None, float, float]] = {}
    for name, values in found.items():
        left, reset = (
            _number(values.get("remaining", "")),
            seconds_until(values.get("reset", ""), wall),
        )
        if left is not None and reset is not None:
            said[name] = (_number(values.get("limit", "")), left, reset)
    return said


def seconds_until(text: str, wall: float) -> float | None:
    """Read a reset: "6m0s", "120ms", seconds, an epoch, or an ISO date; None for anything else."""
    text = text.strip()
    if parts := re.findall(r"([0-9.]+)(ms|s|m|h|d)", text):
        if "".join(number + unit for number, unit in parts) == text:
            return sum(float(number) * UNITS[unit] for number, unit in parts)
        return None
    number = _number(text)
    if number is not None:
        if number > 1e12:
            number /= 1000
        return max(0.0, number - wall) if number > 1e9 else number
    try:
        return max(0.0, datetime.fromisoformat(text).timestamp() - wall)
    except ValueError:
        return None


def _number(text: str) -> float | None:
    # Some say "100, 100;w=60": the first is the limit that is in force.
    try:
        value = float(text.split(",")[0].split(";")[0])
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None
