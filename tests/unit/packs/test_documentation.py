"""The page about packs says what the reader of packs does."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_modelbench.errors import PackProblems
from pytest_modelbench.identity import IGNORED_NAMES
from pytest_modelbench.packs.reading import read_pack
from pytest_modelbench.packs.writing import new_pack
from pytest_modelbench.records import Limits

if TYPE_CHECKING:
    from tests.unit.packs.conftest import Project

PAGE = (Path(__file__).parents[3] / "docs" / "write-a-pack.md").read_text(encoding="utf-8")
FILES = {
    path: text
    for path, text in re.findall(
        r"^```(?:toml|python)\n# (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL
    )
}


def test_the_examples_are_a_sound_pack(project: Project) -> None:
    project.write(FILES | {"reference_solutions/mine/slug/slug.py": ""})
    pack = read_pack(project.root / "cases" / "mine", project.root / "reference_solutions")
    case = pack.case("slug")
    assert case.limits == pack.limits.model_copy(update={"turns": 40})
    assert (case.tags, case.group, case.check.seconds) == (("python", "writes-tests"), "text", 60)
    assert case.check.judge == "", "a copy works where no candidate is declared"
    assert [one.loses for one in case.damaged] == [("test_words", "test_as_a_program")]


WRONG = {
    "cases/mine/pack.toml": "wrong = 1\n[pack]\n[limits]\n[check]\n[environment]\n",
    "cases/mine/slug/case.toml": "wrong = 1\n[limits]\n[check]\n",
}


@pytest.mark.parametrize("place", WRONG)
def test_the_examples_have_every_key(project: Project, place: str) -> None:
    wrong = WRONG[place].replace("]\n", "]\nwrong = 1\n")
    project.write(FILES | {"reference_solutions/mine/slug/slug.py": "", place: wrong})
    with pytest.raises(PackProblems) as caught:
        read_pack(project.root / "cases" / "mine", project.root / "reference_solutions")
    known = {
        key
        for one in caught.value.problems
        for key in one.remedy.partition("known here: ")[2].split(", ")
    }
    shown = set(re.findall(r"^(?:# )?(\w+) = |^\[(\w+)\]", FILES[place], re.MULTILINE))
    missing = known - {key or table for key, table in shown}
    if place.endswith("case.toml"):
        missing -= set(Limits.model_fields)  # its example sets one of those of the pack
    missing.discard("threshold")  # of packs whose rules score; these have hidden checks
    assert missing <= {""}


def test_the_python_example_is_python() -> None:
    (check,) = (text for path, text in FILES.items() if path.endswith(".py"))
    names = [node.name for node in ast.parse(check).body if isinstance(node, ast.FunctionDef)]
    assert set(re.findall(r'"(test_\w+)"', FILES[_damaged()])) <= set(names)


def _damaged() -> str:
    return next(path for path in FILES if path.endswith("damaged.toml"))


def test_the_tree_is_what_new_pack_writes(tmp_path: Path) -> None:
    files = new_pack("mine", tmp_path / "cases", tmp_path / "reference_solutions")
    tree = PAGE.partition("```text\n")[2].partition("```")[0]
    assert [line.split()[0] for line in tree.splitlines()] == [
        file.relative_to(tmp_path).as_posix() for file in files
    ]


def test_caches_named_on_the_page_are_ignored() -> None:
    named = re.search(r"Caches that tools leave behind \((.*?) and", PAGE, re.DOTALL)
    assert named
    assert {name for name in named[1].split("`")[1::2] if "*" not in name} <= IGNORED_NAMES
