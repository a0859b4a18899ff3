"""The gateway process: an HTTP server on the listening socket that the controller hands over.

Programs speak OpenAI's API to it with the token of their grant as the key; workers open and close
grants with the secret of the session. Reads its configuration from the first line of its standard
input, and ends when that comes to its end.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import web
from pydantic import JsonValue, ValidationError

from pytest_modelbench.gateway import sse
from pytest_modelbench.gateway.admission import Admission
from pytest_modelbench.gateway.calls import Asked, Calls, stopped
from pytest_modelbench.gateway.ledger import Account, Ledger
from pytest_modelbench.gateway.prices import price_of
from pytest_modelbench.gateway.replies import Reply, ReplyOutcome, refusal
from pytest_modelbench.gateway.toolcalls import readable_arguments
from pytest_modelbench.gateway.transcript import Transcripts
from pytest_modelbench.gateway.upstream import Upstreams, keys_of, needs_litellm
from pytest_modelbench.gateway.wire import GatewayConfig, GrantRequest, Redactor, Stop

REQUEST_BYTES = 256 * 2**20
END_SECONDS = 1.0
GRANT_HEADER = "x-modelbench-grant"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Gateway:
    """Everything of one gateway process, and the handlers of its endpoints."""

    def __init__(self, config: GatewayConfig) -> None:
        folder = Path(config.folder)
        keys = {n: v for c in config.candidates if c.calls_model for n, v in keys_of(c).items()}
        redact = Redactor(keys)
        self.config = config
        self.upstreams = Upstreams()
        self.admission = Admission(config.candidates, config.servers)
        prices = {c.name: price_of(c) for c in config.candidates if c.calls_model}
        self.ledger = Ledger(folder / "journal.jsonl", config.secret, prices)
        self.transcripts = Transcripts(folder, redact)
        self.calls = Calls(
            config, self.upstreams, self.admission, self.ledger, self.transcripts, redact
        )
        for name, stop in self.ledger.stops.items():
            if config.candidate(name) is not None:
                self.admission.stop(name, stop)

    def application(self) -> web.Application:
        """Return the application that serves this gateway."""
        app = web.Application(client_max_size=REQUEST_BYTES, middlewares=[_errors])
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/control/grants", self._control(self._open))
        app.router.add_get("/control/grants/{token}", self._control(self._state))
        app.router.add_delete("/control/grants/{token}", self._control(self._close))
        app.router.add_get("/control/status", self._control(self._status))
        app.router.add_post("/control/stop", self._control(self._stop))
        return app

    async def close(self) -> None:
        """Let go of connections and of the journal."""
        await self.upstreams.close()
        self.ledger.shut()

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        account = self.ledger.account(_bearer(request))
        if account is None:
            return _refuse(401, "this token is of no open grant", "unauthorised")
        asked = _asked(await request.read())
        if isinstance(asked, str):
            return _refuse(400, asked, "bad-request")
        stop = self.admission.stop_of(account.grant.candidate)
        if stop is not None:
            return _reply(account, stopped(stop))
        reply = await self.calls.answer(account, asked)
        if asked.stream and _status(reply) == 200:
            return await _stream(request, account, reply)
        return _reply(account, reply)

    async def _models(self, request: web.Request) -> web.StreamResponse:
        account = self.ledger.account(_bearer(request))
        if account is None:
            return _refuse(401, "this token is of no open grant", "unauthorised")
        model: JsonValue = {
            "id": account.grant.candidate,
            "object": "model",
            "owned_by": "modelbench",
        }
        return _json({"object": "list", "data": [model]})

    def _control(self, handler: Handler) -> Handler:
        async def guarded(request: web.Request) -> web.StreamResponse:
            if not hmac.compare_digest(_bearer(request).encode(), self.config.secret.encode()):
                return _refuse(401, "this endpoint needs the secret of the session", "unauthorised")
            return await handler(request)

        return guarded

    async def _open(self, request: web.Request) -> web.StreamResponse:
        try:
            grant = GrantRequest.model_validate_json(await request.read())
        except ValidationError as error:
            return _refuse(400, f"not a grant: {error}", "bad-request")
        candidate = self.config.candidate(grant.candidate)
        if candidate is None:
            known = ", ".join(c.name for c in self.config.candidates)
            text = f"no candidate {grant.candidate!r} in this run; there are: {known or 'none'}"
            return _refuse(404, text, "unknown-candidate")
        stop = self.admission.stop_of(candidate.name)
        if stop is not None:
            return _fault(409, stopped(stop))
        return _json({"token": self.ledger.open(grant).token})

    async def _state(self, request: web.Request) -> web.StreamResponse:
        account = self.ledger.account(request.match_info["token"])
        if account is None:
            return _refuse(404, "this token is of no open grant", "unknown-grant")
        return _json(account.report().model_dump(mode="json"))

    async def _close(self, request: web.Request) -> web.StreamResponse:
        account = self.ledger.account(request.match_info["token"])
        if account is None:
            return _refuse(404, "this token is of no open grant", "unknown-grant")
        ended = self.ledger.close(account)
        headers = {GRANT_HEADER: json.dumps(ended.model_dump(mode="json"))}
        return web.Response(
            body=self.transcripts.take(account.token),
            headers=headers,
            content_type="application/octet-stream",
        )

    async def _status(self, request: web.Request) -> web.StreamResponse:
        stops: JsonValue = {n: s.model_dump() for n, s in self.admission.stops.items()}
        return _json({"pid": os.getpid(), "stopped": stops})

    async def _stop(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        candidate = body.get("candidate") if isinstance(body, dict) else None
        if not isinstance(candidate, str) or self.config.candidate(candidate) is None:
            return _refuse(404, f"no candidate {candidate!r} in this run", "unknown-candidate")
        stop = Stop(reason=str(body.get("reason") or "stopped"), text=str(body.get("text") or ""))
        if self.admission.stop(candidate, stop):
            self.ledger.note_stop(candidate, stop)
        return _json({})


def main(listener: int) -> None:
    """Serve on an inherited listening socket until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    line = sys.stdin.buffer.readline()
    if not line:
        return
    config = GatewayConfig.model_validate_json(line)
    asyncio.run(_serve(config, socket.socket(fileno=listener)))


async def _serve(config: GatewayConfig, listener: socket.socket) -> None:
    listener.setblocking(False)
    gateway = Gateway(config)
    runner = web.AppRunner(
        gateway.application(), access_log=None, handler_cancellation=True, shutdown_timeout=0.5
    )
    await runner.setup()
    await web.SockSite(runner, listener, backlog=1024).start()
    if any(needs_litellm(c) for c in config.candidates if c.calls_model):
        from pytest_modelbench.gateway.translated import import_in_background

        import_in_background()
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    threading.Thread(target=_await_end, args=(loop, ended), daemon=True).start()
    await ended.wait()
    await runner.cleanup()
    await gateway.close()
    if "litellm" in sys.modules:
        # Its own threads and exit handlers take seconds, and there is nothing left to save.
        os._exit(0)


def _await_end(loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    """Wait for the controller's end, however it went; nothing may keep this process after it."""
    while sys.stdin.buffer.read(4096):
        pass
    loop.call_soon_threadsafe(ended.set)
    time.sleep(END_SECONDS)
    os._exit(0)


def _bearer(request: web.Request) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _asked(raw: bytes) -> Asked | str:
    """Read a chat request; return what is wrong with it in words when it cannot be read."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        return f"the request is not JSON: {error}"
    if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
        return "the request needs a list of messages"
    ours = body.pop("modelbench", None)
    left = ours if isinstance(ours, dict) else {}
    tools = body.pop("tools", None)
    stream = body.pop("stream", None) is True
    messages = body.pop("messages")
    # The model is pinned by the grant; a stream's options are the gateway's own business.
    for name in ("model", "stream_options", "n"):
        body.pop(name, None)
    return Asked(
        messages=messages,
        tools=tools if isinstance(tools, list) else [],
        params=body,
        stream=stream,
        working_left=_seconds(left.get("working_left")),
        wall_left=_seconds(left.get("wall_left")),
    )


def _seconds(value: JsonValue) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def _status(reply: Reply) -> int:
    """Return the status that ends a program for good where there is nothing to go on with.

    401 is the one that every program stops at; others make them try again by rules of their own.
    """
    if reply.reason == "context-exceeded":
        return 400
    terminal = reply.faulty or reply.reason in ("token-limit", "usd-limit", "time-limit")
    return 401 if terminal else 200


def _reply(account: Account, reply: Reply) -> web.Response:
    status = _status(reply)
    return _fault(status, reply) if status != 200 else _json(_completion(account, reply))


def _fault(status: int, reply: Reply) -> web.Response:
    code = "context_length_exceeded" if reply.reason == "context-exceeded" else reply.reason
    error: JsonValue = {
        "message": f"{reply.reason}: {reply.quote}",
        "type": "invalid_request_error" if status == 400 else "modelbench",
        "param": None,
        "code": code,
        "modelbench": reply.model_dump(mode="json"),
    }
    return _json({"error": error}, status)


def _refuse(status: int, text: str, reason: str) -> web.Response:
    return _fault(status, refusal(ReplyOutcome.TRANSIENT, reason, text, status))


def _completion(account: Account, reply: Reply) -> dict[str, JsonValue]:
    """Return the body of OpenAI's API that says what a reply says, and the reply itself."""
    message: dict[str, JsonValue] = {"role": "assistant", "content": reply.answer}
    if reply.reasoning is not None:
        message["reasoning_content"] = reply.reasoning
    if reply.tool_calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": call.name,
                    # A program tells its model what is wrong with arguments; it needs to see them.
                    "arguments": call.raw
                    if call.arguments is None
                    else readable_arguments(call.raw),
                },
            }
            for call in reply.tool_calls
        ]
    usage = reply.usage
    counted: JsonValue = None
    if usage.input is not None and usage.output is not None:
        counted = {
            "prompt_tokens": usage.input,
            "completion_tokens": usage.output,
            "total_tokens": usage.input + usage.output,
            "prompt_tokens_details": {"cached_tokens": usage.cached or 0},
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
        }
    finish = "tool_calls" if reply.tool_calls else "length" if reply.truncated else "stop"
    if reply.reason == "content-filter":
        finish = "content_filter"
    return {
        "id": f"chatcmpl-{account.token[3:11]}-{account.steps}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": account.grant.candidate,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": counted,
        "modelbench": reply.model_dump(mode="json"),
    }


async def _stream(request: web.Request, account: Account, reply: Reply) -> web.StreamResponse:
    """Answer a program that asked for a stream, once the reply is whole.

    A stream that breaks off upstream is tried again, and half of one cannot be taken back.
    """
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    for piece in sse.chunks(_completion(account, reply)):
        await response.write(piece)
    await response.write_eof()
    return response


def _json(body: JsonValue, status: int = 200) -> web.Response:
    return web.Response(
        body=json.dumps(body).encode(), status=status, content_type="application/json"
    )


@web.middleware
async def _errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer in our own form where no handler did, so that a worker can say what went wrong."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        return _refuse(error.status, f"{request.method} {request.path}: {error.reason}", "gateway")
    except Exception as error:  # an unknown exception is a fault, and its words are for the user
        return _refuse(500, f"{type(error).__name__}: {error}", "gateway")
