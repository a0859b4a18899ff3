from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_modelbench.checks.observation import Observation, Row
from pytest_modelbench.cli import main
from pytest_modelbench.records import (
    AttemptRecord,
    Check,
    FaultRecord,
    Identity,
    Outcome,
    Role,
    Stage,
    Usage,
    Verdict,
)
from pytest_modelbench.report.attempt import render_attempt
from pytest_modelbench.store.evidence import Evidence
from pytest_modelbench.store.layout import results_file

ENTRIES: list[dict[str, Any]] = [
    {
        "at": 1.0,
        "kind": "request",
        "step": 1,
        "kept": 0,
        "messages": [
            {"role": "system", "content": "You are a programmer."},
            {"role": "user", "content": "Repair add."},
        ],
        "tools": [{"type": "function", "function": {"name": "read_file"}}],
        "params": {"temperature": 0.5},
    },
    {
        "at": 2.0,
        "kind": "reply",
        "step": 1,
        "try": 0,
        "status": 200,
        "usd": 0.0012,
        "reply": {
            "outcome": "tool-calls",
            "reasoning": "First look.",
            "tool_calls": [{"id": "c1", "name": "read_file", "raw": '{"path": "calc.py"}'}],
            "usage": {"input": 100, "cached": 60, "output": 7},
            "finish": "tool_calls",
        },
    },
    {
        "at": 3.0,
        "kind": "request",
        "step": 2,
        "kept": 2,
        "messages": [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c1", "function": {"name": "read_file", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "return a - b"},
        ],
        "tools": [],
        "params": {},
    },
    {
        "at": 4.0,
        "kind": "reply",
        "step": 2,
        "try": 0,
        "status": 503,
        "usd": None,
        "reply": {"outcome": "fault-transient", "reason": "server-error", "quote": "busy"},
    },
]


def _record(number: int, **given: Any) -> AttemptRecord:
    fields: dict[str, Any] = {
        "id": f"{number:04d}abcdef012345",
        "run": "run-1",
        "pack": "executor",
        "case": "fix-bug",
        "candidate": "local",
        "repeat": 1,
        "identity": Identity(task="t", check="c", candidate="m"),
        "started": f"2026-01-09T00:00:{number:02d}.000Z",
        "seconds": 2.0,
        "outcome": Outcome.UNSOLVED,
        "verdict": Verdict(
            passed=False,
            reward=0.0,
            reason="wrong",
            checks=(Check(name="test_add", passed=False, reason="assertion failed"),),
        ),
        "usage": {
            Role.CANDIDATE: Usage(
                requests=2,
                calls=2,
                input=100,
                cached=60,
                output=7,
                list_usd=0.0012,
                price="declared",
            )
        },
    }
    return AttemptRecord(**{**fields, **given})


Stored = Callable[..., Path]


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that folds nothing."""
    monkeypatch.setenv("COLUMNS", "250")


@pytest.fixture
def stored(tmp_path: Path) -> Stored:
    """A function that stores records, each with a transcript, and returns the results folder."""

    def put(*records: AttemptRecord, entries: list[dict[str, Any]] = ENTRIES) -> Path:
        raw = "".join(json.dumps(entry) + "\n" for entry in entries)
        name = Evidence(tmp_path).put(gzip.compress(raw.encode()))
        for record in records:
            whole = record.model_copy(update={"evidence": {"transcript": name}})
            path = results_file(tmp_path, record.pack, record.candidate, record.started, record.run)
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="ascii") as file:
                file.write(whole.to_line() + "\n")
        return tmp_path

    return put


def test_everything_that_was_said_is_shown_in_its_order(
    stored: Stored, capsys: pytest.CaptureFixture[str]
) -> None:
    results = stored(_record(1))
    assert main(["show", "0001", "--results", str(results)]) == 0
    text = capsys.readouterr().out
    wanted = [
        "attempt 0001abcdef012345   executor / fix-bug : local : 1",
        "tools on offer: read_file",
        'parameters: {"temperature": 0.5}',
        "You are a programmer.",
        "Repair add.",
        "First look.",
        "call c1: read_file",
        "path: calc.py",
        "= 100 in (60 cached) + 7 out · $0.0012 · finish tool_calls",
        "result of c1",
        "return a - b",
        "fault-transient: server-error (status 503)",
        "busy",
        "2 calls, 2 requests, 100 in (60 cached) + 7 out tokens, list price $0.0012 by declared",
        "NOT PASSED (wrong)   reward 0   trusted",
        "FAIL  test_add: assertion failed",
    ]
    flat = " ".join(text.split())
    places = [flat.find(" ".join(line.split())) for line in wanted]
    assert -1 not in places, wanted[places.index(-1)]
    assert places == sorted(places)
    # What the model said stands once: in its reply, and not again in the history.
    assert text.count("read_file") == 2


def test_a_cell_means_its_newest_attempt(
    stored: Stored, capsys: pytest.CaptureFixture[str]
) -> None:
    results = stored(_record(1), _record(3), _record(2))
    for name in (
        "fix-bug:local:1",
        "executor/fix-bug:local:1",
        "cases/executor/pack.toml::test_case[fix-bug:local:1]",
    ):
        assert main(["show", name, "--results", str(results)]) == 0
        assert "attempt 0003abcdef" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("000", "begins 2 attempts: 0001abcdef012345, 0002abcdef012345"),
        ("fix-bug:local:1", "name one: executor/fix-bug:local:1, other/fix-bug:local:1"),
        ("fix-bug:local:2", "no stored attempt is 'fix-bug:local:2'"),
    ],
)
def test_a_name_of_none_or_several_says_which_there_are(
    stored: Stored, capsys: pytest.CaptureFixture[str], name: str, said: str
) -> None:
    results = stored(_record(1), _record(2, pack="other"))
    assert main(["show", name, "--results", str(results)]) == 4
    assert said in capsys.readouterr().err


def test_a_regrade_shows_the_work_that_it_graded(
    stored: Stored, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = stored(_record(1))
    graded = _record(2, kind="regrade", grades="0001abcdef012345")
    path = results_file(results, "executor", "local", graded.started, "run-2")
    path.write_text(graded.to_line() + "\n", encoding="ascii")
    assert main(["show", "0002", "--results", str(results)]) == 0
    text = capsys.readouterr().out
    assert "a new grading of attempt 0001abcdef012345" in text
    assert "First look." in text


def test_what_a_failing_check_said_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may quote what is hidden, so it is evidence and no part of a line that is committed."""
    rows = (
        Row(
            name="test_add", outcome="failed", phase="call", text="assert 3 == 4\n  sk-" + "a" * 30
        ),
        Row(name="test_ok", outcome="passed", phase="call", text="never mind"),
    )
    seen = Observation(rows=rows).model_dump_json()
    record = _record(1, evidence={"observation": Evidence(tmp_path).put(seen.encode())})
    path = results_file(tmp_path, "executor", "local", record.started, "run-1")
    path.parent.mkdir(parents=True)
    path.write_text(record.to_line() + "\n", encoding="ascii")
    assert main(["show", "0001", "--results", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "FAIL  test_add: assertion failed\n│ assert 3 == 4\n│   " in text
    assert "never mind" not in text
    assert "aaaa" not in text
    assert main(["show", "0001", "--results", str(tmp_path), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["checks_said"]
    assert list(said) == ["test_add"]
    assert said["test_add"].startswith("assert 3 == 4\n")
    for blob in (tmp_path / ".evidence").glob("*/*"):
        blob.unlink()
    assert main(["show", "0001", "--results", str(tmp_path)]) == 0
    assert "FAIL  test_add: assertion failed\n" in capsys.readouterr().out


def test_what_a_benchmark_judged_and_what_its_reference_gives_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mail.csv").write_text("key,text,kind\nA-1,one,bill\n")
    main(["import", "mail.csv", "--id", "key", "--input", "text", "--expected", "kind=ci"])
    capsys.readouterr()
    seen = Observation(kind="benchmark", data={"answer": {"kind": "order", "why": "x" * 1500}})
    stored = Evidence(tmp_path / "results").put(seen.model_dump_json().encode())
    record = _record(1, pack="mail", case="A-1", evidence={"observation": stored})
    path = results_file(tmp_path / "results", "mail", "local", record.started, "run-1")
    path.parent.mkdir(parents=True)
    path.write_text(record.to_line() + "\n", encoding="ascii")
    assert main(["show", "0001"]) == 0
    text = capsys.readouterr().out
    assert 'what was judged\n│ {\n│   "answer": {\n│     "kind": "order",\n' in text
    assert "x… (1500 characters; --full shows them)" in text
    assert (
        '"answer": {\n│         "kind": "bill"\n' in text.partition("what the reference gives")[2]
    )
    assert main(["show", "0001", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["judged"]["answer"]["kind"] == "order"
    (tmp_path / "cases" / "mail" / "pack.toml").unlink()
    assert main(["show", "0001"]) == 0
    assert "what the reference gives" not in capsys.readouterr().out


def test_what_a_function_returned_is_shown() -> None:
    entry: dict[str, Any] = {"kind": "program", "version": "function", "argv": ["bots:solve"]}
    entry |= {"output": "", "returned": "a bill", "how": "returned"}
    text = "\n".join(render_attempt(_record(1), [entry]))
    assert "── the function ──" in text
    assert (
        "bots:solve\nwhat it returned\n│ a bill\nwhat it printed\n│ (nothing)\n= returned" in text
    )


def test_a_transcript_that_is_not_here_is_said(
    stored: Stored, capsys: pytest.CaptureFixture[str]
) -> None:
    results = stored(_record(1))
    for blob in (results / ".evidence").glob("*/*"):
        blob.unlink()
    assert main(["show", "0001", "--results", str(results)]) == 0
    text = capsys.readouterr().out
    assert "it is not committed" in text.replace("\n│ ", " ")
    assert "NOT PASSED" in text


def test_long_lines_are_folded_at_spaces() -> None:
    words = " ".join(f"word{n:02}" for n in range(20))
    fault = FaultRecord(kind="server-error", stage=Stage.WORK, text=f"    {words}\n{'x' * 130}")
    record = _record(1, outcome=Outcome.FAULT, verdict=None, fault=fault)
    lines = [line for line in render_attempt(record, [], width=60) if line.startswith("│")]
    assert lines == [
        "│     " + " ".join(f"word{n:02}" for n in range(7)),
        "│ " + " ".join(f"word{n:02}" for n in range(7, 15)),
        "│ " + " ".join(f"word{n:02}" for n in range(15, 20)),
        "│ " + "x" * 58,
        "│ " + "x" * 58,
        "│ " + "x" * 14,
    ]


HOSTILE = "\x1b[2J\x1b]0;owned\x07 \u202eevil\u2069 a\rb"


def test_hostile_text_moves_nothing_on_a_terminal() -> None:
    entries = json.loads(json.dumps(ENTRIES).replace("First look.", json.dumps(HOSTILE)[1:-1]))
    entries[1]["reply"]["tool_calls"][0]["name"] = HOSTILE
    entries[1]["reply"]["finish"] = HOSTILE
    entries[3]["reply"]["quote"] = HOSTILE
    entries[0]["tools"][0]["function"]["name"] = HOSTILE
    record = _record(1, candidate=HOSTILE, served_model=HOSTILE, detail=HOSTILE, note=HOSTILE)
    for utf8 in (True, False):
        lines = render_attempt(record, entries, utf8=utf8)
        assert len(lines) > 20
        assert all(line.isprintable() for line in lines)
        assert all("\u202e" not in line for line in lines)
        assert utf8 or all(line.isascii() for line in lines)


def test_long_messages_are_cut_unless_all_is_asked_for() -> None:
    entries = json.loads(json.dumps(ENTRIES))
    entries[0]["messages"][1]["content"] = "\n".join(f"line {n}" for n in range(100))
    short = render_attempt(_record(1), entries)
    assert "│ [60 lines left out; --full shows them]" in short
    assert "│ line 19" in short
    assert "│ line 20" not in short
    assert "│ line 80" in short
    whole = render_attempt(_record(1), entries, full=True)
    assert [line for line in whole if "line " in line] == [f"│ line {n}" for n in range(100)]


def test_keys_that_a_candidate_met_are_masked_and_nothing_else(
    stored: Stored, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = (data / "field-reports" / "files" / "FR38-tool-output.txt").read_text()
    entries = json.loads(json.dumps(ENTRIES))
    entries[2]["messages"][1]["content"] = output
    results = stored(_record(1), entries=entries)
    secrets = [
        "EXAMPLE0000000000000000000000000000",
        "AIzaSyEXAMPLE00000000000000000000000000",
        "AKIAEXAMPLE000000000",
        "EXAMPLE-bearer-0000000000",
        "EXAMPLE-x-0000000000",
        "EXAMPLE-query-0000",
    ]
    assert all(secret in output for secret in secrets)
    for form in ([], ["--json"]):
        assert main(["show", "0001", "--results", str(results), *form]) == 0
        text = capsys.readouterr().out
        assert not [secret for secret in secrets if secret in text]
        assert "LANG=C.UTF-8" in text
        assert "http://127.0.0.1:9/?key=[masked]" in text
        assert ("6 keys masked" in text) if not form else json.loads(text)["masked"] == 6


def test_json_is_the_record_and_the_transcript(
    stored: Stored, capsys: pytest.CaptureFixture[str]
) -> None:
    results = stored(_record(1))
    assert main(["show", "0001", "--results", str(results), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["transcript"] == ENTRIES
    assert shown["record"]["id"] == "0001abcdef012345"
    assert AttemptRecord.model_validate(shown["record"]).usage[Role.CANDIDATE].input == 100


@pytest.mark.parametrize("command", ["show", "report"])
def test_the_command_is_cheap_to_start(command: str) -> None:
    others = "'pydantic', 'hashlib', 'pytest_modelbench.commands'" if command == "report" else ""
    code = (
        "import sys; from pytest_modelbench.cli import main\n"
        f"try: main(['{command}', '--help'])\n"
        "except SystemExit: pass\n"
        f"heavy = ('litellm', 'scipy', 'httpx', 'aiohttp', 'pytest', {others})\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_damages_of_the_results_are_told_beside_it(
    stored: Stored, capsys: pytest.CaptureFixture[str]
) -> None:
    results = stored(_record(1))
    (path,) = results.glob("*/*/*.jsonl")
    with path.open("a", encoding="ascii") as file:
        file.write('{"half": \n')
    assert main(["show", "0001", "--results", str(results)]) == 0
    assert capsys.readouterr().err.startswith(f"modelbench: {path}:2: ")
