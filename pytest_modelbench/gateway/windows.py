"""Usage windows: what may be used within hours, declared or read from what a provider says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from pytest_modelbench.gateway.limits import seconds_until
from pytest_modelbench.records import Record, UsageWindow

MARGIN_SECONDS = 60.0
"""Waited past a reset that a provider names: clocks differ, and some name whole minutes."""


LONGEST_SECONDS = 32 * 86400.0
"""A window whose reset is further away is no window: a made-up one must not hold cells for ever."""


class Reading(Record):
    """What a provider says of one window: the share used, by whomever, and when it is reset.

    ``reset`` is in seconds since the epoch, ``share`` from 0 to 1 (and past it).
    """

    name: str
    share: float
    reset: float
    minutes: float | None = None


class Used(Record):
    """What one attempt used at a moment (seconds since the epoch), this run's or an older one's."""

    candidate: str
    server: str = ""
    at: float
    requests: int = 0
    tokens: int = 0
    usd: float = 0.0


@dataclass(frozen=True)
class Hold:
    """Why no new cell is admitted, and until when (seconds since the epoch)."""

    why: str
    until: float


def readings_of_headers(headers: Mapping[str, str], wall: float) -> tuple[Reading, ...]:
    """Read the windows that a provider's headers tell (``x-codex-primary-used-percent``, …)."""
    found = []
    for name in ("primary", "secondary"):
        prefix = f"x-codex-{name}-"
        try:
            share = float(headers[f"{prefix}used-percent"]) / 100
            reset = seconds_until(headers[f"{prefix}reset-at"], wall)
            minutes = float(headers.get(f"{prefix}window-minutes", "nan"))
        except (KeyError, ValueError):
            continue
        if reset is not None:
            known = minutes if minutes == minutes else None
            found.append(Reading(name=name, share=share, reset=wall + reset, minutes=known))
    return tuple(found)


def reading_of_event(event: Mapping[str, JsonValue]) -> Reading | None:
    """Read a ``rate_limit_event`` of an agent program's stream; None where it tells no share."""
    info = event.get("rate_limit_info")
    if event.get("type") != "rate_limit_event" or not isinstance(info, dict):
        return None
    reset, share = info.get("resetsAt"), info.get("utilization")
    if not isinstance(reset, (int, float)) or isinstance(reset, bool):
        return None
    if info.get("status") == "rejected":
        share = 1.0
    if not isinstance(share, (int, float)) or isinstance(share, bool):
        return None
    return Reading(name=str(info.get("rateLimitType") or "window"), share=share, reset=reset)


def readings_of_output(documents: Iterable[JsonValue]) -> tuple[Reading, ...]:
    """Return what the events of a program's output tell, the newest word on each window."""
    found: dict[str, Reading] = {}
    for document in documents:
        reading = reading_of_event(document) if isinstance(document, dict) else None
        if reading is not None:
            found[reading.name] = reading
    return tuple(found.values())


@dataclass
class _Declared:
    """A window that begins with its first use and ends its hours later, when all is there again."""

    window: UsageWindow
    began: float | None = None
    used: dict[str, float] = field(default_factory=dict)
    own: dict[str, float] = field(default_factory=dict)

    def add(self, used: Used, *, own: bool) -> None:
        if self.began is None or used.at >= self.reset:
            self.began, self.used, self.own = used.at, {}, {}
        for name in ("requests", "tokens", "usd"):
            amount = float(getattr(used, name))
            self.used[name] = self.used.get(name, 0.0) + amount
            if own:
                self.own[name] = self.own.get(name, 0.0) + amount

    @property
    def reset(self) -> float:
        return (self.began or 0.0) + self.window.hours * 3600

    def share(self, used: Mapping[str, float]) -> float:
        limits = {n: getattr(self.window, n) for n in ("requests", "tokens", "usd")}
        return max(used.get(name, 0.0) / float(limit) for name, limit in limits.items() if limit)


@dataclass
class _Read:
    """A window as a provider tells it; its first reading is where this run's own share begins."""

    newest: Reading
    first: float

    @property
    def label(self) -> str:
        minutes = self.newest.minutes
        hours = "" if minutes is None else f" of {_span(minutes / 60)}"
        return f"the provider's window {self.newest.name}{hours}"


class UsageWindows:
    """All windows of one candidate, server or provider.

    ``threshold`` is the share at which no new cell is admitted, whoever used it; ``allowance`` the
    share of any window that this run may use itself, None for no such bound.
    """

    def __init__(
        self, declared: Iterable[UsageWindow], *, threshold: float, allowance: float | None
    ) -> None:
        self._declared = [_Declared(window) for window in declared]
        self._read: dict[str, _Read] = {}
        self._threshold = threshold
        self._allowance = allowance

    def add(self, used: Used, *, own: bool) -> None:
        """Count what was used, in the order of time; ``own``: by this run."""
        for one in self._declared:
            one.add(used, own=own)

    def read(self, readings: Iterable[Reading], now: float) -> None:
        """Take up what a provider says; the newest word on a window counts."""
        for reading in readings:
            if reading.reset > now + LONGEST_SECONDS:
                continue
            known = self._read.get(reading.name)
            # A reset that has moved by more than clocks differ is another window's.
            same = known is not None and abs(known.newest.reset - reading.reset) < MARGIN_SECONDS
            first = known.first if known is not None and same else reading.share
            self._read[reading.name] = _Read(reading, first)

    def hold(self, now: float) -> Hold | None:
        """Return what keeps new cells out, the latest where there are several; None for nothing."""
        holds = []
        for one in self._declared:
            if one.began is not None and now < one.reset:
                label = f"its window of {_span(one.window.hours)}"
                why = self._why(label, one.share(one.used), one.share(one.own))
                holds += [Hold(why, one.reset)] if why else []
        for told in self._read.values():
            until = told.newest.reset + MARGIN_SECONDS
            if now < until:
                why = self._why(told.label, told.newest.share, told.newest.share - told.first)
                holds += [Hold(why, until)] if why else []
        return max(holds, key=lambda hold: hold.until, default=None)

    def _why(self, label: str, share: float, own: float) -> str:
        if share >= self._threshold - 1e-9:
            return f"{share:.0%} of {label} is used"
        if self._allowance is not None and own >= self._allowance - 1e-9:
            return f"this run has used {own:.0%} of {label}, its allowance"
        return ""


def _span(hours: float) -> str:
    if hours >= 1:
        return f"{hours:.3g} h"
    return f"{hours * 60:.3g} min" if hours * 60 >= 1 else f"{hours * 3600:.3g} s"
