"""SpreadsheetBench as a pack: programs over three inputs, workbooks, and what calculates them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from pytest_modelbench.benchmarks.loops import Met
from pytest_modelbench.benchmarks.spreadsheetbench.provider import SpreadsheetBench, code_in
from pytest_modelbench.errors import PackProblem, UsageProblem
from pytest_modelbench.packs.reading import read_pack
from pytest_modelbench.packs.source import BenchmarkCase
from pytest_modelbench.protocols.benchmark import play
from pytest_modelbench.records import Candidate, Verdict
from pytest_modelbench.worlds.levels import choose, probe

openpyxl = pytest.importorskip("openpyxl", reason="workbooks need openpyxl")

DATA = Path(__file__).parents[3] / "data" / "spreadsheetbench"
Made = Callable[..., SpreadsheetBench]


def book(path: Path, *rows: tuple[object, ...], sheet: str = "Data") -> None:
    made = openpyxl.Workbook()
    made.active.title = sheet
    for row in rows:
        made.active.append(row)
    made.save(path)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """One task, to write the sum of A and B into C, with three cases."""
    folder = tmp_path / "data"
    place = folder / "spreadsheet" / "7"
    place.mkdir(parents=True)
    for number in (1, 2, 3):
        book(place / f"{number}_7_input.xlsx", ("a", "b"), (number, 10))
        book(place / f"{number}_7_answer.xlsx", ("a", "b", "sum"), (number, 10, number + 10))
    task = {
        "id": 7,
        "instruction": "Write the sum of a and b into column C.",
        "spreadsheet_path": "spreadsheet/7",
        "instruction_type": "Cell-Level Manipulation",
        "answer_position": "C2:C2",
    }
    (folder / "dataset.json").write_text(json.dumps([task]))
    return folder


@pytest.fixture
def made(data: Path, tmp_path: Path) -> Made:
    def of(**options: Any) -> SpreadsheetBench:
        benchmark = SpreadsheetBench(tmp_path, {"data": str(data), **options})
        benchmark.box = choose("auto")
        return benchmark

    return of


def judged(
    benchmark: SpreadsheetBench, case: BenchmarkCase, harvest: Any
) -> tuple[Verdict, dict[str, Any]]:
    seen = json.loads(json.dumps(benchmark.observe(case, harvest)))
    return benchmark.verify(case.private, seen), seen


def checks(verdict: Verdict) -> dict[str, str]:
    return {check.name: "passed" if check.passed else check.reason for check in verdict.checks}


SUMS = """
import openpyxl
b = openpyxl.load_workbook("input.xlsx")
s = b.active
s["C2"] = {}
b.save("output.xlsx")
"""


def test_a_program_is_run_on_every_input(made: Made) -> None:
    benchmark = made()
    (case,) = benchmark.cases()
    right, seen = judged(benchmark, case, {"program": SUMS.format("s['A2'].value + s['B2'].value")})
    assert (right.passed, right.reward) == (True, 1.0)
    assert (seen["recalc"], seen["positions"]) == ("none", "")
    learnt, _ = judged(benchmark, case, {"program": SUMS.format("11")})
    assert (learnt.passed, learnt.reason) == (False, "wrong")
    assert learnt.reward == pytest.approx(1 / 3)  # upstream's soft score; its hard one is 0
    assert checks(learnt) == {
        "answered": "passed",
        "case-1": "passed",
        "case-2": "values",
        "case-3": "values",
    }
    fails, seen = judged(benchmark, case, {"program": "raise SystemExit('no')"})
    assert checks(fails)["case-1"] == "program-error"
    assert seen["cases"][0]["wrong"] == "no"
    silent, _ = judged(benchmark, case, {"program": "pass"})
    assert checks(silent)["case-3"] == "no-output"
    nothing, _ = judged(benchmark, case, {"program": None})
    assert (nothing.passed, nothing.reason, nothing.reward) == (False, "no-answer", 0.0)


def test_a_program_that_takes_too_long(made: Made) -> None:
    benchmark = made(seconds=0.4)
    (case,) = benchmark.cases()
    slow, _ = judged(benchmark, case, {"program": "while True: pass"})
    assert checks(slow)["case-2"] == "time"


def test_code_sees_its_input_alone(made: Made, data: Path) -> None:
    benchmark = made()
    if benchmark.box is None or benchmark.box.level != "bubblewrap":
        pytest.skip("a box of bubblewrap is needed")
    (case,) = benchmark.cases()
    answer = data / "spreadsheet" / "7" / "1_7_answer.xlsx"
    reads = f"import os; print(sorted(os.listdir('.'))); open({str(answer)!r})"
    _, seen = judged(benchmark, case, {"program": reads})
    assert seen["cases"][0]["wrong"].startswith("['input.xlsx']")
    assert "FileNotFoundError" in seen["cases"][0]["wrong"]
    # A link in the output's place leads nowhere.
    links = f"import os; os.symlink({str(answer)!r}, 'output.xlsx')"
    linked, _ = judged(benchmark, case, {"program": links})
    assert checks(linked)["case-1"] == "no-output"


def test_a_workbook_is_one_case(made: Made, tmp_path: Path) -> None:
    benchmark = made(mode="workbook")
    (case,) = benchmark.cases()
    folder = tmp_path / "world"
    folder.mkdir()
    world = benchmark.setup(case.public, folder)
    (tool,) = benchmark.tools(world)
    assert tool.run({"code": "print(1 / 0)"}).endswith("[exit status 1]")
    before = benchmark.harvest(world, Met())
    assert judged(benchmark, case, before)[0].reason == "no-answer"
    assert tool.run({"code": SUMS.format("11")}) == "(no output)\n[exit status 0]"
    verdict, _ = judged(benchmark, case, benchmark.harvest(world, Met(True)))
    assert (verdict.passed, checks(verdict)) == (True, {"answered": "passed", "case-1": "passed"})


def test_the_prompt_shows_the_input_and_no_answer(made: Made) -> None:
    benchmark = made()
    (case,) = benchmark.cases()
    (message,) = benchmark.messages(case, {})
    text = str(message["content"])  # type: ignore[call-overload,index]  # JSON
    assert "Sheet 'Data', 2 rows:\na\tb\n1\t10" in text
    assert "at C2:C2" in text
    assert "submit_program" in text
    assert "sum\n" not in text
    assert code_in("So:\n```python\nx = 1\n```\nor\n```\ny = 2\n```") == "y = 2\n"
    assert code_in("x = 1") is None


FAKE_OFFICE = """#!/bin/sh
# Stands in for soffice: "calculates" by writing the answer to where it is told to.
while [ "$1" != --outdir ]; do shift; done
mkdir -p "$2"
exec {python} -c '
import sys, zipfile, re
folder, source = sys.argv[1:]
with zipfile.ZipFile(source) as old, zipfile.ZipFile(folder + "/output.xlsx", "w") as new:
    for name in old.namelist():
        text = old.read(name)
        if name.endswith("sheet1.xml"):
            text = re.sub(rb"<f>A2\\+B2</f><v ?/?>(</v>)?", b"<v>11</v>", text)
        new.writestr(name, text)
' "$2" "$3"
"""


def test_formulas_count_once_they_are_calculated(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pytest_modelbench.worlds.box import INTERPRETER

    formula = {"program": SUMS.format("'=A2+B2'")}
    plain = made()
    (case,) = plain.cases()
    assert judged(plain, case, formula)[0].reward == 0.0
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(UsageProblem, match="needs soffice on the PATH"):
        made(recalc="libreoffice")
    office = tmp_path / "office" / "program" / "soffice"
    office.parent.mkdir(parents=True)
    office.write_text(FAKE_OFFICE.format(python=INTERPRETER))
    office.chmod(0o755)
    for folder in (office.parent, office.parent.parent):
        folder.chmod(0o755)
    monkeypatch.setenv("PATH", f"{office.parent}{os.pathsep}/usr/bin:/bin:/usr/sbin:/sbin")
    calculated = made(recalc="libreoffice")
    verdict, seen = judged(calculated, case, formula)
    assert checks(verdict)["case-1"] == "passed", seen
    assert checks(verdict)["case-2"] == "values"  # the stand-in knows one sum
    assert seen["recalc"] == "libreoffice"
    # Another way to calculate is another check: results of the two are never mixed.
    assert plain.rules_version != calculated.rules_version
    assert plain.version == calculated.version
    assert plain.version != made(mode="workbook").version


@pytest.mark.slow
@pytest.mark.parametrize("how", ["libreoffice", "formulas"])
def test_the_real_programs_calculate_in_the_box(made: Made, how: str) -> None:
    there = shutil.which("soffice") if how == "libreoffice" else find_spec("formulas")
    if there is None:
        pytest.skip(f"{how} is not installed")
    calculated = made(recalc=how)
    (case,) = calculated.cases()
    verdict, seen = judged(calculated, case, {"program": SUMS.format("'=A2+B2'")})
    assert verdict.passed, seen


@pytest.mark.parametrize("level", [level.name for level in probe() if level.available])
def test_every_level_has_the_library(made: Made, level: str) -> None:
    benchmark = made()
    benchmark.box = choose(level)
    (case,) = benchmark.cases()
    right, seen = judged(benchmark, case, {"program": SUMS.format("s['A2'].value + 10")})
    assert right.passed, seen


def test_a_missing_file_fails_its_case(made: Made, data: Path) -> None:
    (data / "spreadsheet" / "7" / "3_7_answer.xlsx").unlink()
    benchmark = made()
    (case,) = benchmark.cases()
    verdict, _ = judged(benchmark, case, {"program": SUMS.format("s['A2'].value + 10")})
    assert checks(verdict)["case-3"] == "missing-file"


def test_one_case_where_the_answer_is_called_golden(made: Made, data: Path) -> None:
    place = data / "spreadsheet" / "7"
    (place / "1_7_answer.xlsx").rename(place / "1_7_golden.xlsx")
    (case,) = made().cases()
    assert case.private.data["cases"] == [1]


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"mode": "both"}, "mode is one of program, workbook"),
        ({"recalc": "excel"}, "recalc is one of none, libreoffice, formulas"),
        ({"seconds": 0}, "seconds is a number above 0"),
        ({"only": ["7", "8"]}, "there is no task 8"),
        ({"more": 1}, "it has no option more"),
    ],
)
def test_options(made: Made, options: dict[str, Any], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        made(**options)


def test_data_that_is_not_there(tmp_path: Path, data: Path) -> None:
    with pytest.raises(PackProblem, match="cannot be read"):
        SpreadsheetBench(tmp_path, {"data": "nowhere"})
    (data / "dataset.json").write_text('[{"id": 1, "instruction": "", "answer_position": "A1"}]')
    with pytest.raises(PackProblem, match="the workbooks of task 1 are missing"):
        SpreadsheetBench(tmp_path, {"data": str(data)})


@pytest.mark.slow
def test_real_tasks_are_sound(tmp_path: Path) -> None:
    """Gold passes, doing nothing and emptied sheets do not, on tasks of every kind of position."""
    folder = tmp_path / "pack"
    folder.mkdir()
    (folder / "pack.toml").write_text(
        f'[benchmark]\nuse = "{SpreadsheetBench.__module__}:SpreadsheetBench"\ndata = "{DATA}"\n'
        'only = ["48969", "336-1", "37228"]\n'
    )
    pack = read_pack(folder, tmp_path / "references")
    assert len(pack.cases) == 3
    for case in pack.cases:
        assert case.given is not None
        assert case.source is not None
        benchmark = case.source.benchmark
        assert isinstance(benchmark, SpreadsheetBench)
        benchmark.box = choose("auto")
        for name, passes in (("reference", True), ("seed", False), ("reference+emptied", False)):
            place = tmp_path / f"{case.id}-{name}"
            place.mkdir()
            world = benchmark.setup(case.given.public, place)
            agent = Candidate(name=name, agent=name.partition("+")[0])
            met = play(benchmark, case.given, agent, benchmark.tools(world))
            verdict, seen = judged(benchmark, case.given, benchmark.harvest(world, met))
            assert verdict.passed is passes, (case.id, name, seen)
