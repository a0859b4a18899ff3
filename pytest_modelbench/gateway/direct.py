"""Servers that speak OpenAI's API, spoken directly: the body is kept as it came."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl

import aiohttp
from pydantic import JsonValue

from pytest_modelbench.gateway.prices import own_server
from pytest_modelbench.gateway.received import BodyTooLong, Received
from pytest_modelbench.gateway.replies import Exchange
from pytest_modelbench.gateway.upstream import Call, Target

CONNECT_SECONDS = 20.0
IDLE_SECONDS = 4.0
"""A connection that was idle for longer is not used again: many servers close it after five."""

HEADER_BYTES = 65536

UNSENT_PARAMS = frozenset(
    {"timeout", "stream", "stream_options", "extra_body", "extra_headers", "n"}
)
"""Parameters of a candidate that stand in no request's body as they are."""


class Connections:
    """The two HTTP sessions of the process: one for own servers, one for the outside."""

    def __init__(self) -> None:
        self._sessions: dict[bool, aiohttp.ClientSession] = {}

    def to(self, api_base: str) -> aiohttp.ClientSession:
        """Return the session for an address; call in the event loop."""
        own = own_server(api_base)
        session = self._sessions.get(own)
        if session is None:
            session = self._sessions[own] = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                # One deadline for all of a request is kept outside, and no other.
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
                # A proxy of the environment is for the outside, never for one's own servers.
                trust_env=not own,
                max_line_size=HEADER_BYTES,
                max_field_size=HEADER_BYTES,
            )
        return session

    async def close(self) -> None:
        """Close every connection."""
        for session in self._sessions.values():
            await session.close()


class Direct:
    """The upstream of one OpenAI-compatible server."""

    def __init__(self, target: Target, connections: Connections) -> None:
        self.problem = target.problem
        self.asks_for = target.model
        self.reasoning_beside = target.provider == "xai"
        self._target = target
        self._session = connections.to(target.api_base)
        self._url = f"{target.api_base}/chat/completions"

    async def prepare(self) -> None:
        """Do nothing: the client is there."""

    async def send(self, call: Call) -> Exchange:
        """Make one request and read its reply to the end, in one deadline for all of it."""
        headers = {"content-type": "application/json", "accept-encoding": "identity"}
        if self._target.key is not None:
            headers["authorization"] = f"Bearer {self._target.key}"
        body = json.dumps(self._body(call)).encode()
        return await post(self._session, self._url, call, headers, body)

    async def close(self) -> None:
        """Do nothing: the connections are shared."""

    def _body(self, call: Call) -> dict[str, JsonValue]:
        params = {name: value for name, value in call.params.items() if name not in UNSENT_PARAMS}
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


async def post(
    session: aiohttp.ClientSession, url: str, call: Call, headers: dict[str, str], body: bytes
) -> Exchange:
    """Send the body of a call and read the reply to its end, in one deadline for all of it.

    The call's ``extra_headers`` go before ``headers``.
    """
    extra = call.params.get("extra_headers")
    if isinstance(extra, dict):
        headers = headers | {str(name).lower(): str(value) for name, value in extra.items()}
    received = Received()
    try:
        async with (
            asyncio.timeout(call.seconds),
            session.post(url, data=body, headers=headers, allow_redirects=False) as response,
        ):
            headers_sent = response.headers.items()
            await received.read(response.status, headers_sent, response.content.iter_any())
    except TimeoutError:
        return received.lost("timeout", f"no whole reply in {call.seconds:g} s")
    except BodyTooLong as error:
        return received.lost("body-too-long", str(error))
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return received.lost(*_name(error))
    return received.whole()


def _name(error: Exception) -> tuple[str, str, int]:
    """Return a word for what happened, the words for it, and how many requests went out."""
    text = str(error) or type(error).__name__
    match error:
        case aiohttp.InvalidURL():
            return "bad-address", text, 0
        case aiohttp.ConnectionTimeoutError():
            return "connect-timeout", text, 0
        case aiohttp.ClientConnectorDNSError():
            return "unknown-host", text, 0
        case aiohttp.ClientSSLError() | aiohttp.ClientConnectorCertificateError() | ssl.SSLError():
            return "tls-error", text, 0
        case aiohttp.ClientConnectorError():
            cause = error.os_error
            if isinstance(cause, socket.gaierror):
                return "unknown-host", text, 0
            refused = isinstance(cause, ConnectionRefusedError)
            return "connection-refused" if refused else "connect-failed", text, 0
        case aiohttp.ServerDisconnectedError():
            return "no-response", text, 1
        case aiohttp.ClientPayloadError():
            cut = "not enough data" in text.lower() or "not completed" in text.lower()
            reset = isinstance(error.__cause__, ConnectionError) or "reset by peer" in text
            return "connection-reset" if reset else "body-cut" if cut else "bad-body", text, 1
        case aiohttp.ClientResponseError():
            return "protocol-error", text, 1
        case ValueError():
            return "bad-request-made", text, 0
        case _:
            return "connection-reset", text, 1
