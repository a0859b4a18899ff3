"""Tasks in files: laid over a common world, with damaged answers as edits of the reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from pytest_modelbench.benchmarks.jsonworlds.state import laid_over
from pytest_modelbench.benchmarks.jsonworlds.tasks import Calls, changed, read_tasks
from pytest_modelbench.errors import PackProblem

CALLS: Calls = (("read", {"id": "1"}), ("write", {"id": "1", "text": "x"}), ("end", {}))

TASK = """
title = "T"
tags = ["a"]
prompt = "Do it."
[[world.app.things]]
id = "b"
n = 3
[[world.app.things]]
id = "c"
[[assert]]
name = "done"
type = "t"
[[reference]]
tool = "write"
text = "x"
[damaged.nothing]
loses = ["done"]
drop = [1]
"""


@pytest.mark.parametrize(
    ("base", "patch", "result"),
    [
        ({"a": 1, "b": {"c": 2}}, {"b": {"d": 3}}, {"a": 1, "b": {"c": 2, "d": 3}}),
        ([{"id": "x", "n": 1}], [{"id": "x", "n": 2}], [{"id": "x", "n": 2}]),
        ([{"id": "x", "n": 1}], [{"id": "y"}], [{"id": "x", "n": 1}, {"id": "y"}]),
        ([{"title": "x", "n": 1}], [{"title": "x", "m": 2}], [{"title": "x", "n": 1, "m": 2}]),
        ([1, 2], [3], [3]),
        ([{"id": "x"}], [{"n": 1}], [{"n": 1}]),
        ({"a": 1}, {}, {"a": 1}),
    ],
)
def test_a_patch_over_a_world(base: JsonValue, patch: JsonValue, result: JsonValue) -> None:
    assert laid_over(base, patch) == result


def test_a_patched_world_shares_nothing_with_the_common_one() -> None:
    base: Any = {"a": [{"id": "x", "inner": [1]}], "b": [1]}  # Any: the test knows its shape
    found: Any = laid_over(base, {"a": [{"id": "y"}]})
    found["b"].append(2)
    found["a"][0]["inner"].append(2)
    assert base == {"a": [{"id": "x", "inner": [1]}], "b": [1]}


@pytest.mark.parametrize(
    ("edit", "result"),
    [
        ({}, CALLS),
        ({"drop": [1, 3]}, CALLS[1:2]),
        (
            {"change": {"2": {"text": "y"}}},
            (CALLS[0], ("write", {"id": "1", "text": "y"}), CALLS[2]),
        ),
        ({"add": [{"tool": "more", "n": 1}]}, (*CALLS, ("more", {"n": 1}))),
    ],
)
def test_an_edit_of_calls(edit: dict[str, JsonValue], result: object) -> None:
    assert changed(CALLS, edit) == result


def test_a_number_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="numbers of the 3 calls"):
        changed(CALLS, {"drop": [4]})
    with pytest.raises(ValueError, match="numbers of the 3 calls"):
        changed(CALLS, {"change": {"0": {}}})


def written(folder: Path, task: str) -> Path:
    (folder / "world.json").write_text('{"app": {"things": [{"id": "b", "n": 1, "m": 2}]}}')
    (folder / "tasks").mkdir()
    (folder / "tasks" / "one.toml").write_text(task)
    return folder


def test_a_task_is_read(tmp_path: Path) -> None:
    (task,) = read_tasks(written(tmp_path, TASK))
    assert (task.id, task.title, task.tags, task.prompt) == ("one", "T", ("a",), "Do it.")
    assert task.state == {"app": {"things": [{"id": "b", "n": 3, "m": 2}, {"id": "c"}]}}
    assert task.assertions == ({"name": "done", "type": "t"},)
    assert task.reference is not None
    assert task.reference.calls == (("write", {"text": "x"}),)
    assert task.damaged["nothing"].loses == ("done",)
    assert task.damaged["nothing"].answer.calls == ()


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("prompt =", "one.toml: cannot be read"),
        ("day = 2026-01-01", "one.toml: cannot be read"),
        ('prompt = "p"', "has no prompt, or no"),
        (TASK + "\n[more]\n", "has more, which is not known"),
        (TASK.replace("drop = [1]", "drop = [2]"), "numbers of the 1 calls"),
        (TASK.replace('tool = "write"', 'tol = "write"'), "names no tool"),
        (TASK.replace('loses = ["done"]', ""), "a damaged answer has loses"),
    ],
)
def test_a_task_that_is_not_sound_is_told_with_its_file(
    tmp_path: Path, task: str, said: str
) -> None:
    with pytest.raises(PackProblem, match=said):
        list(read_tasks(written(tmp_path, task)))


def test_a_world_that_cannot_be_read_is_told_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "world.json").write_text("[")
    with pytest.raises(PackProblem, match=r"world\.json: cannot be read"):
        list(read_tasks(tmp_path))
    (tmp_path / "world.json").write_text("[]")
    with pytest.raises(PackProblem, match="is no JSON object"):
        list(read_tasks(tmp_path))
