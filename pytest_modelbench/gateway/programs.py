"""What holds for the calls of agent programs: ceilings of ours, and an end that is the end.

A program tries again by rules of its own and knows nothing of its attempt's limits, so both are
held here, where no program can be without them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from pydantic import JsonValue

from pytest_modelbench.gateway.calls import BOUNDS, Asked
from pytest_modelbench.gateway.ledger import Account
from pytest_modelbench.gateway.prices import own_server
from pytest_modelbench.gateway.replies import Reply, ReplyOutcome, refusal
from pytest_modelbench.records import Candidate

OUTPUT_TOKENS = 8192
"""Of one reply of a model on a server of one's own, where nothing else bounds it.

Some programs ask for no bound, and a small model then runs on until its context is full.
"""

_LIMITS = ("token-limit", "usd-limit", "time-limit", "step-limit")


class Programs:
    """Ends and ceilings of all grants that agent programs hold."""

    def __init__(self) -> None:
        self._ends: dict[str, Reply] = {}
        self._began: dict[str, float] = {}
        self._open: Counter[str] = Counter()

    def refusal(self, account: Account) -> Reply | None:
        """Return the reply that needs no call: the attempt is over, or its turns are used up."""
        over = self._ends.get(account.token)
        if over is not None:
            return over
        turns = account.grant.limits.turns
        if turns is not None and account.steps >= turns:
            text = f"{account.steps} calls made, and the limit is {turns}"
            return refusal(ReplyOutcome.RESULT_FAIL, "step-limit", text)
        return None

    def begin(self, token: str) -> None:
        """Let the time of an attempt's program count from now on."""
        self._began.setdefault(token, time.monotonic())

    @contextmanager
    def call(self, account: Account) -> Iterator[float | None]:
        """Count a call as under way; yield the seconds of work that its attempt has left.

        The time counts from the opening of its door, else its first call, less what was held.
        """
        now, token = time.monotonic(), account.token
        worked = now - self._began.setdefault(token, now) - account.held
        limit = account.grant.limits.seconds
        self._open[token] += 1
        try:
            yield None if limit is None else max(limit - worked, 0.0)
        finally:
            self._open[token] -= 1

    def in_flight(self, account: Account) -> int:
        """Return how many calls are under way."""
        return self._open[account.token]

    def note(self, account: Account, reply: Reply) -> None:
        """Remember a reply that ends the attempt, so that each later call is answered with it."""
        if reply.reason != "cancelled" and ends(reply):
            self._ends.setdefault(account.token, reply)

    def forget(self, account: Account) -> Reply | None:
        """Let go of what is known of a grant that is closed; return the reply that ended it."""
        self._began.pop(account.token, None)
        self._open.pop(account.token, None)
        return self._ends.pop(account.token, None)


def ends(reply: Reply) -> bool:
    """Tell whether a reply ends its attempt: a fault after all tries, or a limit."""
    return reply.faulty or reply.reason in _LIMITS


def bounded(asked: Asked, candidate: Candidate) -> Asked:
    """Return what a program asks for, with the length of the reply held to a ceiling.

    The candidate's own ``max_tokens`` goes before the program's. Else no reply may be longer than
    half of the window that is known; on a server of one's own of which none is known, 8192 tokens.
    """
    if any(name in candidate.params for name in BOUNDS):
        params = {name: value for name, value in asked.params.items() if name not in BOUNDS}
        return replace(asked, params=params)
    window = window_of(candidate)
    own = own_server(candidate.api_base)
    ceiling = window // 2 if window is not None else OUTPUT_TOKENS if own else None
    if ceiling is None:
        return asked
    name = next((name for name in BOUNDS if name in asked.params), "max_tokens")
    wanted = asked.params.get(name)
    most: JsonValue = min(wanted, ceiling) if isinstance(wanted, int) and wanted > 0 else ceiling
    return replace(asked, params={**asked.params, name: most})


def window_of(candidate: Candidate) -> int | None:
    """Return the context window in tokens as it is tuned or declared, None where it is not."""
    tuned = candidate.tuning.get("context_tokens")
    named = ("context_tokens", "max_input_tokens", "context_window", "n_ctx")
    for value in (tuned, *(candidate.facts.get(name) for name in named)):
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None
