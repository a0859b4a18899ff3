"""Where the gateway is, and what opens it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Address:
    """What a worker needs to reach the gateway; travels in ``workerinput``."""

    socket_path: str
    secret: str
