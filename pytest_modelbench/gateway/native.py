"""Servers that speak a program's own API: its request goes through as it was made.

So does the reply. Of the request, the model is pinned, and what the candidate declares is laid over
it; nothing else is touched.
"""

from __future__ import annotations

import json

from pydantic import JsonValue

from pytest_modelbench.gateway.direct import UNSENT_PARAMS, Connections, post
from pytest_modelbench.gateway.foreign import as_chat
from pytest_modelbench.gateway.replies import Exchange
from pytest_modelbench.gateway.upstream import Call, Target

PASSED_HEADERS = ("anthropic-version", "anthropic-beta", "openai-beta")
"""Headers of a program that are part of what it asks for."""

_NAMES = {
    "messages": {"max_completion_tokens": "max_tokens", "stop": "stop_sequences", "seed": ""},
    "responses": {
        "max_tokens": "max_output_tokens",
        "max_completion_tokens": "max_output_tokens",
        "reasoning_effort": "reasoning.effort",
        "seed": "",
    },
}
"""What chat's parameters are called in each API; "" where it has no such thing."""


class Native:
    """The upstream of one server for the requests of one API that it speaks itself."""

    def __init__(self, target: Target, wire: str, connections: Connections) -> None:
        self.problem = target.problem
        self.asks_for = target.model
        self.reasoning_beside = False
        self._target = target
        self._wire = wire
        base = target.api_base
        if target.provider == "anthropic":
            # As LiteLLM has it: the address is given without the version.
            base = base.removesuffix("/messages").removesuffix("/v1") + "/v1"
        self._url = f"{base}/{wire}"
        self._session = connections.to(base)

    async def prepare(self) -> None:
        """Do nothing: the client is there."""

    async def send(self, call: Call) -> Exchange:
        """Make one request as its program made it, and keep the reply as it came."""
        assert call.native is not None, "this way is for requests in the server's own words"
        headers = {"content-type": "application/json", "accept-encoding": "identity"}
        headers |= call.native.headers
        key = self._target.key
        if self._target.provider == "anthropic":
            headers.setdefault("anthropic-version", "2023-06-01")
            headers |= {} if key is None else {"x-api-key": key}
        elif key is not None:
            headers["authorization"] = f"Bearer {key}"
        body = json.dumps(self._body(call)).encode()
        exchange = await post(self._session, self._url, call, headers, body)
        return as_chat(exchange, self._wire)

    async def close(self) -> None:
        """Do nothing: the connections are shared."""

    def _body(self, call: Call) -> dict[str, JsonValue]:
        assert call.native is not None
        names = _NAMES[self._wire]
        body: dict[str, JsonValue] = {**call.native.body, "model": self._name()}
        for param, value in call.params.items():
            name, _, inner = names.get(param, param).partition(".")
            if param in UNSENT_PARAMS or not name:
                continue
            outer = body.get(name)
            known = outer if isinstance(outer, dict) else {}
            body[name] = {**known, inner: value} if inner else value
        extra = call.params.get("extra_body")
        return body | extra if isinstance(extra, dict) else body

    def _name(self) -> str:
        return self._target.model.removeprefix(f"{self._target.provider}/")
