"""A worker's side of the gateway: grants, and the calls made on them. Standard library only."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple
from urllib.parse import quote

from pydantic import JsonValue, ValidationError

from pytest_modelbench.errors import Fault
from pytest_modelbench.gateway.replies import Reply
from pytest_modelbench.gateway.windows import Reading
from pytest_modelbench.gateway.wire import FAILURE, Ended, Entry, GrantRequest
from pytest_modelbench.records import Limits, Role, Usage

CONTROL_SECONDS = 60.0
BEGIN_TRIES = 8
HELD = "held"
"""A cell did not begin, for what it waits for takes longer; it is to be asked for again."""


class SessionEnd(NamedTuple):
    """What a closed session leaves: the transcript is gzip of JSON lines."""

    usage: Usage
    held_seconds: float
    transcript: bytes
    served_model: str


class GatewayClient:
    """Opens sessions at the gateway. Cheap: it holds an address and no connection."""

    def __init__(self, socket_path: str, secret: str) -> None:
        self._socket_path = socket_path
        self._secret = secret

    @property
    def socket_path(self) -> str:
        """Return where the gateway listens; a session's token is needed there."""
        return self._socket_path

    def grant(
        self,
        attempt_id: str,
        candidate_name: str,
        role: Role = Role.CANDIDATE,
        case_id: str = "",
        repeat: int = 1,
        limits: Limits | None = None,
        pool: Limits | None = None,
    ) -> Session:
        """Open a session for one role of one attempt.

        ``pool`` are the tokens and usd of the whole attempt, of which all roles' grants are parts:
        a part with ``limits`` has those set aside until it is closed, and the rest of it goes back.

        Raises Fault: ``candidate-stopped`` (permanent) where the candidate was stopped, ``gateway``
        where the gateway cannot be reached or knows no such candidate.
        """
        wanted = GrantRequest(
            attempt=attempt_id,
            candidate=candidate_name,
            role=role,
            case=case_id,
            repeat=repeat,
            limits=limits or Limits(),
            pool=pool,
        )
        answer = self._control("POST", "/control/grants", wanted.model_dump_json().encode())
        return Session(self._socket_path, str(_body(answer)["token"]), self)

    def begin(
        self,
        candidate_name: str,
        patience: float | None = None,
        on_wait: Callable[[str, float], None] = lambda why, until: None,
    ) -> Begun:
        """Wait until a cell of a candidate may begin; hold what is returned until it has ended.

        ``patience`` bounds, in seconds, a wait for something whose end is known, a usage window's;
        a Fault ``held`` says that it was longer. ``on_wait`` is told why it waits and until when.
        Raises Fault with ``permanent`` where it may not begin in this run: ``budget``,
        ``candidate-stopped``, ``server-not-ready``; and ``gateway`` where nobody answers.
        """
        for tries in range(1, BEGIN_TRIES + 1):
            begun = Begun(self._socket_path, self._secret, candidate_name)
            try:
                begun.wait(patience, on_wait)
            except _Gone as error:
                # It was killed, and is started again; what it knew of waiting cells is this.
                begun.close()
                if tries == BEGIN_TRIES:
                    what = f"the gateway ended while a cell waited: {error}"
                    raise Fault("gateway", _failure(self._socket_path) or what) from error
                time.sleep(0.1 * tries)
            except BaseException:
                begun.close()
                raise
            else:
                return begun
        raise AssertionError("the loop returns or raises")

    def read_windows(self, candidate_name: str, readings: Sequence[Reading]) -> None:
        """Tell the usage windows that an agent program has told of its provider."""
        body = json.dumps([reading.model_dump() for reading in readings]).encode()
        path = f"/control/windows?candidate={quote(candidate_name, safe='')}"
        _body(self._control("POST", path, body))

    def status(self) -> dict[str, JsonValue]:
        """Return who is ``stopped``, ``waiting``, ``failing``, and why; ``spent``; the ``pid``."""
        return _body(self._control("GET", "/control/status"))

    def stop(self, candidate_name: str, reason: str, text: str = "") -> None:
        """Stop a candidate everywhere: its calls are answered at once with a permanent fault."""
        wanted = {"candidate": candidate_name, "reason": reason, "text": text}
        _body(self._control("POST", "/control/stop", json.dumps(wanted).encode()))

    def _control(self, method: str, path: str, body: bytes | None = None) -> _Answer:
        return _request(
            self._socket_path, method, path, self._secret, body, timeout=CONTROL_SECONDS
        )


class Session:
    """The calls of one role of one attempt.

    ``token`` is the key for a program that speaks OpenAI's API to the gateway's socket.
    ``held_seconds`` is what the gateway held so far: queue, waits, tries that were lost. It is no
    working time of the candidate.
    """

    def __init__(self, socket_path: str, token: str, client: GatewayClient) -> None:
        self._socket_path = socket_path
        self._client = client
        self.token = token
        self.held_seconds = 0.0
        self.ended: Ended | None = None

    def chat(
        self,
        messages: Sequence[JsonValue],
        tools: Sequence[JsonValue] | None = None,
        params: Mapping[str, JsonValue] | None = None,
        *,
        working_left: float | None = None,
        wall_left: float | None = None,
    ) -> Reply:
        """Make one call and return its reply: an answer, tool calls, or a failed result.

        Messages, tools and parameters are those of OpenAI's API; the candidate's own parameters go
        before them. ``working_left`` and ``wall_left`` are the seconds that the attempt still has:
        when the working time ends during the call, the reply is a failed result ``time-limit``.
        Raises Fault for every fault; ``permanent`` when its candidate is stopped.
        """
        wanted: dict[str, JsonValue] = {**(params or {}), "messages": list(messages)}
        if tools:
            wanted["tools"] = list(tools)
        wanted["modelbench"] = {"working_left": working_left, "wall_left": wall_left}
        answer = _request(
            self._socket_path,
            "POST",
            "/v1/chat/completions",
            self.token,
            json.dumps(wanted).encode(),
        )
        reply = _reply(answer)
        self.held_seconds += reply.held_seconds
        if reply.faulty:
            raise _fault(reply)
        return reply

    def state(self) -> Ended:
        """Return usage and holds so far."""
        body = _body(self._client._control("GET", f"/control/grants/{quote(self.token)}"))
        return Ended.model_validate(body)

    def close(self) -> SessionEnd:
        """Close the session; return what it used and its transcript. ``ended`` has the rest."""
        answer = self._client._control("DELETE", f"/control/grants/{quote(self.token)}")
        if answer.status != 200:
            raise _fault(_reply(answer))
        self.ended = ended = Ended.model_validate_json(answer.grant)
        return SessionEnd(ended.usage, ended.held_seconds, answer.body, ended.served_model)

    def __enter__(self) -> Session:
        """Return the open session."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it, unless that has been done."""
        if self.ended is None:
            self.close()


class Begun:
    """A cell that waits to begin, or has begun: a connection that the gateway holds open."""

    def __init__(self, socket_path: str, secret: str, candidate_name: str) -> None:
        self._connection = _Connection(socket_path, None)
        self._path = f"/control/cells?candidate={quote(candidate_name, safe='')}"
        self._secret = secret
        self._response: http.client.HTTPResponse | None = None

    def wait(
        self,
        patience: float | None = None,
        on_wait: Callable[[str, float], None] = lambda why, until: None,
    ) -> None:
        """Wait until the cell may begin. Raises Fault where it may not, _Gone where nobody says."""
        why = ""
        try:
            headers = {"authorization": f"Bearer {self._secret}"}
            self._connection.request("POST", self._path, headers=headers)
            self._response = self._connection.getresponse()
            while line := self._response.readline():
                entry = Entry.model_validate_json(line)
                if entry.refused:
                    raise Fault(entry.refused, entry.text, permanent=entry.permanent)
                if not entry.waits:
                    return
                why = entry.waits
                on_wait(why, entry.until)
                if self._connection.sock is not None:
                    self._connection.sock.settimeout(patience if entry.until else None)
        except TimeoutError:
            raise Fault(HELD, why) from None
        except (OSError, http.client.HTTPException, ValidationError) as error:
            raise _Gone(f"{type(error).__name__}: {error}") from error
        raise _Gone("it said nothing more")

    def close(self) -> None:
        """Say that the cell has ended."""
        if self._response is not None:
            self._response.close()
        self._connection.close()

    def __enter__(self) -> Begun:
        """Return the begun cell."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Say that it has ended."""
        self.close()


class _Gone(Exception):
    """The gateway went away before it had said whether a cell may begin."""


class _Answer(NamedTuple):
    status: int
    body: bytes
    grant: str


class _Connection(http.client.HTTPConnection):
    """An HTTP connection over a Unix socket."""

    def __init__(self, socket_path: str, timeout: float | None) -> None:
        super().__init__("gateway", timeout=timeout)
        self._socket_path = socket_path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._socket_path)


def _request(
    socket_path: str,
    method: str,
    path: str,
    token: str,
    body: bytes | None = None,
    timeout: float | None = None,
) -> _Answer:
    """Make one request on a connection of its own: one kept over a restart would be a dead one."""
    connection = _Connection(socket_path, timeout)
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        grant = response.getheader("x-modelbench-grant") or ""
        return _Answer(response.status, response.read(), grant)
    except (OSError, http.client.HTTPException) as error:
        what = f"the gateway did not answer ({type(error).__name__}: {error})"
        raise Fault("gateway", _failure(socket_path) or what) from error
    finally:
        connection.close()


def _failure(socket_path: str) -> str:
    """Return why there is no gateway any more; '' where there is one, or is to be one."""
    try:
        return Path(socket_path).with_name(FAILURE).read_text(encoding="utf-8")
    except OSError:
        return ""


def _body(answer: _Answer) -> dict[str, JsonValue]:
    body = json.loads(answer.body) if answer.status == 200 else None
    if not isinstance(body, dict):
        raise _fault(_reply(answer))
    return body


def _reply(answer: _Answer) -> Reply:
    """Take the reply out of an answer, wherever its status puts it."""
    try:
        body = json.loads(answer.body)
        place = body if answer.status == 200 else body["error"]
        return Reply.model_validate(place["modelbench"])
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        words = " ".join(answer.body[:200].decode("utf-8", "replace").split())
        raise Fault(
            "gateway", f"an answer of status {answer.status} that cannot be read: {words}"
        ) from error


def _fault(reply: Reply) -> Fault:
    status = "" if reply.status is None else f"status {reply.status}: "
    return Fault(
        reply.reason,
        f"{status}{reply.quote}".strip(),
        status=reply.status,
        permanent=reply.outcome == "fault-permanent",
    )
