"""BFCL's single-turn records, as its package has them or as one file a category."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from pytest_modelbench.errors import PackProblem
from pytest_modelbench.parsing import parse

NON_LIVE = (
    "simple_python",
    "simple_java",
    "simple_javascript",
    "multiple",
    "parallel",
    "parallel_multiple",
    "irrelevance",
)
LIVE = (
    "live_simple",
    "live_multiple",
    "live_parallel",
    "live_parallel_multiple",
    "live_irrelevance",
    "live_relevance",
)
CATEGORIES = (*NON_LIVE, *LIVE)
PREFIX = "BFCL_v4_"


@dataclass(frozen=True)
class Record:
    """One record. ``gold`` is empty where the category asks for calls, or none, and not which."""

    id: str
    category: str
    messages: list[JsonValue]
    functions: list[dict[str, JsonValue]]
    gold: list[dict[str, JsonValue]]


def read_category(folder: Path, category: str) -> Iterator[Record]:
    """Yield the records of a category; none where the folder has not got it.

    The folder is upstream's ``data`` (``BFCL_v4_CATEGORY.json`` with ``possible_answer/`` beside
    it, matched by id), or holds ``CATEGORY.jsonl`` with ``ground_truth`` in each record.
    """
    upstream = folder / f"{PREFIX}{category}.json"
    plain = folder / f"{category}.jsonl"
    path = upstream if upstream.is_file() else plain
    if not path.is_file():
        return
    answers = folder / "possible_answer" / upstream.name
    golds: dict[object, object] = {}
    if path is upstream and answers.is_file():
        golds = {raw.get("id"): raw.get("ground_truth") for _, raw in lines_of(answers)}
    for line, raw in lines_of(path):
        gold = raw.get("ground_truth", golds.get(raw.get("id")))
        if gold is None and "relevance" not in category:
            raise PackProblem(
                f"the record {raw.get('id')!r} has no gold",
                path=path,
                line=line,
                remedy=f"bring {answers.name} into possible_answer/ beside it",
            )
        yield _record(raw, gold, category, path, line)


def _record(
    raw: Mapping[str, JsonValue], gold: object, category: str, path: Path, line: int
) -> Record:
    question = raw.get("question")
    turn = question[0] if isinstance(question, list) and question else None
    functions = _objects(raw.get("function"))
    expected = [] if gold is None else _objects(gold)
    sound = isinstance(raw.get("id"), str) and isinstance(turn, list)
    if not sound or not isinstance(turn, list) or functions is None or expected is None:
        raise PackProblem(
            "is no record of BFCL: it needs id, question, function and, if any, ground_truth",
            path=path,
            line=line,
            remedy="take the file as upstream has it",
        )
    return Record(str(raw["id"]), category, turn, functions, expected)


def _objects(value: object) -> list[dict[str, JsonValue]] | None:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        return None
    return value


def lines_of(path: Path) -> Iterator[tuple[int, dict[str, JsonValue]]]:
    """Yield number and object of each line of a JSON lines file."""
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                raw = parse(line)
            except ValueError as error:
                raise PackProblem(
                    f"is not JSON: {error}", path=path, line=number, remedy="mend the line"
                ) from error
            if not isinstance(raw, dict):
                raise PackProblem(
                    "is no object", path=path, line=number, remedy="take it as upstream has it"
                )
            yield number, raw
