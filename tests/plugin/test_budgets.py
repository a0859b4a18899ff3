"""What a run may cost: budgets, usage windows, and one place that serves several models in turn."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import ModelServer
    from tests.plugin.conftest import Model, Project

Servers = Callable[..., "ModelServer"]
PRICE = {"input": 10_000.0, "output": 0.0}  # a dollar for each cell of 100 tokens


@pytest.mark.parametrize(
    ("kind", "workers"), [("option", "2"), ("tokens", "0"), ("candidate", "0")]
)
def test_a_spent_budget_begins_no_more_cells_and_the_next_run_goes_on(
    project: Project, model: Model, model_server: Servers, kind: str, workers: str
) -> None:
    keys: dict[str, Any] = {"budget_usd": 1.5} if kind == "candidate" else {}
    project.certified("one", "two").scripted("free")
    project.served("paid", model_server(model).url, price=PRICE, **keys)
    budget = {
        "option": ("--modelbench-budget", "1.5"),
        "tokens": ("--modelbench-budget-tokens", "150"),
        "candidate": (),
    }[kind]
    names = "paid,free" if kind == "candidate" else "paid"
    args = ("--models", names, "--modelbench-repeats", "3", "-n", workers)
    ran = project.run(*args, *budget)
    assert ran.exit == 1, ran.out
    # Two dollars are spent when the first two have ended; as many more may be under way by then.
    done = len(project.verdicts("paid"))
    assert 2 <= done <= 2 + max(0, int(workers) - 1)
    assert len(model.asked) == done
    skipped = [one for found in ran.junit.values() for one in found if one.outcome == "skipped"]
    assert len(skipped) == 6 - done
    assert all("not run: the budget of " in one.message for one in skipped)
    assert project.faulted("paid") == {}
    if kind == "candidate":
        assert len(project.verdicts("free")) == 6
    project.candidate(
        "paid", **{k: v for k, v in project.candidates["paid"].items() if k not in keys}
    )
    again = project.run(*args)
    assert again.exit == 0, again.out
    assert len(model.asked) == 6
    assert project.verdicts("paid") == {cell: [True] for cell in project.cells("paid", 3)}


def test_a_bad_budget_is_a_usage_error(project: Project) -> None:
    ran = project.certified("one").run("--models", "seed", "--modelbench-budget", "-1")
    assert ran.exit == 4
    assert "--modelbench-budget" in ran.out


@pytest.mark.parametrize(("workers", "repeats"), [("0", 1), ("2", 2)])
def test_a_usage_window_holds_cells_until_its_reset_and_nothing_fails(
    project: Project, model: Model, model_server: Servers, workers: str, repeats: int
) -> None:
    """A window of seconds that one request fills: the cells after it wait for its reset."""
    project.certified("one", "two").scripted("free")
    windows = [{"hours": 6 / 3600, "requests": 1}]
    project.served("limited", model_server(model).url, windows=windows)
    args = ("--modelbench-repeats", str(repeats), "-n", workers)
    ran = project.run("--models", "limited,free" if workers != "0" else "limited", *args)
    assert ran.exit == 0, ran.out
    assert ran.outcomes() == {"passed": 4 * repeats if workers != "0" else 2}
    assert project.faulted("limited") == {}
    said = re.findall(r"modelbench limited waits: \d+% of its window of .* is used; new", ran.out)
    assert said, ran.out
    records = project.tries("limited")
    assert len(records) == 2 * repeats
    begun = [datetime.fromisoformat(record.started) for record in records]
    assert (begun[-1] - begun[0]).total_seconds() >= 5.9, "the wait is before the attempt"


SERVE = """
import http.server, json, sys
port, model = int(sys.argv[1]), sys.argv[2]
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def answer(self, body):
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    def do_GET(self):
        self.answer({"data": [{"id": model}]})
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        prompt = json.dumps(asked["messages"])
        case = prompt.partition("Write ")[2].partition(" into answer.txt")[0].split()[-1]
        calls = [("write_file", {"path": "answer.txt", "content": case + "\\n"}), ("finish", {})]
        message = {"role": "assistant", "content": None, "tool_calls": [
            {"id": f"call_{n}", "type": "function",
             "function": {"name": name, "arguments": json.dumps(arguments)}}
            for n, (name, arguments) in enumerate(calls)]}
        self.answer({"model": model, "choices": [{"index": 0, "message": message}]})
print("serves", model, flush=True)
http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_one_place_serves_three_models_by_one_command(
    project: Project, quiet_port: int, workers: str
) -> None:
    project.certified("one", "two")
    project.write("serve.py", SERVE)
    start = f"test {{model}} != b && {sys.executable} serve.py {{port}} {{model}}"
    project.declare("servers.gpu", start=start)
    for name in ("a", "b", "c"):
        base = f"http://127.0.0.1:{quiet_port}/v1"
        project.candidate(name, model=f"openai/{name}", api_base=base, server="gpu")
    ran = project.run("--models", "a,b,c", "--modelbench-repeats", "2", "-n", workers)
    # b cannot be served, and that stops nobody else.
    assert ran.exit == 1, ran.out
    for name in ("a", "c"):
        assert project.verdicts(name) == {cell: [True] for cell in project.cells(name, 2)}
    assert project.verdicts("b") == {}
    assert set(project.faulted("b").values()) == {"server-not-ready"}
    (log,) = (project.results / ".logs").glob("*/gpu.log")
    served = [line for line in log.read_text().splitlines() if line.startswith("serves")]
    assert served == ["serves a", "serves c"], "each model is loaded once"
    assert project.processes() == [], "no server is left"


def test_a_server_is_stopped_when_its_run_is_killed(project: Project, quiet_port: int) -> None:
    project.certified("one")
    # It answers nobody who asks it to work, so the run is killed while its cell is under way.
    project.write("serve.py", SERVE.replace("prompt = ", "import time; time.sleep(600); prompt = "))
    project.declare("servers.gpu", start=f"{sys.executable} serve.py {{port}} {{model}}")
    base = f"http://127.0.0.1:{quiet_port}/v1"
    project.candidate("a", model="openai/a", api_base=base, server="gpu")
    run = project.start("--models", "a", "-n", "1")
    logs = project.results / ".logs"
    run.until(lambda: any("serves a" in log.read_text() for log in logs.glob("*/gpu.log")))
    run.kill()
    deadline = time.monotonic() + 120
    while project.processes() and time.monotonic() < deadline:
        time.sleep(0.05)  # they are nobody's children any more
    assert project.processes() == []
