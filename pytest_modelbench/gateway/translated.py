"""Models that speak an API of their own, through LiteLLM; what crossed the wire is taken below it.

LiteLLM translates requests and replies. Its retries, its telemetry and its look-ups are off, and
an HTTP client of ours is under it where it takes one, so that status, headers, raw body and usage
are those of the server and not its own reading of them. Replies are asked for whole: where it puts
a broken stream together, it ends it as if nothing had happened.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import os
import ssl
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol, cast

import httpx
from pydantic import JsonValue

from pytest_modelbench.gateway.received import BodyTooLong, Received
from pytest_modelbench.gateway.replies import Exchange
from pytest_modelbench.gateway.upstream import Call, Target
from pytest_modelbench.parsing import parse

TAKES_CLIENT = frozenset(
    {
        "anthropic",
        "bedrock",
        "bedrock_converse",
        "cohere_chat",
        "deepseek",
        "fireworks_ai",
        "gemini",
        "groq",
        "mistral",
        "ollama",
        "ollama_chat",
        "openrouter",
        "together_ai",
        "vertex_ai",
        "xai",
    }
)
"""Providers whose calls take a client of ours as an argument; the others use the shared session."""

CONNECT_SECONDS = 20.0

_NOT_PASSED = {"timeout", "stream", "stream_options", "n", "max_retries", "num_retries"}


class _Module(Protocol):
    """What is used of LiteLLM."""

    suppress_debug_info: bool
    telemetry: bool
    aclient_session: httpx.AsyncClient | None

    async def acompletion(self, **kwargs: object) -> object:
        """Make one call."""
        ...


class _Dumps(Protocol):
    def model_dump_json(self) -> str:
        """Return a reply as JSON."""
        ...


@dataclass(frozen=True)
class _Library:
    litellm: _Module
    handler: object


_loaded: Future[_Library] | None = None


def import_in_background() -> Future[_Library]:
    """Begin to import LiteLLM, which takes seconds, in a thread that holds up no exit."""
    global _loaded
    if _loaded is None:
        _loaded = Future()
        threading.Thread(target=_import, args=(_loaded,), daemon=True).start()
    return _loaded


def _import(loaded: Future[_Library]) -> None:
    # Without it the import looks up a price map on the network, and waits where there is none.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    try:
        import litellm
        from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

        module = cast(_Module, litellm)  # untyped here: mypy skips its modules, see pyproject.toml
        module.suppress_debug_info = True  # banners on each error otherwise
        client = httpx.AsyncClient(
            transport=_Recorder(),
            timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
        )
        module.aclient_session = client
        handler = AsyncHTTPHandler()
        handler.client = client
        loaded.set_result(_Library(module, handler))
    except BaseException as error:
        loaded.set_exception(error)


class Translated:
    """The upstream of one model that LiteLLM speaks for."""

    def __init__(self, target: Target) -> None:
        self.problem = target.problem
        self.asks_for = target.model
        self.reasoning_beside = target.provider == "xai"
        self._target = target

    async def prepare(self) -> None:
        """Wait until LiteLLM is imported."""
        await asyncio.shield(asyncio.wrap_future(import_in_background()))

    async def send(self, call: Call) -> Exchange:
        """Make one request through LiteLLM."""
        library = import_in_background().result()
        seen = _Seen()
        _seen.set(seen)
        try:
            async with asyncio.timeout(call.seconds):
                answer = await library.litellm.acompletion(**self._arguments(library, call))
        except TimeoutError:
            return seen.lost("timeout", f"no whole reply in {call.seconds:g} s")
        except Exception as error:  # LiteLLM raises classes of its own, and bare Exceptions too
            return seen.failed(error)
        # A ModelResponse, which pydantic makes; mypy skips its module.
        return seen.answered(cast(_Dumps, answer).model_dump_json())

    async def close(self) -> None:
        """Do nothing: the process ends with it."""

    def _arguments(self, library: _Library, call: Call) -> dict[str, object]:
        passed: dict[str, object] = {
            name: value for name, value in call.params.items() if name not in _NOT_PASSED
        }
        passed |= {
            "model": self._target.model,
            "messages": call.messages,
            "timeout": call.seconds,
            "max_retries": 0,
            "num_retries": 0,
        }
        if call.tools:
            passed["tools"] = call.tools
        if self._target.api_base:
            passed["api_base"] = self._target.api_base
        if self._target.key is not None:
            passed["api_key"] = self._target.key
        elif self._target.api_base:
            # LiteLLM would send the provider's own key of the environment to any address.
            passed["api_key"] = "none"
        if self._target.provider in TAKES_CLIENT:
            passed["client"] = library.handler
        return passed


@dataclass
class _Seen:
    """What crossed the wire beneath one call."""

    requests: int = 0
    received: list[Received] = field(default_factory=list)
    trouble: Exchange | None = None

    def answered(self, translated: str) -> Exchange:
        """Return the translated reply with the server's own usage, model name and end mark."""
        body: dict[str, JsonValue] = json.loads(translated)
        last = self.received[-1] if self.received else None
        if last is None:
            return Exchange(200, {}, json.dumps(body).encode())
        raw = last.body
        try:
            native = parse(raw)
        except ValueError:
            return last.whole(self.requests)
        if isinstance(native, dict):
            _overlay(body, native)
        return Exchange(
            last.status, last.headers, json.dumps(body).encode(), requests=self.requests, raw=raw
        )

    def failed(self, error: Exception) -> Exchange:
        """Return the server's own error, or LiteLLM's where no request was made."""
        if self.trouble is not None:
            return self.trouble
        text = " ".join(str(error).split())
        last = self.received[-1] if self.received else None
        if last is not None and (last.status is None or last.status >= 300 or not _is_json(last)):
            return last.whole(self.requests)
        if last is not None:
            # The server answered well, and LiteLLM could not read it: no fault of the model.
            return last.lost("reply-not-read", text, self.requests)
        status = getattr(error, "status_code", None)
        code = status if isinstance(status, int) else 500
        if "provide" in text.lower() and "credential" in text.lower():
            code = 401
        told: JsonValue = {"error": {"message": text, "type": type(error).__name__}}
        return Exchange(code, {}, json.dumps(told).encode(), requests=0)

    def lost(self, error: str, text: str) -> Exchange:
        """Return the exchange of a call that was given up."""
        last = self.received[-1] if self.received else Received()
        return last.lost(error, text, self.requests)


_seen: contextvars.ContextVar[_Seen] = contextvars.ContextVar("seen")


class _Recorder(httpx.AsyncBaseTransport):
    """A transport that keeps what it carries, for the call in whose context it works."""

    def __init__(self) -> None:
        self._inner = httpx.AsyncHTTPTransport(verify=ssl.create_default_context())

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Carry one request."""
        seen = _seen.get(_Seen())
        received = Received()
        seen.received.append(received)
        seen.requests += 1
        try:
            response = await self._inner.handle_async_request(request)
            response.request = request
            try:
                items = response.headers.multi_items()
                await received.read(response.status_code, items, response.aiter_bytes())
            finally:
                await response.aclose()
        except (httpx.HTTPError, BodyTooLong) as error:
            seen.trouble = received.lost(*_name(error))
            seen.requests -= 1 - seen.trouble.requests
            # As another class: after this one some versions of LiteLLM try again by themselves.
            raise httpx.NetworkError(str(error), request=request) from error
        headers = [(k, v) for k, v in response.headers.raw if k.lower() not in _DECODED]
        return httpx.Response(
            response.status_code,
            headers=headers,
            content=received.body,
            request=request,
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


_DECODED = (b"content-encoding", b"content-length", b"transfer-encoding")


def _overlay(body: dict[str, JsonValue], native: dict[str, JsonValue]) -> None:
    """Put the server's own words over the translation of them."""
    for name in ("usage", "usageMetadata"):
        if isinstance(native.get(name), dict):
            body.pop("usage", None)
            body[name] = native[name]
    model = native.get("model") or native.get("modelVersion")
    body["model"] = model if isinstance(model, str) else ""
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    mark = native.get("stop_reason") or native.get("stopReason") or native.get("done_reason")
    listed = native.get("candidates") or native.get("choices")
    if not mark and isinstance(listed, list) and listed and isinstance(listed[0], dict):
        mark = listed[0].get("finishReason") or listed[0].get("finish_reason")
    if isinstance(choice, dict) and isinstance(mark, str):
        choice["finish_reason"] = mark


def _name(error: Exception) -> tuple[str, str, int]:
    """Return a word for what happened, the words for it, and how many requests went out."""
    text = str(error) or type(error).__name__
    match error:
        case httpx.ConnectTimeout():
            return "connect-timeout", text, 0
        case httpx.ConnectError():
            refused = "refused" in text.lower() or "all connection attempts" in text.lower()
            return "connection-refused" if refused else "connect-failed", text, 0
        case httpx.UnsupportedProtocol():
            return "bad-address", text, 0
        case httpx.TimeoutException():
            return "timeout", text, 1
        case httpx.RemoteProtocolError() if "without sending" in text:
            return "no-response", text, 1
        case httpx.RemoteProtocolError():
            cut = "incomplete" in text or "peer closed" in text
            return "body-cut" if cut else "protocol-error", text, 1
        case httpx.DecodingError():
            return "bad-body", text, 1
        case BodyTooLong():
            return "body-too-long", text, 1
        case _:
            return "connection-reset", text, 1


def _is_json(received: Received) -> bool:
    try:
        parse(received.body)
    except ValueError:
        return False
    return True
