"""The accounts of all grants: every request debited once, whatever dies in between.

A request is noted in a journal before it is sent, and its debit before its reply is handed out. A
gateway that is started again reads the journal and knows each grant and what it has used; a
request that was sent and has no debit gets one, of unknown usage.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from pytest_modelbench.gateway.prices import Price
from pytest_modelbench.gateway.replies import Reply
from pytest_modelbench.gateway.usage import UNKNOWN, CallUsage
from pytest_modelbench.gateway.wire import Ended, GrantRequest, Stop
from pytest_modelbench.records import Limits, Record, Usage


class Debit(Record):
    """One request and what it used. ``step`` counts the calls of a grant, ``tries`` those of one.

    ``last`` marks the request that ended its call. ``waited`` is the wait after it. ``lost``: it
    was sent and nobody knows what became of it. ``at`` is in seconds since the epoch.
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
    lost: bool = False
    at: float = 0.0

    @property
    def tokens(self) -> int:
        """Return input and output together, as far as they are known."""
        return (self.usage.input or 0) + (self.usage.output or 0)

    @property
    def spent_usd(self) -> float | None:
        """Return what counts for a budget: the amount billed, else the list price, if known."""
        return self.usd if self.usage.billed_usd is None else self.usage.billed_usd


@dataclass
class Spent:
    """What budgets are held to: everything that was debited, for whatever role and to what end.

    ``unpriced`` counts the requests with a reply whose cost is unknown.
    """

    requests: int = 0
    tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0

    def add(self, debit: Debit) -> None:
        """Add a debit."""
        self.requests += debit.requests
        self.tokens += debit.tokens
        self.usd += debit.spent_usd or 0.0
        if debit.requests and debit.spent_usd is None and (debit.lost or not debit.faulty):
            self.unpriced += 1


@dataclass
class Pool:
    """The grant of an attempt, of which the roles' grants are parts.

    A part with an amount of its own has it set aside; what it does not use is returned when it is
    closed. The others share what is left.
    """

    limits: Limits
    used_tokens: int = 0
    used_usd: float = 0.0
    open: dict[str, Account] = field(default_factory=dict)

    def add(self, account: Account) -> None:
        """Take a part in."""
        self.open[account.token] = account

    def give_back(self, account: Account) -> None:
        """Close a part; what it used is gone, the rest is there for others."""
        if self.open.pop(account.token, None) is not None:
            self.used_tokens += account.used_tokens
            self.used_usd += account.usd

    def over(self, account: Account) -> str:
        """Return the reason why a part may use no more, "" while it may."""
        others = [one for one in self.open.values() if one is not account]
        if self.limits.tokens is not None:
            aside = sum(max(o.grant.limits.tokens or 0, o.used_tokens) for o in others)
            if self.used_tokens + aside + account.used_tokens >= self.limits.tokens:
                return "token-limit"
        if self.limits.usd is not None:
            kept = sum(max(o.grant.limits.usd or 0.0, o.usd) for o in others)
            if self.used_usd + kept + account.usd >= self.limits.usd:
                return "usd-limit"
        return ""


@dataclass
class Account:
    """What one grant has used so far."""

    token: str
    grant: GrantRequest
    price: Price | None
    pool: Pool | None = None
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
    faulty: bool = False
    whole_steps: int = 0
    _ended_steps: set[int] = field(default_factory=set)
    _debited: set[tuple[int, int]] = field(default_factory=set)

    def add(self, debit: Debit) -> bool:
        """Add a debit once; the same one again changes nothing. Return whether it was new."""
        if not self._is_new(debit):
            return False
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
        if debit.lost:
            self.unmetered += 1
            self.priced = self.billed_all = False
        if debit.last:
            self.faulty = debit.faulty
            self.ended = debit.reason
            if debit.reason:
                self.reasons[debit.reason] = self.reasons.get(debit.reason, 0) + 1
        return True

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
        return "" if self.pool is None else self.pool.over(self)

    def usage(self, usd_per_token: float | None = None) -> Usage:
        """Return the sums. A cost that is not known for one of the calls is not known.

        ``usd_per_token`` is what an output token costs on a server of one's own, as measured.
        """
        output = self.tokens.get("output")
        derivable = usd_per_token is not None and output is not None and not self.unmetered
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
            derived_usd=round((usd_per_token or 0.0) * (output or 0), 12) if derivable else None,
        )

    def report(self, usd_per_token: float | None = None) -> Ended:
        """Return the state of the grant."""
        return Ended(
            usage=self.usage(usd_per_token),
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
        self._pools: dict[str, Pool] = {}
        self._sent: set[tuple[str, int, int]] = set()
        self.stops: dict[str, Stop] = {}
        self.spent: dict[str, Spent] = {}
        self.on_debit: Callable[[str, Debit], None] = lambda candidate, debit: None
        self._journal = journal
        whole = self._read(journal)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._file = os.open(journal, flags, 0o600)
        if not whole:
            os.write(self._file, b"\n")
        self._settle_lost()

    def open(self, grant: GrantRequest) -> Account:
        """Open the account of a new grant and return it; its token is a secret of its holder."""
        nonce = os.urandom(16)
        digest = hmac.new(self._secret, nonce + grant.model_dump_json().encode(), hashlib.sha256)
        token = f"mb-{digest.hexdigest()[:40]}"
        self._write({"open": token, "grant": grant.model_dump(mode="json")})
        return self._opened(token, grant)

    def account(self, token: str) -> Account | None:
        """Return the open account of a token, None when there is none."""
        return self._accounts.get(token)

    def sending(self, account: Account, step: int, tries: int) -> None:
        """Note a request before it is sent: were we to die, it is known that it was."""
        self._write({"sent": account.token, "step": step, "tries": tries})

    def debit(self, account: Account, debit: Debit) -> None:
        """Write a debit down, then add it."""
        debit = debit.model_copy(update={"at": round(time.time(), 3)})
        self._write(
            {"debit": account.token, "what": debit.model_dump(mode="json", exclude_defaults=True)}
        )
        self._add(account, debit)

    def close(self, account: Account, usd_per_token: float | None = None) -> Ended:
        """Close an account and return what it used; its token is good for nothing afterwards."""
        self._write({"close": account.token})
        self._closed(account.token)
        return account.report(usd_per_token)

    @property
    def spent_in_all(self) -> Spent:
        """Return what all candidates have spent together."""
        every = self.spent.values()
        return Spent(
            sum(one.requests for one in every),
            sum(one.tokens for one in every),
            sum(one.usd for one in every),
            sum(one.unpriced for one in every),
        )

    def debits(self) -> Iterator[tuple[str, Debit]]:
        """Yield every debit of this run from the journal, with its candidate, oldest first."""
        candidates: dict[str, str] = {}
        for entry in _entries(self._journal.read_bytes()):
            token = entry.get("debit")
            if isinstance(entry.get("open"), str):
                grant = GrantRequest.model_validate(entry["grant"])
                candidates[str(entry["open"])] = grant.candidate
            elif isinstance(token, str) and token in candidates:
                yield candidates[token], Debit.model_validate(entry["what"])

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
            kind = next((k for k in ("open", "sent", "debit", "close", "stop") if k in entry), "")
            token = str(entry.get(kind, ""))
            account = self._accounts.get(token)
            if kind == "stop":
                self.stops.setdefault(token, Stop.model_validate(entry["why"]))
            elif kind == "open":
                self._opened(token, GrantRequest.model_validate(entry["grant"]))
            elif kind == "close":
                self._closed(token)
            elif account is not None and kind == "sent":
                self._sent.add((token, _number(entry["step"]), _number(entry["tries"])))
            elif account is not None and kind == "debit":
                self._add(account, Debit.model_validate(entry["what"]))
        return raw.endswith(b"\n") or not raw

    def _opened(self, token: str, grant: GrantRequest) -> Account:
        pool = self._pools.get(grant.attempt)
        if pool is None and grant.pool is not None:
            pool = self._pools[grant.attempt] = Pool(grant.pool)
        account = Account(token, grant, self._prices.get(grant.candidate), pool)
        self._accounts[token] = account
        if pool is not None:
            pool.add(account)
        return account

    def _add(self, account: Account, debit: Debit) -> None:
        self._sent.discard((account.token, debit.step, debit.tries))
        if account.add(debit):
            candidate = account.grant.candidate
            self.spent.setdefault(candidate, Spent()).add(debit)
            self.on_debit(candidate, debit)

    def _closed(self, token: str) -> None:
        account = self._accounts.pop(token, None)
        if account is not None and account.pool is not None:
            account.pool.give_back(account)

    def _settle_lost(self) -> None:
        """Debit what was sent by a gateway that died before the reply: of unknown usage, once."""
        for token, step, tries in list(self._sent):
            account = self._accounts.get(token)
            if account is not None:
                lost = Debit(
                    step=step,
                    tries=tries,
                    requests=1,
                    usage=UNKNOWN,
                    faulty=True,
                    lost=True,
                    reason="gateway",
                )
                self.debit(account, lost)
        self._sent.clear()


def _number(value: JsonValue) -> int:
    return value if isinstance(value, int) else 0


def _entries(raw: bytes) -> Iterator[dict[str, JsonValue]]:
    for line in raw.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            # The last line of a gateway that was killed while it wrote: its call became a fault.
            continue
        if isinstance(entry, dict):
            yield entry
