"""A candidate that floods the gateway: it is not reached, or refuses, and others go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_modelbench.gateway.client import GatewayClient
from pytest_modelbench.gateway.process import GatewayProcess
from pytest_modelbench.records import Candidate, Limits, Role
from pytest_modelbench.worlds.box import TEMPORARY, BoxSpec
from pytest_modelbench.worlds.levels import choose, probe

LEVELS = [level.name for level in probe() if level.available]
BODY = '{"model": "m", "messages": [{"role": "user", "content": "hello"}]}'

FLOOD = """
import socket, sys
path, token = sys.stdin.read().split()
answers, refused = set(), 0
def ask(data):
    global refused
    try:
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(20)
            s.connect(path)
            s.sendall(data)
            answers.add((s.recv(64).decode("latin-1").split(" ") + ["", ""])[1])
    except OSError as error:
        refused += 1
body = BODY.encode()
for n in range(150):
    head = "POST /v1/chat/completions HTTP/1.1\\r\\nHost: x\\r\\n"
    head += "Authorization: Bearer %s\\r\\nContent-Type: application/json\\r\\n" % token
    ask((head + "Content-Length: %d\\r\\n\\r\\n" % len(body)).encode() + body)
for n in range(50):
    ask(b"\\xff\\x00garbage" * 200 + b"\\r\\n\\r\\n")
print(sorted(answers), refused)
""".replace("BODY", repr(BODY))


@pytest.mark.parametrize("level", LEVELS)
def test_a_flood_reaches_nothing_and_costs_others_nothing(level: str, tmp_path: Path) -> None:
    script = tmp_path / "script.toml"
    script.write_text('[[default.steps]]\ncontent = "Hello."\n')
    candidate = Candidate(name="local", agent="scripted", script=str(script))
    with GatewayProcess.start([candidate]) as gateway:
        address = gateway.address
        client = GatewayClient(address.socket_path, address.secret)
        session = client.grant("a1", "local", Role.CANDIDATE, "case", 1, Limits())
        done = choose(level).run(
            ["python3", "-c", FLOOD],
            BoxSpec(workdir=TEMPORARY),
            # Even told where it is: a guess at the path is not what protects it.
            stdin=f"{address.socket_path} guessed-token".encode(),
            seconds=120,
        )
        said = done.output.decode()
        assert done.status == 0, said
        reply = session.chat([{"role": "user", "content": "hello"}])
        assert reply.answer == "Hello."
        ended = session.close()
        assert ended.usage.requests == 1
        assert gateway.restarts == 0
    if level == "portable":
        # It gets through to the socket there, and no further (the positive control).
        assert "'401'" in said
        assert "'200'" not in said
    else:
        assert said == "[] 200\n"
