"""The way of one call: admitted, sent, understood, tried again, debited, written down."""

from __future__ import annotations

import asyncio
import json
import secrets
import string
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

from pydantic import JsonValue

from pytest_modelbench.gateway import texttools
from pytest_modelbench.gateway.admission import Admission, Stopped, TooLong
from pytest_modelbench.gateway.history import repair, tool_names
from pytest_modelbench.gateway.ledger import Account, Debit, Ledger
from pytest_modelbench.gateway.limits import estimated_tokens
from pytest_modelbench.gateway.models import same_model
from pytest_modelbench.gateway.replies import Exchange, Reply, ReplyOutcome, classify, refusal
from pytest_modelbench.gateway.retries import Retries
from pytest_modelbench.gateway.transcript import Transcripts
from pytest_modelbench.gateway.upstream import Asking, Call, Upstream, Upstreams, target_of
from pytest_modelbench.gateway.usage import UNKNOWN
from pytest_modelbench.gateway.wire import GatewayConfig, Redactor, Stop
from pytest_modelbench.records import Candidate, Role

_OF_TOOLS = ("tool_choice", "parallel_tool_calls")
"""Parameters that mean nothing to a server that is sent no tools."""


@dataclass(frozen=True)
class Asked:
    """What a program asks for. ``working_left`` and ``wall_left``: seconds that its attempt has.

    ``params`` are those of the request; the candidate's own go before them. ``wire`` names the API
    that the request came by, ``by_program`` tells that it is not our own worker's. ``native`` is
    the request as it was made, where the candidate's server speaks the same API.
    """

    messages: list[JsonValue]
    tools: list[JsonValue]
    params: dict[str, JsonValue]
    stream: bool = False
    working_left: float | None = None
    wall_left: float | None = None
    wire: str = "chat"
    by_program: bool = False
    native: Asking | None = None


class Answered(NamedTuple):
    """The end of a call: its reply, and the exchange that brought it or the trouble."""

    reply: Reply
    exchange: Exchange


class Calls:
    """Makes calls for all grants. Lives in the gateway's event loop."""

    def __init__(
        self,
        config: GatewayConfig,
        upstreams: Upstreams,
        admission: Admission,
        ledger: Ledger,
        transcripts: Transcripts,
        redact: Redactor,
    ) -> None:
        self._config = config
        self._upstreams = upstreams
        self._admission = admission
        self._ledger = ledger
        self._transcripts = transcripts
        self._redact = redact
        self.failing: dict[str, tuple[str, str]] = {}
        """Candidates whose newest request came to nothing and is made again: reason and words."""

    async def answer(self, account: Account, asked: Asked) -> Answered:
        """Make one call to its end: a reply, a failed result, or a fault after all tries."""
        account.steps += 1
        one = _OneCall(self, account, asked, account.steps)
        return await one.run()


class _OneCall:
    """One call of one grant."""

    def __init__(self, calls: Calls, account: Account, asked: Asked, step: int) -> None:
        self._calls = calls
        self._config = calls._config
        self._admission = calls._admission
        self._account = account
        self._asked = asked
        self._step = step
        candidate = self._config.candidate(account.grant.candidate)
        assert candidate is not None, "a grant is only given for a candidate of this run"
        self._candidate: Candidate = candidate
        native = asked.native
        wire = asked.wire if native is not None else ""
        self._upstream: Upstream = calls._upstreams.of(candidate, wire)
        self._messages = repair(asked.messages) if native is None else asked.messages
        self._tools = tool_names(asked.tools)
        by_text = candidate.tuning.get("tool_parser") == texttools.TEXT and asked.tools
        self._schemas = texttools.schemas_of(asked.tools) if by_text else None
        self._params = self._merged_params()
        # Counted only where it is needed: it means writing the messages once more.
        self._estimate = self._estimated() if self._admission.counts_tokens(candidate.name) else 1
        self._retries = Retries(self._config.retries, self._config.max_wait)
        self._began = self._clock()
        self._held = 0.0
        self._debited_held = 0.0
        self._tries = 0
        self._sent_bound = ""
        self._in_flight = False

    async def run(self) -> Answered:
        self._write_down()
        reason = self._account.over()
        if reason:
            return self._end(self._limit_reached(reason), UNSENT)
        if self._upstream.problem is not None:
            return self._give_up(refusal(ReplyOutcome.PERMANENT, *self._upstream.problem), UNSENT)
        try:
            async with asyncio.timeout(self._asked.wall_left):
                await self._upstream.prepare()
                self._held += self._clock() - self._began
                return await self._try_until_done()
        except Stopped as error:
            return self._end(stopped(error.stop), UNSENT)
        except TooLong as error:
            self._held = self._clock() - self._began
            text = f"{error}, and max_wait is {self._config.max_wait:g} s"
            return self._end(refusal(ReplyOutcome.TRANSIENT, "rate-limited", text), UNSENT)
        except TimeoutError:
            text = "the attempt's wall time ended while the call was held or under way"
            self._held = self._clock() - self._began
            return self._end(refusal(ReplyOutcome.TRANSIENT, "wall-limit", text), self._unknown())
        except asyncio.CancelledError:
            # The worker is gone; what its request used is not known any more.
            self._end(refusal(ReplyOutcome.TRANSIENT, "cancelled"), self._unknown())
            raise

    def _write_down(self) -> None:
        """Keep the request: in the form of chat, or as it was made where that is what is sent."""
        messages, native = self._messages, self._asked.native
        rest: dict[str, JsonValue] = {"tools": self._asked.tools, "params": self._params}
        if native is not None:
            given = dict(native.body)
            said = given.pop("messages", None) or given.pop("input", None)
            messages = said if isinstance(said, list) else [said]
            rest = {"tools": given.pop("tools", []), "params": given | self._params}
        if self._schemas is not None:
            rest["tools_told"] = f"in words, version {texttools.TEXT_VERSION}"
        if self._asked.by_program:
            rest["wire"] = self._asked.wire
        self._calls._transcripts.request(self._account.token, self._step, messages, rest)

    async def _try_until_done(self) -> Answered:
        name = self._candidate.name
        while True:
            waiting = self._clock()
            async with self._admission.slot(name, self._estimate) as slot:
                self._held += self._clock() - waiting
                sending = self._clock()
                self._calls._ledger.sending(self._account, self._step, self._tries)
                self._in_flight = True
                exchange = await self._upstream.send(self._call())
                self._in_flight = False
                took = self._clock() - sending
                self._admission.learn(name, exchange.headers)
                reply = self._understand(exchange)
                used = reply.usage
                slot.settle(
                    used.input + used.output
                    if used.input is not None and used.output is not None
                    else None,
                    used.output,
                )
            if not reply.faulty:
                self._calls.failing.pop(name, None)
                return self._end(reply, exchange)
            self._held += took
            if reply.outcome == ReplyOutcome.PERMANENT:
                return self._give_up(reply, exchange)
            wait = self._retries.next_wait(reply)
            if wait is None:
                return self._end(self._exhausted(reply), exchange)
            if reply.reason == "rate-limited":
                self._admission.pause(name, wait)
            self._calls.failing[name] = (reply.reason, reply.quote)
            self._note(reply, exchange, last=False, waited=wait)
            self._tries += 1
            waiting = self._clock()
            try:
                await self._admission.sleep(name, wait)
            finally:
                self._held += self._clock() - waiting

    def _call(self) -> Call:
        own = self._candidate.params.get("timeout")
        seconds = float(own) if isinstance(own, (int, float)) else self._config.call_seconds
        working = self._asked.working_left
        self._sent_bound = ""
        if working is not None and working < seconds:
            seconds, self._sent_bound = max(working, 0.0), "time-limit"
        grant = self._account.grant
        messages, tools, params = self._messages, self._asked.tools, self._params
        if self._schemas is not None:
            messages, tools = texttools.told(messages, tools), []
            params = {key: params[key] for key in params if key not in _OF_TOOLS}
        return Call(
            messages=messages,
            tools=tools,
            params=params,
            stream=self._asked.stream or self._candidate.params.get("stream") is True,
            seconds=seconds,
            case=grant.case,
            repeat=grant.repeat,
            tries=self._tries,
            native=self._asked.native,
        )

    def _understand(self, exchange: Exchange) -> Reply:
        if exchange.error == "timeout" and self._sent_bound:
            text = "the attempt's working time ended while the model was at work"
            return refusal(ReplyOutcome.RESULT_FAIL, self._sent_bound, text)
        parser = self._candidate.tuning.get("tool_parser")
        reply = classify(
            exchange,
            self._tools,
            now=time.time(),
            text_parser=parser if isinstance(parser, str) else "",
            schemas=self._schemas,
            reasoning_beside=self._upstream.reasoning_beside,
        )
        if exchange.error in _UNREACHED and self._candidate.api_base:
            reply = reply.model_copy(update={"quote": _unreached(exchange, self._candidate)})
        if not reply.faulty and not same_model(self._upstream.asks_for, reply, self._candidate):
            text = (
                f"asked for {self._upstream.asks_for!r}, served by {reply.served_model!r}; where "
                f"these are the same, say so: served_as = {reply.served_model!r} in the facts of "
                f"candidate {self._candidate.name}"
            )
            reply = reply.model_copy(
                update={"outcome": ReplyOutcome.RESULT_FAIL, "reason": "other-model", "quote": text}
            )
        if reply.reason == "unauthorised" and (key := target_of(self._candidate).key_in_words):
            reply = reply.model_copy(update={"quote": f"{reply.quote} ({key})"})
        calls = tuple(
            call if call.id is not None else call.model_copy(update={"id": _new_id()})
            for call in reply.tool_calls
        )
        return reply.model_copy(
            update={"tool_calls": calls, "quote": self._calls._redact(reply.quote)}
        )

    def _merged_params(self) -> dict[str, JsonValue]:
        asked = self._asked.params
        if self._asked.native is not None:
            # The others stand in the request itself, in its own words.
            asked = {name: value for name, value in asked.items() if name in BOUNDS}
        merged = {**asked, **self._candidate.params}
        seed = self._candidate.params.get("seed")
        if isinstance(seed, int):
            # Repeats are to differ, and each to be drawn again alike.
            merged["seed"] = seed + self._account.grant.repeat
        return merged

    def _estimated(self) -> int:
        size = len(json.dumps(self._messages)) + len(json.dumps(self._asked.tools))
        room = self._params.get("max_tokens") or self._params.get("max_completion_tokens")
        return estimated_tokens(size, room)

    def _give_up(self, reply: Reply, exchange: Exchange) -> Answered:
        self._calls.failing.pop(self._candidate.name, None)
        stop = Stop(reason=reply.reason, text=reply.quote, status=reply.status)
        if self._admission.stop(self._candidate.name, stop):
            self._calls._ledger.note_stop(self._candidate.name, stop)
        return self._end(reply, exchange)

    def _exhausted(self, reply: Reply) -> Reply:
        why = self._retries.why_not
        return reply.model_copy(update={"quote": f"{reply.quote} ({why})" if why else reply.quote})

    def _limit_reached(self, reason: str) -> Reply:
        """Return the end of a grant: a result of the candidate, a fault of a driver or a judge."""
        limits, account = self._account.grant.limits, self._account
        whole = account.pool.limits if account.pool is not None else limits
        text = (
            f"{account.used_tokens} tokens used of {limits.tokens or whole.tokens}"
            if reason == "token-limit"
            else f"${account.usd:.4f} used of ${limits.usd or whole.usd}"
        )
        if account.grant.role is Role.CANDIDATE:
            return refusal(ReplyOutcome.RESULT_FAIL, reason, text)
        return refusal(ReplyOutcome.TRANSIENT, reason, f"{account.grant.role}: {text}")

    def _unknown(self) -> Exchange:
        """Return the exchange of a request that was given up, if one was under way."""
        return Exchange(requests=1 if self._in_flight else 0)

    def _end(self, reply: Reply, exchange: Exchange) -> Answered:
        self._note(reply, exchange, last=True)
        held = reply.model_copy(update={"held_seconds": round(self._held, 6)})
        return Answered(held, exchange)

    def _note(self, reply: Reply, exchange: Exchange, *, last: bool, waited: float = 0.0) -> None:
        """Debit one request, then write down what it brought; before anybody gets the reply."""
        account = self._account
        debit = Debit(
            step=self._step,
            tries=self._tries,
            requests=exchange.requests,
            usage=reply.usage if exchange.requests else UNKNOWN,
            usd=self._calls._ledger.cost(account, reply) if exchange.requests else None,
            last=last,
            faulty=reply.faulty,
            waited=round(waited, 6),
            held=round(self._held - self._debited_held, 6),
            served_model=reply.served_model,
            reason=reply.reason if last and reply.outcome not in _GOES_ON else "",
            lost=self._in_flight,
        )
        self._debited_held = self._held
        self._calls._ledger.debit(account, debit)
        raw = exchange.body if exchange.raw is None else exchange.raw
        entry: dict[str, JsonValue] = {
            "status": exchange.status,
            "error": exchange.error,
            "body": raw.decode("utf-8", "replace"),
            "reply": reply.model_dump(mode="json", exclude_defaults=True),
            "usd": debit.usd,
            "waited": debit.waited,
            "held": debit.held,
        }
        self._calls._transcripts.reply(account.token, self._step, self._tries, entry)

    @staticmethod
    def _clock() -> float:
        return asyncio.get_running_loop().time()


UNSENT = Exchange(requests=0)
BOUNDS = ("max_tokens", "max_completion_tokens")
"""Parameters that bound the length of a reply."""
_GOES_ON = (ReplyOutcome.ANSWER, ReplyOutcome.TOOL_CALLS)


_UNREACHED = {
    "connection-refused": "takes no connections; start the server",
    "unknown-host": "is no host that is known here; are its name and the network right?",
}


def _unreached(exchange: Exchange, candidate: Candidate) -> str:
    """Say which address is not there and what to do, in words that are those of no library."""
    place = urlsplit(candidate.api_base).netloc.rpartition("@")[2]
    return f"{place} {_UNREACHED[exchange.error]} (api_base of {candidate.name})"


def stopped(stop: Stop) -> Reply:
    """Return the reply to a call of a candidate that is stopped."""
    text = stop.reason + (f", {stop.text}" if stop.text else "")
    return refusal(ReplyOutcome.PERMANENT, "candidate-stopped", text, stop.status)


def _new_id() -> str:
    """Make an id for a call without one: nine characters, as the strictest servers want."""
    letters: Iterable[str] = (secrets.choice(_LETTERS) for _ in range(9))
    return "".join(letters)


_LETTERS = string.ascii_letters + string.digits
