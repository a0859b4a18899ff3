"""How long the gateway waits, and how much of a usage window it lets be used."""

from __future__ import annotations

from pydantic import Field

from pytest_modelbench.records import Declared


class Patience(Declared):
    """How long a call is tried before it is a fault: ``[gateway]`` of modelbench.toml.

    ``retries`` counts the tries after the first. ``max_wait`` bounds what one call may wait for a
    server that is limiting, loading or failing; ``call_seconds`` one request from its start to the
    last byte of its reply, unless the candidate's ``params`` have a ``timeout``. In seconds.

    ``usage_pause_threshold`` is the share of a usage window at which no new cell is admitted,
    whoever used it; ``usage_allowance`` the share of any window that one run may use itself.
    """

    retries: int = Field(default=4, ge=0)
    max_wait: float = Field(default=300.0, ge=0)
    call_seconds: float = Field(default=600.0, gt=0)
    usage_pause_threshold: float = Field(default=0.8, gt=0, le=1)
    usage_allowance: float | None = Field(default=None, gt=0, le=1)
