"""What has arrived of one response, kept even when its end never comes."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable

from pytest_modelbench.gateway.replies import Exchange

BODY_BYTES = 64 * 2**20
"""A longer body is no reply of a model; it is given up rather than kept."""


class BodyTooLong(Exception):
    """Raised by ``read`` past ``BODY_BYTES``."""


class Received:
    """Status, headers and body so far, below any parsing of them."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.parts: list[bytes] = []

    @property
    def body(self) -> bytes:
        """Return the bytes so far."""
        return b"".join(self.parts)

    async def read(
        self, status: int, headers: Iterable[tuple[str, str]], parts: AsyncIterable[bytes]
    ) -> None:
        """Keep status and headers, then read the body to its end."""
        self.status = status
        self.headers = {name.lower(): value for name, value in headers}
        size = 0
        async for part in parts:
            self.parts.append(part)
            size += len(part)
            if size > BODY_BYTES:
                raise BodyTooLong(f"the body is longer than {BODY_BYTES} bytes")

    def whole(self, requests: int = 1) -> Exchange:
        """Return an exchange that came to its end."""
        return Exchange(self.status, self.headers, self.body, requests=requests)

    def lost(self, error: str, text: str, requests: int = 1) -> Exchange:
        """Return an exchange that did not, with what there is of it."""
        return Exchange(self.status, self.headers, self.body, error, text, requests)
