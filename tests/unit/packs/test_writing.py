from __future__ import annotations

from pathlib import Path

import pytest

from pytest_modelbench.errors import PackProblem
from pytest_modelbench.packs.reading import read_pack
from pytest_modelbench.packs.writing import new_pack


def test_a_new_pack_is_sound(tmp_path: Path) -> None:
    files = new_pack("mine", tmp_path / "cases", tmp_path / "references")
    assert all(file.is_file() for file in files)
    pack = read_pack(tmp_path / "cases" / "mine", tmp_path / "references")
    (case,) = pack.cases
    assert (pack.name, case.id, case.limits.turns) == ("mine", "clamp", 12)
    assert case.seed
    assert case.hidden
    assert case.reference
    assert [(one.name, one.loses) for one in case.damaged] == [("only-above", ("test_below",))]


def test_its_files_do_what_they_say(tmp_path: Path) -> None:
    new_pack("mine", tmp_path / "cases", tmp_path / "references")
    (case,) = read_pack(tmp_path / "cases" / "mine", tmp_path / "references").cases
    assert case.seed
    assert case.reference
    values = {}
    for folder in (case.seed, case.reference, case.damaged[0].folder):
        names: dict[str, object] = {}
        exec((folder / "limits.py").read_text(), names)
        clamp = names["clamp"]
        assert callable(clamp)
        values[folder.name] = [clamp(number, 0, 10) for number in (-3, 4, 12)]
    assert values == {"seed": [0, 4, 12], "clamp": [0, 4, 10], "only-above": [-3, 4, 10]}


@pytest.mark.parametrize("name", ["", "a/b", "../x", "two words", "x.damaged", "n" * 101])
def test_a_name_that_cannot_be(tmp_path: Path, name: str) -> None:
    with pytest.raises(PackProblem, match=r"id ('n+…' )?of a pack"):
        new_pack(name, tmp_path / "cases", tmp_path / "references")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    new_pack("mine", tmp_path / "cases", tmp_path / "references")
    with pytest.raises(PackProblem, match="is there already"):
        new_pack("mine", tmp_path / "elsewhere", tmp_path / "references")
    assert not (tmp_path / "elsewhere").exists()
