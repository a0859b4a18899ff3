"""BIRD on SQLite: a question to a database, answered by one SELECT."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import JsonValue

from pytest_modelbench.benchmarks.benchmark import Answer, Benchmark, Met, Private, Tool, verdict
from pytest_modelbench.benchmarks.bird.database import SECONDS, Row, Status, query, schema
from pytest_modelbench.benchmarks.bird.scores import (
    RULES_VERSION,
    efficiency_reward,
    execution_match,
    r_ves,
    soft_f1,
)
from pytest_modelbench.errors import PackProblem
from pytest_modelbench.packs.source import BenchmarkCase
from pytest_modelbench.parsing import parse
from pytest_modelbench.records import Check, Verdict

WRONG_GOLDS = frozenset({129, 271, 635, 646, 1006, 1011, 1014, 1113, 1199, 1279})
"""Questions of the dev set whose gold is wrong: bird-bench/mini_dev issue 45."""

SHOWN_ROWS = 20
SHOWN_CHARS = 200
OPTIONS = ("questions", "databases", "only", "compare", "seconds", "r_ves")
REASONS = {
    Status.FORBIDDEN: "forbidden",
    Status.TIMEOUT: "query-time",
    Status.ERROR: "query-error",
    Status.TOO_LARGE: "too-large",
}


@dataclass
class Query:
    """One attempt's database, and the SQL that was submitted."""

    database: Path
    submitted: str | None = None


class Bird(Benchmark[Query]):
    """Questions to databases.

    Options: ``questions`` (a JSON file), ``databases`` (a folder), ``only`` (names of databases),
    ``compare`` (``ex`` or ``soft_f1``: what the reward is), ``seconds`` that a query may take,
    ``r_ves`` (how often each query is timed for R-VES, which decides nothing; 0: not at all). A
    candidate's option ``evidence`` (true or false, by default true): the hint of each question.
    """

    version = "1"

    def __init__(self, folder: Path, options: Mapping[str, JsonValue]) -> None:
        """Take where questions and databases are."""
        wrong = sorted(set(options) - set(OPTIONS))
        if wrong:
            raise ValueError(f"it has no option {', '.join(wrong)}; it has {', '.join(OPTIONS)}")
        self.questions = folder / str(options.get("questions", "questions.json"))
        self.databases = folder / str(options.get("databases", "."))
        only = options.get("only", [])
        if not isinstance(only, list):
            raise TypeError("only is a list of names of databases")
        self.only = [str(one) for one in only]
        self.compare = options.get("compare", "ex")
        if self.compare not in ("ex", "soft_f1"):
            raise ValueError('compare is "ex" or "soft_f1"')
        seconds = options.get("seconds", SECONDS)
        if not isinstance(seconds, int | float) or isinstance(seconds, bool) or seconds <= 0:
            raise ValueError("seconds is a number above 0")
        self.seconds = float(seconds)
        times = options.get("r_ves", 0)
        if not isinstance(times, int) or isinstance(times, bool) or times < 0:
            raise ValueError("r_ves is how often each query is timed; upstream does it 100 times")
        self.times = times
        self.rules_version = f"{RULES_VERSION}; {self.compare}; {self.seconds:g} s"
        if times:
            self.rules_version += f"; r-ves of {times}"

    def cases(self) -> Iterator[BenchmarkCase]:
        """Yield a case a question on the databases that are wanted."""
        found = parse(self.questions.read_text(encoding="utf-8"))
        if not isinstance(found, list):
            raise PackProblem("is no list of questions", path=self.questions, remedy="see the docs")
        seen: Counter[str] = Counter()
        for number, raw in enumerate(found, 1):
            keys = ("question_id", "db_id", "question", "SQL")
            if not isinstance(raw, dict) or any(key not in raw for key in keys):
                raise PackProblem(
                    f"question {number} has not got {', '.join(keys)}",
                    path=self.questions,
                    remedy="take the file as upstream has it",
                )
            if not self.only or raw["db_id"] in self.only:
                seen[str(raw["question_id"])] += 1
                yield self._case(raw, seen[str(raw["question_id"])])

    def check_options(self, options: Mapping[str, JsonValue]) -> None:
        """Take ``evidence``."""
        wrong = sorted(set(options) - {"evidence"})
        if wrong:
            raise ValueError(f"it has no option {', '.join(wrong)}; it has evidence")
        if not isinstance(options.get("evidence", True), bool):
            raise ValueError("evidence is true or false")

    def messages(
        self, case: BenchmarkCase, options: Mapping[str, JsonValue]
    ) -> Sequence[JsonValue]:
        """Return the schema, the question and, unless it is not wanted, its hint."""
        hint = str(case.public.get("evidence", ""))
        parts = [
            "Answer a question to a SQLite database with one SELECT (or WITH … SELECT). Try "
            "queries with run_sql, then give the final one to submit_sql. Only read.",
            str(case.public["schema"]),
            f"Question: {case.prompt}",
            f"Hint: {hint}" if hint and options.get("evidence", True) else "",
        ]
        return [{"role": "user", "content": "\n\n".join(part for part in parts if part)}]

    def setup(self, public: Mapping[str, JsonValue], folder: Path) -> Query:
        """Point at the database: it is opened read-only, so no copy is needed."""
        return Query(self._database(str(public["db_id"])))

    def tools(self, world: Query) -> Sequence[Tool]:
        """Return a tool to try a query, and one to submit the last."""

        def run(arguments: Mapping[str, JsonValue]) -> str:
            answer = query(world.database, str(arguments["sql"]), seconds=self.seconds)
            if answer.status is not Status.ROWS:
                return f"{answer.status}: {answer.message}"
            lines = [" | ".join(answer.columns), *map(_line, answer.rows[:SHOWN_ROWS])]
            more = len(answer.rows) - SHOWN_ROWS
            return "\n".join(lines) + (f"\n[and {more} more different rows]" if more > 0 else "")

        def submit(arguments: Mapping[str, JsonValue]) -> str:
            world.submitted = str(arguments["sql"])
            return "Submitted."

        one: dict[str, JsonValue] = {
            "type": "object",
            "properties": {"sql": {"type": "string"}},
            "required": ["sql"],
        }
        return [
            Tool("run_sql", "Run one SELECT and see its different rows.", one, run),
            Tool("submit_sql", "Give your final SELECT; it ends the task.", one, submit, ends=True),
        ]

    def harvest(self, world: Query, met: Met) -> JsonValue:
        """Return the SQL that was submitted, or that the last text holds."""
        sql = world.submitted if world.submitted is not None else sql_in(met.text or "")
        return {"sql": sql}

    def observe(self, case: BenchmarkCase, harvest: JsonValue) -> JsonValue:
        """Run the SQL, and the gold once a process, each on a connection of its own."""
        sql = harvest.get("sql") if isinstance(harvest, dict) else None
        if not isinstance(sql, str):
            return {"status": ""}
        database = self._database(str(case.public["db_id"]))
        gold = _gold_rows(database, str(case.private.data["sql"]), self.seconds, case.world)
        answer = query(database, sql, seconds=self.seconds)
        ran = answer.status is Status.ROWS
        same = ran and execution_match(answer.rows, gold)
        timed: dict[str, JsonValue] = {}
        if self.times:
            timed["r_ves"] = self._efficiency(case, database, sql) if same else 0.0
        return {
            **timed,
            "status": answer.status.value,
            "message": answer.message,
            "rows": len(answer.rows),
            "gold_rows": len(gold),
            "ex": same,
            "soft_f1": soft_f1(answer.rows, gold) if ran else 0.0,
        }

    def verify(self, private: Private, observation: JsonValue) -> Verdict:
        """Tell forbidden, failed and wrong SQL apart; the reward is EX, or soft F1."""
        seen = observation if isinstance(observation, dict) else {}
        status = str(seen.get("status", ""))
        same = seen.get("ex") is True
        checks = [
            Check(name="answered", passed=bool(status), reason="" if status else "no answer"),
            Check(name="allowed", passed=bool(status) and status != Status.FORBIDDEN),
            Check(name="ran", passed=status == Status.ROWS, reason=REASONS.get(_known(status), "")),
            Check(name="rows", passed=same),
        ]
        share = seen.get("soft_f1", 0.0)
        soft = float(share) if isinstance(share, int | float) else 0.0
        reason = REASONS.get(_known(status), "wrong") if status else "no-answer"
        reward = soft if self.compare == "soft_f1" and not same else float(same)
        told = seen.get("r_ves")
        return verdict(
            checks,
            reward=min(1.0, max(0.0, reward)),
            reason=reason,
            measures={"r-ves": r_ves([told])} if isinstance(told, int | float) else {},
        )

    def reference(self, case: BenchmarkCase, variant: str = "") -> Answer | None:
        """Submit the gold; or what writes, or what has other rows."""
        sql = {
            "": str(case.private.data["sql"]),
            "writes": "DROP TABLE IF EXISTS anything",
            "other-rows": "SELECT 'not', 'the', 'answer', 'of', 'anything'",
        }.get(variant)
        return None if sql is None else Answer(calls=(("submit_sql", {"sql": sql}),))

    def _efficiency(self, case: BenchmarkCase, database: Path, sql: str) -> float:
        """Return R-VES's reward of a right query: it and the gold are run by turns, and timed."""
        ratios = []
        both = (sql, str(case.private.data["sql"]))
        for _ in range(self.times):
            mine, theirs = (query(database, one, seconds=self.seconds) for one in both)
            if mine.status is Status.ROWS and theirs.status is Status.ROWS and mine.seconds:
                ratios.append(theirs.seconds / mine.seconds)
        return efficiency_reward(ratios)

    def _case(self, raw: Mapping[str, JsonValue], times: int) -> BenchmarkCase:
        name = str(raw["db_id"])
        database = self._database(name)
        tags = [name, str(raw.get("difficulty", ""))]
        if raw["question_id"] in WRONG_GOLDS:
            tags.append("wrong-gold")
        return BenchmarkCase(
            id=f"{raw['question_id']}" + (f"-{times}" if times > 1 else ""),
            prompt=str(raw["question"]),
            public={
                "db_id": name,
                "evidence": str(raw.get("evidence", "")),
                "schema": _schema(database),
            },
            private=Private({"sql": str(raw["SQL"])}),
            tags=tuple(tag for tag in tags if tag),
            world=_digest(database),
            damaged={"writes": ("allowed", "ran", "rows"), "other-rows": ("rows",)},
        )

    def _database(self, name: str) -> Path:
        """Return a database's file: ``NAME.sqlite`` in the folder, or in a folder of its name."""
        for path in (self.databases / f"{name}.sqlite", self.databases / name / f"{name}.sqlite"):
            if path.is_file():
                return path
        raise PackProblem(
            f"there is no {name}.sqlite in {self.databases}, nor in a folder {name} of it",
            path=self.questions,
            remedy="bring it, or name the databases that are there: only = […]",
        )


def sql_in(text: str) -> str | None:
    """Return the SQL of a text: its last fenced block, or all of it where it begins as a query."""
    blocks = re.findall(r"```(?:sql|sqlite)?\s*\n?(.*?)```", text, re.DOTALL | re.IGNORECASE)
    if blocks:
        return str(blocks[-1]).strip()
    plain = text.strip()
    return plain if re.match(r"(?i)(select|with)\b", plain) else None


def _known(status: str) -> Status:
    return Status(status) if status in {one.value for one in Status} else Status.ROWS


def _line(row: Row) -> str:
    return " | ".join("NULL" if cell is None else str(cell)[:SHOWN_CHARS] for cell in row)


@cache
def _schema(database: Path) -> str:
    return schema(database)


@cache
def _digest(database: Path) -> str:
    with database.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@cache
def _gold_rows(database: Path, sql: str, seconds: float, digest: str) -> tuple[Row, ...]:
    """Return the gold's rows; RuntimeError, which is a fault of ours, where it does not run."""
    answer = query(database, sql, seconds=seconds)
    if answer.status is not Status.ROWS:
        raise RuntimeError(f"the gold ended in {answer.status}: {answer.message}")
    return answer.rows
