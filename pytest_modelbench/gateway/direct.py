"""Servers that speak OpenAI's API, spoken directly: the body is kept as it came."""

from __future__ import annotations

import asyncio
import json
import ssl

import httpx
from pydantic import JsonValue

from pytest_modelbench.gateway.prices import own_server
from pytest_modelbench.gateway.replies import Exchange
from pytest_modelbench.gateway.upstream import Call, Target

BODY_BYTES = 64 * 2**20
CONNECT_SECONDS = 20.0

_NOT_SENT = {"timeout", "stream", "stream_options", "extra_body", "extra_headers", "n"}


class Connections:
    """The two HTTP clients of the process: one for own servers, one for the outside."""

    def __init__(self) -> None:
        self._clients: dict[bool, httpx.AsyncClient] = {}

    def to(self, api_base: str) -> httpx.AsyncClient:
        """Return the client for an address; the first one costs some milliseconds."""
        own = own_server(api_base)
        client = self._clients.get(own)
        if client is None:
            client = self._clients[own] = httpx.AsyncClient(
                # A proxy of the environment is for the outside, never for one's own servers.
                trust_env=not own,
                verify=ssl.create_default_context(),
                timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=256),
            )
        return client

    async def close(self) -> None:
        """Close every connection."""
        for client in self._clients.values():
            await client.aclose()


class Direct:
    """The upstream of one OpenAI-compatible server."""

    def __init__(self, target: Target, connections: Connections) -> None:
        self.problem = target.problem
        self.asks_for = target.model
        self.reasoning_beside = target.provider == "xai"
        self._target = target
        self._client = connections.to(target.api_base)
        self._url = f"{target.api_base}/chat/completions"

    async def prepare(self) -> None:
        """Do nothing: the client is there."""

    async def send(self, call: Call) -> Exchange:
        """Make one request and read its reply to the end, in one deadline for all of it."""
        body = json.dumps(self._body(call)).encode()
        headers = {"content-type": "application/json", "accept-encoding": "identity"}
        if self._target.key is not None:
            headers["authorization"] = f"Bearer {self._target.key}"
        extra = call.params.get("extra_headers")
        if isinstance(extra, dict):
            headers |= {str(name).lower(): str(value) for name, value in extra.items()}
        received = Received()
        try:
            async with (
                asyncio.timeout(call.seconds),
                self._client.stream("POST", self._url, content=body, headers=headers) as response,
            ):
                await received.read(response)
        except TimeoutError:
            return received.lost("timeout", f"no whole reply in {call.seconds:g} s")
        except httpx.HTTPError as error:
            return received.failed(error)
        except httpx.InvalidURL as error:
            return Exchange(error="bad-address", error_text=str(error), requests=0)
        return received.whole()

    async def close(self) -> None:
        """Do nothing: the connections are shared."""

    def _body(self, call: Call) -> dict[str, JsonValue]:
        params = {name: value for name, value in call.params.items() if name not in _NOT_SENT}
        body: dict[str, JsonValue] = {"model": self._target.model, "messages": call.messages}
        body |= params
        if call.tools:
            body["tools"] = call.tools
        if call.stream:
            body["stream"] = True
            options = call.params.get("stream_options", {"include_usage": True})
            if options is not None:
                body["stream_options"] = options
        if self._target.api_base.startswith("https://api.openai.com/") and "max_tokens" in body:
            # Its newer models refuse the old name, and all of them know the new one.
            body.setdefault("max_completion_tokens", body.pop("max_tokens"))
        extra = call.params.get("extra_body")
        return body | extra if isinstance(extra, dict) else body


class Received:
    """What has arrived of one response, kept even when its end never comes."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.parts: list[bytes] = []

    async def read(self, response: httpx.Response) -> None:
        """Read status, headers and body."""
        self.status = response.status_code
        self.headers = {name.lower(): value for name, value in response.headers.items()}
        size = 0
        async for part in response.aiter_bytes():
            self.parts.append(part)
            size += len(part)
            if size > BODY_BYTES:
                raise httpx.ReadError(f"the body is longer than {BODY_BYTES} bytes")

    def whole(self) -> Exchange:
        """Return an exchange that came to its end."""
        return Exchange(self.status, self.headers, b"".join(self.parts))

    def lost(self, error: str, text: str, requests: int = 1) -> Exchange:
        """Return an exchange that did not, with what there is of it."""
        return Exchange(self.status, self.headers, b"".join(self.parts), error, text, requests)

    def failed(self, error: httpx.HTTPError) -> Exchange:
        """Name what happened to the connection."""
        text = str(error) or type(error).__name__
        if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)):
            return self.lost(_connect_error(error), text, requests=0)
        if isinstance(error, httpx.UnsupportedProtocol):
            return self.lost("bad-address", text, requests=0)
        if isinstance(error, httpx.RemoteProtocolError):
            if "without sending" in text:
                return self.lost("no-response", text)
            cut = "incomplete" in text or "peer closed" in text
            return self.lost("body-cut" if cut else "protocol-error", text)
        if isinstance(error, httpx.TimeoutException):
            return self.lost("timeout", text)
        if isinstance(error, httpx.DecodingError):
            return self.lost("body-not-decodable", text)
        return self.lost("connection-reset", text)


def _connect_error(error: httpx.HTTPError) -> str:
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ConnectionRefusedError):
            return "connection-refused"
        if isinstance(seen, ssl.SSLError):
            return "tls-error"
        if isinstance(seen, OSError) and "name" in str(seen).lower() and seen.errno in (-2, -3, -5):
            return "unknown-host"
        seen = seen.__cause__ or seen.__context__
    text = str(error)
    if "111" in text or "refused" in text.lower():
        return "connection-refused"
    if isinstance(error, httpx.ConnectTimeout):
        return "connect-timeout"
    return "connect-failed"
