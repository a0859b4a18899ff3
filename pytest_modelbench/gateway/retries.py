"""How often a call is tried again, and how long it waits before."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from pytest_modelbench.gateway.replies import Reply

FIRST_WAIT = 0.5
LONGEST_STEP = 30.0
LOADING = frozenset({"loading"})
"""Reasons that have no count of tries: a server that starts needs minutes, not more requests."""


@dataclass
class Retries:
    """The tries and waits of one call: bounded, growing, with jitter, never sooner than asked.

    ``retries`` bounds the tries after the first one, ``max_wait`` the sum of the waits in seconds.
    """

    retries: int
    max_wait: float
    random: random.Random = field(default_factory=random.Random)
    used: int = 0
    polls: int = 0
    waited: float = 0.0
    why_not: str = ""

    def next_wait(self, reply: Reply) -> float | None:
        """Return the seconds to wait before the next try; None when there is none.

        ``why_not`` then says in words what bound was reached.
        """
        if not reply.retry:
            self.why_not = "asking again would not help"
            return None
        loading = reply.reason in LOADING
        if not loading and self.used >= self.retries:
            self.why_not = f"after {self.used + 1} tries" if self.used else "after 1 try"
            return None
        step = self.polls if loading else self.used
        wait = min(LONGEST_STEP, FIRST_WAIT * 2.0**step)
        if loading:
            wait = min(wait, 5.0)
        wait *= self.random.uniform(1.0, 1.25)
        asked = reply.wait_at_least_s
        if asked is not None:
            # A little more than asked, by chance: others were told the same moment.
            wait = max(asked + self.random.uniform(0.0, min(0.25, 0.05 + asked / 10)), 0.0)
        if self.waited + wait > self.max_wait:
            said = f"the server asks for {asked:g} s" if asked is not None else f"{wait:.1f} s more"
            self.why_not = (
                f"after {self.used + self.polls + 1} tries and {self.waited:.1f} s of waiting; "
                f"{said}, and max_wait is {self.max_wait:g} s"
            )
            return None
        if loading:
            self.polls += 1
        else:
            self.used += 1
        self.waited += wait
        return wait
