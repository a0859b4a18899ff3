"""The APIs that programs speak to the gateway, on its own socket and on the doors of boxes."""

from __future__ import annotations

import json
import socket
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace

from aiohttp import web
from pydantic import JsonValue

from pytest_modelbench.gateway.admission import Admission
from pytest_modelbench.gateway.calls import UNSENT, Answered, Asked, Calls, stopped
from pytest_modelbench.gateway.chat import Chat
from pytest_modelbench.gateway.dialect import BadRequest, Dialect, Speaker
from pytest_modelbench.gateway.ledger import Account, Ledger
from pytest_modelbench.gateway.messages import Messages
from pytest_modelbench.gateway.native import PASSED_HEADERS
from pytest_modelbench.gateway.prices import provider_of
from pytest_modelbench.gateway.programs import Programs, bounded, ends, window_of
from pytest_modelbench.gateway.replies import Exchange, Reply, ReplyOutcome, refusal
from pytest_modelbench.gateway.responses import Responses
from pytest_modelbench.gateway.upstream import Asking, wires_of
from pytest_modelbench.gateway.wire import GatewayConfig
from pytest_modelbench.parsing import parse
from pytest_modelbench.records import Candidate

REQUEST_BYTES = 256 * 2**20

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_DOOR = web.AppKey("door", str)


class Apis:
    """``/v1/chat/completions``, ``/v1/messages``, ``/v1/responses`` and ``/v1/models``.

    The key is the token of a grant, and the model is the grant's, whatever a request names.
    """

    def __init__(
        self, config: GatewayConfig, admission: Admission, ledger: Ledger, calls: Calls
    ) -> None:
        self._config = config
        self._admission = admission
        self._ledger = ledger
        self._calls = calls
        self._programs = Programs()
        self._doors: dict[str, web.AppRunner] = {}

    def application(self) -> web.Application:
        """Return an application with these APIs, and nothing else."""
        app = web.Application(client_max_size=REQUEST_BYTES, middlewares=[errors_in_our_form])
        app.router.add_post("/v1/chat/completions", self._speaks(Chat()))
        app.router.add_post("/v1/messages", self._speaks(Messages()))
        app.router.add_post("/v1/responses", self._speaks(Responses()))
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/v1/models/{model:.+}", self._models)
        return app

    async def open_door(self, token: str, listener: socket.socket) -> str:
        """Serve on a listener that was handed over, for one grant; return why not, or ''."""
        if self._ledger.account(token) is None:
            return "this token is of no open grant"
        if token in self._doors:
            return "this attempt has its door already"
        app = self.application()
        app[_DOOR] = token
        runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=0.2
        )
        self._doors[token] = runner
        listener.setblocking(False)
        await runner.setup()
        await web.SockSite(runner, listener, backlog=64).start()
        self._programs.begin(token)
        return ""

    async def forget(self, account: Account) -> Reply | None:
        """Close the door of a grant that ends, which would keep its box's network alive.

        Returns the reply that ended its program, None where none did.
        """
        door = self._doors.pop(account.token, None)
        if door is not None:
            await door.cleanup()
        return self._programs.forget(account)

    def in_flight(self, account: Account) -> int:
        """Return how many calls of a grant's program are under way."""
        return self._programs.in_flight(account)

    async def close(self) -> None:
        """Close every door."""
        for door in self._doors.values():
            await door.cleanup()

    def _speaks(self, dialect: Dialect) -> Handler:
        async def handler(request: web.Request) -> web.StreamResponse:
            account = self._account(request)
            if account is None:
                return _refused(dialect, 401, "this token is of no open grant", "unauthorised")
            candidate = self._candidate(account)
            identity = f"{account.token[3:11]}{account.steps}"
            speaker = Speaker(candidate.name, identity, kept_by(candidate))
            try:
                body = _body(await request.read())
                native = _asking(request, body) if dialect.name in wires_of(candidate) else None
                spoken = dialect.read(body, speaker, native)
            except BadRequest as error:
                return _refused(dialect, 400, str(error), "bad-request")
            reply, exchange = await self._answer(account, candidate, spoken.asked)
            status = status_of(reply)
            if status != 200:
                return as_json(dialect.error(status, reply), status)
            if native is not None and _came_well(exchange, spoken.asked.stream):
                return _as_it_came(exchange)
            if not spoken.asked.stream:
                return as_json(spoken.whole(speaker, reply))
            return await _stream(request, spoken.events(speaker, reply))

        return handler

    async def _answer(self, account: Account, candidate: Candidate, asked: Asked) -> Answered:
        stop = self._admission.stop_of(candidate.name)
        refused = None if stop is None else stopped(stop)
        if not asked.by_program:
            if refused is not None:
                return Answered(refused, UNSENT)
            return await self._calls.answer(account, asked)
        refused = self._programs.refusal(account) or refused
        if refused is not None:
            answered = Answered(refused, UNSENT)
        else:
            with self._programs.call(account) as working_left:
                asked = replace(bounded(asked, candidate), working_left=working_left)
                answered = await self._calls.answer(account, asked)
        self._programs.note(account, answered.reply)
        return answered

    async def _models(self, request: web.Request) -> web.StreamResponse:
        """List the one model that there is for this token, in a form that either API's is."""
        account = self._account(request)
        if account is None:
            return _refused(Chat(), 401, "this token is of no open grant", "unauthorised")
        candidate = self._candidate(account)
        model: dict[str, JsonValue] = {
            "id": candidate.name,
            "object": "model",
            "owned_by": "modelbench",
            "created": 0,
            "type": "model",
            "display_name": candidate.name,
            "created_at": "1970-01-01T00:00:00Z",
        }
        window = window_of(candidate)
        if window is not None:
            model |= {"max_model_len": window, "context_length": window}
        if "model" in request.match_info:
            return as_json(model)
        return as_json({"object": "list", "data": [model], "has_more": False})

    def _account(self, request: web.Request) -> Account | None:
        """Return the account that a request is for; at a door, that of the door alone."""
        account = self._ledger.account(_token(request))
        door = request.app.get(_DOOR)
        return account if door is None or (account and account.token == door) else None

    def _candidate(self, account: Account) -> Candidate:
        candidate = self._config.candidate(account.grant.candidate)
        assert candidate is not None, "a grant is only given for a candidate of this run"
        return candidate


def kept_by(candidate: Candidate) -> frozenset[str]:
    """Return the extensions of the chat API that a candidate's upstream understands."""
    provider = provider_of(candidate.model) if candidate.model else ""
    kept = set[str]()
    if provider in _CLAUDE and "claude" in candidate.model:
        kept.add("anthropic")
    if provider == "openai" and not candidate.api_base:
        kept.add("effort")
    return frozenset(kept)


_CLAUDE = ("anthropic", "bedrock", "vertex_ai")


def status_of(reply: Reply) -> int:
    """Return the status that ends a program for good where there is nothing to go on with.

    401 is the one that every program stops at; others make them try again by rules of their own.
    """
    if reply.reason == "context-exceeded":
        return 400
    return 401 if ends(reply) else 200


def bearer(request: web.Request) -> str:
    """Return the token of an authorization header, "" for none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def as_json(body: JsonValue, status: int = 200) -> web.Response:
    """Return a JSON response."""
    return web.Response(
        body=json.dumps(body).encode(), status=status, content_type="application/json"
    )


def refused(status: int, text: str, reason: str) -> web.Response:
    """Return a refusal of our own, in the form that our workers read."""
    return _refused(Chat(), status, text, reason)


@web.middleware
async def errors_in_our_form(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer in our own form where no handler did, so that a worker can say what went wrong."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        return refused(error.status, f"{request.method} {request.path}: {error.reason}", "gateway")
    except Exception as error:  # an unknown exception is a fault, and its words are for the user
        return refused(500, f"{type(error).__name__}: {error}", "gateway")


def _refused(dialect: Dialect, status: int, text: str, reason: str) -> web.Response:
    reply = refusal(ReplyOutcome.TRANSIENT, reason, text, status)
    return as_json(dialect.error(status, reply), status)


async def _stream(request: web.Request, events: Iterable[bytes]) -> web.StreamResponse:
    """Answer a program that asked for a stream, once the reply is whole.

    A stream that breaks off upstream is tried again, and half of one cannot be taken back.
    """
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    for piece in events:
        await response.write(piece)
    await response.write_eof()
    return response


def _asking(request: web.Request, body: dict[str, JsonValue]) -> Asking:
    """Return a request as it was made, with those of its headers that are part of it."""
    passed = {name: request.headers[name] for name in PASSED_HEADERS if name in request.headers}
    return Asking(dict(body), passed)


def _came_well(exchange: Exchange, stream: bool) -> bool:
    """Tell whether a server's reply is in the form that the program asked for."""
    sent = exchange.headers.get("content-type", "")
    good = exchange.status is not None and 200 <= exchange.status < 300
    return good and exchange.raw is not None and ("text/event-stream" in sent) == stream


def _as_it_came(exchange: Exchange) -> web.Response:
    """Pass a reply on, byte for byte; it came to its end before, so no half of it is passed."""
    headers = {"content-type": exchange.headers["content-type"]}
    return web.Response(body=exchange.raw, headers=headers)


def _token(request: web.Request) -> str:
    """Return the key of a program, in whichever header its API puts it."""
    headers = request.headers
    return bearer(request) or headers.get("x-api-key", "") or headers.get("x-goog-api-key", "")


def _body(raw: bytes) -> dict[str, JsonValue]:
    try:
        body = parse(raw)
    except ValueError as error:
        raise BadRequest(f"the request is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise BadRequest("the request is not a JSON object")
    return body
