"""What an attempt has used of its time, and the end of it."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

from pytest_modelbench.errors import Fault
from pytest_modelbench.records import Limits

HELD_SHARE = 0.1
"""Of the wall time: from this share on, running out of it is the gateway's doing and a fault."""


class End(Exception):
    """The work is over: a way out of the depths of a turn."""

    def __init__(self, reason: str = "", detail: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail


@dataclass
class Clock:
    """What an attempt has used of its time. Working time is wall time less what was held."""

    limits: Limits
    held: float = 0.0
    began: float = field(default_factory=time.monotonic)

    @property
    def wall(self) -> float:
        return time.monotonic() - self.began

    @property
    def working(self) -> float:
        return self.wall - self.held

    @property
    def working_left(self) -> float | None:
        limit = self.limits.seconds
        return None if limit is None else max(limit - self.working, 0.0)

    @property
    def wall_left(self) -> float | None:
        limit = self.limits.wall_seconds
        return None if limit is None else max(limit - self.wall, 0.0)

    @property
    def left(self) -> float:
        """Return the seconds until the first of the limits, infinity without one."""
        both = (self.working_left, self.wall_left)
        return min((one for one in both if one is not None), default=math.inf)

    def check(self) -> None:
        """Raise End when time is up; Fault where the gateway used it up and not the candidate."""
        if self.left > 0:
            return
        spent = f"{self.working:.1f} s of work, {self.wall:.1f} s in all"
        if self.working_left != 0 and self.held >= HELD_SHARE * self.wall:
            raise Fault("wall-limit", f"{spent}; the rest was spent waiting for the model's server")
        raise End("time-limit", spent)
