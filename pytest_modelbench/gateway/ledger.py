"""The accounts of all grants: every request debited once, whatever dies in between.

A debit is written to a journal before its reply is handed out. A gateway that is started again
reads the journal and knows each grant and what it has used.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from pytest_modelbench.gateway.prices import Price
from pytest_modelbench.gateway.replies import Reply
from pytest_modelbench.gateway.usage import CallUsage
from pytest_modelbench.gateway.wire import Ended, GrantRequest, Stop
from pytest_modelbench.records import Record, Usage


class Debit(Record):
    """One request and what it used. ``step`` counts the calls of a grant, ``tries`` those of one.

    ``last`` marks the request that ended its call. ``waited`` is the wait after it.
    """

    step: int
    tries: int
    requests: int
    usage: CallUsage
    usd: float | None = None
    last: bool = True
    faulty: bool = False
    waited: float = 0.0
    held: float = 0.0
    served_model: str = ""
    reason: str = ""


@dataclass
class Account:
    """What one grant has used so far."""

    token: str
    grant: GrantRequest
    price: Price | None
    steps: int = 0
    requests: int = 0
    calls: int = 0
    unmetered: int = 0
    priced: bool = True
    usd: float = 0.0
    billed: float | None = None
    billed_all: bool = True
    tokens: dict[str, int] = field(default_factory=dict)
    retries: int = 0
    waits: int = 0
    wait_seconds: float = 0.0
    held: float = 0.0
    served: list[str] = field(default_factory=list)
    reasons: dict[str, int] = field(default_factory=dict)
    ended: str = ""
    whole_steps: int = 0
    _ended_steps: set[int] = field(default_factory=set)
    _debited: set[tuple[int, int]] = field(default_factory=set)

    def add(self, debit: Debit) -> None:
        """Add a debit once; the same one again changes nothing."""
        if not self._is_new(debit):
            return
        self.steps = max(self.steps, debit.step)
        self.requests += debit.requests
        self.held += debit.held
        self.retries += 0 if debit.last else 1
        if debit.waited > 0:
            self.waits += 1
            self.wait_seconds += debit.waited
        usage = debit.usage
        for name in ("input", "cached", "cache_written", "output", "reasoning"):
            value = getattr(usage, name)
            if value is not None:
                self.tokens[name] = self.tokens.get(name, 0) + value
        replied = debit.last and not debit.faulty and debit.requests > 0
        self.calls += 1 if debit.last and debit.requests else 0
        if debit.usd is not None:
            self.usd += debit.usd
        if usage.billed_usd is not None:
            self.billed = (self.billed or 0.0) + usage.billed_usd
        if replied:
            self.unmetered += 0 if usage.metered else 1
            self.priced = self.priced and debit.usd is not None
            self.billed_all = self.billed_all and usage.billed_usd is not None
            if debit.served_model and debit.served_model not in self.served:
                self.served.append(debit.served_model)
        if debit.last:
            self.ended = debit.reason
            if debit.reason:
                self.reasons[debit.reason] = self.reasons.get(debit.reason, 0) + 1

    def _is_new(self, debit: Debit) -> bool:
        """Note a debit; what is remembered of ended steps is their number alone."""
        key = (debit.step, debit.tries)
        if debit.step <= self.whole_steps or debit.step in self._ended_steps:
            return False
        if key in self._debited:
            return False
        self._debited.add(key)
        if debit.last:
            self._debited = {k for k in self._debited if k[0] != debit.step}
            self._ended_steps.add(debit.step)
            while self.whole_steps + 1 in self._ended_steps:
                self.whole_steps += 1
                self._ended_steps.remove(self.whole_steps)
        return True

    @property
    def used_tokens(self) -> int:
        """Return input and output together, of the calls whose usage is known."""
        return self.tokens.get("input", 0) + self.tokens.get("output", 0)

    def over(self) -> str:
        """Return the reason why no further call is allowed, "" while one is.

        Calls whose usage or price is unknown cannot be held to a limit on it, and are not.
        """
        limits = self.grant.limits
        if limits.tokens is not None and self.used_tokens >= limits.tokens:
            return "token-limit"
        if limits.usd is not None and self.usd >= limits.usd:
            return "usd-limit"
        return ""

    def usage(self) -> Usage:
        """Return the sums. A cost that is not known for one of the calls is not known."""
        return Usage(
            requests=self.requests,
            calls=self.calls,
            unmetered=self.unmetered,
            input=self.tokens.get("input"),
            cached=self.tokens.get("cached"),
            cache_written=self.tokens.get("cache_written"),
            output=self.tokens.get("output"),
            reasoning=self.tokens.get("reasoning"),
            list_usd=round(self.usd, 12) if self.calls and self.priced else None,
            billed_usd=self.billed if self.calls and self.billed_all else None,
            retries=self.retries,
            waits=self.waits,
            wait_seconds=round(self.wait_seconds, 6),
            price=self.price.source if self.price is not None else "",
        )

    def report(self) -> Ended:
        """Return the state of the grant."""
        return Ended(
            usage=self.usage(),
            held_seconds=round(self.held, 6),
            served_model=", ".join(self.served),
            ended=self.ended,
            reasons=self.reasons,
        )


class Ledger:
    """All open accounts, and the journal that brings them back."""

    def __init__(self, journal: Path, secret: str, prices: dict[str, Price | None]) -> None:
        self._secret = secret.encode()
        self._prices = prices
        self._accounts: dict[str, Account] = {}
        self.stops: dict[str, Stop] = {}
        whole = self._read(journal)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._file = os.open(journal, flags, 0o600)
        if not whole:
            os.write(self._file, b"\n")

    def open(self, grant: GrantRequest) -> Account:
        """Open the account of a new grant and return it; its token is a secret of its holder."""
        nonce = os.urandom(16)
        digest = hmac.new(self._secret, nonce + grant.model_dump_json().encode(), hashlib.sha256)
        token = f"mb-{digest.hexdigest()[:40]}"
        self._write({"open": token, "grant": grant.model_dump(mode="json")})
        account = self._accounts[token] = Account(token, grant, self._prices.get(grant.candidate))
        return account

    def account(self, token: str) -> Account | None:
        """Return the open account of a token, None when there is none."""
        return self._accounts.get(token)

    def debit(self, account: Account, debit: Debit) -> None:
        """Write a debit down, then add it."""
        self._write({"debit": account.token, "what": debit.model_dump(mode="json")})
        account.add(debit)

    def close(self, account: Account) -> Ended:
        """Close an account and return what it used; its token is good for nothing afterwards."""
        self._write({"close": account.token})
        self._accounts.pop(account.token, None)
        return account.report()

    def note_stop(self, candidate: str, stop: Stop) -> None:
        """Keep a stop, so that it outlives this process."""
        self._write({"stop": candidate, "why": stop.model_dump(mode="json")})

    def cost(self, account: Account, reply: Reply) -> float | None:
        """Return the list cost of one reply, None where it is unknown."""
        return None if account.price is None else account.price.cost(reply.usage)

    def shut(self) -> None:
        """Close the journal."""
        os.close(self._file)

    def _write(self, entry: dict[str, JsonValue]) -> None:
        os.write(self._file, json.dumps(entry, separators=(",", ":")).encode() + b"\n")

    def _read(self, journal: Path) -> bool:
        """Take up what a gateway before this one wrote; return whether its last line is whole."""
        if not journal.exists():
            return True
        raw = journal.read_bytes()
        for entry in _entries(raw):
            token = entry.get("open") or entry.get("debit") or entry.get("close")
            if not isinstance(token, str):
                candidate = entry.get("stop")
                if isinstance(candidate, str):
                    self.stops.setdefault(candidate, Stop.model_validate(entry["why"]))
            elif "open" in entry:
                grant = GrantRequest.model_validate(entry["grant"])
                price = self._prices.get(grant.candidate)
                self._accounts[token] = Account(token, grant, price)
            elif "close" in entry:
                self._accounts.pop(token, None)
            elif token in self._accounts:
                self._accounts[token].add(Debit.model_validate(entry["what"]))
        return raw.endswith(b"\n") or not raw


def _entries(raw: bytes) -> Iterator[dict[str, JsonValue]]:
    for line in raw.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            # The last line of a gateway that was killed while it wrote: its call became a fault.
            continue
        if isinstance(entry, dict):
            yield entry
