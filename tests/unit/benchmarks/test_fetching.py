"""A copy of a benchmark's data is known by its content, refused when harmed, and made a pack."""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_modelbench.benchmarks import fetching
from pytest_modelbench.benchmarks.fetching import SETS, fetch
from pytest_modelbench.cli import main
from pytest_modelbench.errors import PackProblem, UsageProblem
from pytest_modelbench.packs.reading import read_pack

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A wheel as bfcl-eval's, with some records."""
    records = (DATA / "bfcl" / "cases" / "simple_python.jsonl").read_text().splitlines()[:3]
    questions, answers = [], []
    for record in map(json.loads, records):
        answers.append(json.dumps({"id": record["id"], "ground_truth": record.pop("ground_truth")}))
        questions.append(json.dumps(record))
    path = tmp_path / "bfcl_eval-2026.3.23-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        name = "BFCL_v4_simple_python.json"
        archive.writestr(f"bfcl_eval/data/{name}", "\n".join(questions))
        archive.writestr(f"bfcl_eval/data/possible_answer/{name}", "\n".join(answers))
        archive.writestr("bfcl_eval/data/BFCL_v4_web_search.json", "{}")
        archive.writestr("bfcl_eval/model.py", "")
    return path


@pytest.fixture
def known(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The wheel's data is the known one; its digest."""
    (line,) = [
        one for one in fetch_anew(wheel, tmp_path / "first") if one.startswith("data: sha256 ")
    ]
    digest = line.rpartition(" ")[2]
    monkeypatch.setitem(
        fetching.SETS,
        "bfcl",
        replace(SETS["bfcl"], known={digest: "bfcl-eval 2026.3.23"}),
    )
    return digest


def fetch_anew(wheel: Path, folder: Path) -> list[str]:
    """Fetch under a name that tells no version."""
    other = wheel.with_name("data.zip")
    shutil.copyfile(wheel, other)
    return fetch("bfcl", other, folder)


def test_a_wheel_becomes_a_pack_that_says_its_revision(
    wheel: Path, known: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = tmp_path / "cases"
    assert main(["fetch-data", "bfcl", "--from", str(wheel), "--cases", str(cases)]) == 0
    out = capsys.readouterr().out
    assert "BFCL single-turn AST: 3 cases, a part" in out
    assert "scores belong to bfcl-eval 2026.3.23, the copy that the rules were checked with" in out
    data = cases / "bfcl" / "data"
    assert sorted(p.relative_to(data).as_posix() for p in data.rglob("*") if p.is_file()) == [
        ".gitignore",
        "BFCL_v4_simple_python.json",
        "possible_answer/BFCL_v4_simple_python.json",
        "revision.json",
    ]
    assert json.loads((data / "revision.json").read_text())["sha256"] == known
    pack = read_pack(cases / "bfcl", tmp_path / "references")
    assert (pack.title, len(pack.cases)) == ("BFCL single-turn AST (bfcl-eval 2026.3.23)", 3)
    # A second time it is the same, and what was edited stays.
    manifest = cases / "bfcl" / "pack.toml"
    manifest.write_text(manifest.read_text() + "# mine\n")
    assert "is left as it is" in "\n".join(fetch("bfcl", wheel, cases / "bfcl"))
    assert manifest.read_text().endswith("# mine\n")


def test_a_copy_that_is_not_what_its_version_says_is_refused(
    wheel: Path, known: str, tmp_path: Path
) -> None:
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("bfcl_eval/data/BFCL_v4_multiple.json", "")
    with pytest.raises(UsageProblem, match=r"its name says 2026\.3\.23, and its data is not"):
        fetch("bfcl", wheel, tmp_path / "pack")
    assert not (tmp_path / "pack").exists()
    # Under no such name it is another revision, and said to be.
    lines = fetch_anew(wheel, tmp_path / "pack")
    assert any(
        "the rules are those of bfcl-eval 2026.3.23, and the data is another" in one
        for one in lines
    )
    assert known not in "".join(lines)


def test_an_archives_hash_is_checked(wheel: Path, tmp_path: Path) -> None:
    right = hashlib.sha256(wheel.read_bytes()).hexdigest()
    with pytest.raises(UsageProblem, match=f"its SHA-256 is {right}, and not 0123"):
        fetch("bfcl", wheel, tmp_path / "pack", sha256="0123")


def test_other_data_is_not_laid_over_what_results_belong_to(wheel: Path, tmp_path: Path) -> None:
    fetch_anew(wheel, tmp_path / "pack")
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("bfcl_eval/data/BFCL_v4_multiple.json", "")
    with pytest.raises(UsageProblem, match="there is data already, of another revision"):
        fetch_anew(wheel, tmp_path / "pack")


def test_bird_names_the_databases_that_are_there(tmp_path: Path) -> None:
    copy = tmp_path / "dev_20240627"
    (copy / "dev_databases" / "superhero").mkdir(parents=True)
    questions = json.loads((DATA / "bird" / "questions.json").read_text())
    questions += json.loads((DATA / "bird" / "questions_without_db.json").read_text())[:5]
    (copy / "dev.json").write_text(json.dumps(questions))
    place = copy / "dev_databases" / "superhero" / "superhero.sqlite"
    shutil.copyfile(DATA / "bird" / "superhero.sqlite", place)
    lines = fetch("bird", copy, tmp_path / "bird")
    assert lines[0] == "BIRD: 60 cases, a part"
    assert "20240627, as its name says" in lines[2]
    manifest = (tmp_path / "bird" / "pack.toml").read_text()
    assert 'questions = "data/dev.json"' in manifest
    assert 'databases = "data/dev_databases"\nonly = ["superhero"]' in manifest
    assert len(read_pack(tmp_path / "bird", tmp_path).cases) == 60
    place.unlink()
    with pytest.raises(UsageProblem, match=r"there are no database NAME\.sqlite"):
        fetch("bird", copy, tmp_path / "other")


def test_spreadsheetbench_by_a_tar(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl", reason="workbooks need openpyxl")
    archive = tmp_path / "all_data.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(DATA / "spreadsheetbench" / "spreadsheet" / "336-1", "x/spreadsheet/336-1")
        tar.add(DATA / "spreadsheetbench" / "dataset.json", "x/dataset.json")
    # Its other tasks lack their workbooks: nothing is left of the try.
    with pytest.raises(PackProblem, match="the workbooks of task 239-25 are missing"):
        fetch("spreadsheetbench", archive, tmp_path / "ssb")
    assert not (tmp_path / "ssb" / "data").exists()
    tasks = json.loads((DATA / "spreadsheetbench" / "dataset.json").read_text())
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(DATA / "spreadsheetbench" / "spreadsheet" / "336-1", "x/spreadsheet/336-1")
        one = tmp_path / "dataset.json"
        one.write_text(json.dumps([task for task in tasks if task["id"] == "336-1"]))
        tar.add(one, "x/dataset.json")
    lines = fetch("spreadsheetbench", archive, tmp_path / "ssb", revision="49b73a9")
    assert lines[0] == "SpreadsheetBench: 1 cases, a part"
    assert "scores belong to 49b73a9" in lines[2]


@pytest.mark.parametrize("content", ["", "no archive"])
def test_what_is_no_copy_is_refused(tmp_path: Path, content: str) -> None:
    source = tmp_path / "copy"
    with pytest.raises(UsageProblem, match="there is no such file"):
        fetch("bird", source, tmp_path / "bird")
    if content:
        source.write_text(content)
        with pytest.raises(UsageProblem, match="it is no folder, no wheel"):
            fetch("bird", source, tmp_path / "bird")
    else:
        source.mkdir()
        with pytest.raises(UsageProblem, match="so it is no copy of BIRD"):
            fetch("bird", source, tmp_path / "bird")
