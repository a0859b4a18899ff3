"""Packs whose cases a benchmark gives: what is read, what is refused, what is part of identity."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from pytest_modelbench.errors import PackProblem
from pytest_modelbench.packs.identities import CaseIdentity, identity_of
from pytest_modelbench.packs.model import Pack
from pytest_modelbench.packs.reading import read_pack
from pytest_modelbench.packs.source import Private

CODE = """
from pytest_modelbench.benchmarks.benchmark import Benchmark, BenchmarkCase, Private, verdict

class Sums(Benchmark):
    version = "1"
    rules_version = "1"

    def __init__(self, folder, options):
        self.upto = options.get("upto", 2)
        if not isinstance(self.upto, int):
            raise TypeError("upto is a whole number")

    def cases(self):
        for n in range(self.upto):
            yield BenchmarkCase(
                f"sum-{n}", f"{n} + {n}?", Private({"sum": 2 * n}), {"n": n},
                tags=("sums",), damaged={"more": ("sum",)},
            )

    def setup(self, public, folder):
        return None

    def harvest(self, world, met):
        return met.text

    def verify(self, private, observation):
        return verdict({"sum": observation == str(private.data["sum"])})
"""
MANIFEST = '[pack]\ntags = ["easy"]\n[benchmark]\nuse = "sums.py:Sums"\n[limits]\nturns = 3\n'


class Written(NamedTuple):
    folder: Path

    def write(self, manifest: str = MANIFEST, code: str = CODE) -> Pack:
        (self.folder / "pack.toml").write_text(manifest)
        (self.folder / "sums.py").write_text(code)
        return read_pack(self.folder, self.folder / "references")

    def identity(self, manifest: str = MANIFEST, code: str = CODE) -> CaseIdentity:
        case = self.write(manifest, code).cases[1]
        return identity_of(case, protocol="1", grader="1")


@pytest.fixture
def written(tmp_path: Path) -> Written:
    folder = tmp_path / "sums"
    folder.mkdir()
    return Written(folder)


def test_cases_are_those_that_the_benchmark_gives(written: Written) -> None:
    pack = written.write()
    assert (pack.name, pack.protocol) == ("sums", "benchmark")
    assert [case.id for case in pack.cases] == ["sum-0", "sum-1"]
    case = pack.case("sum-1")
    assert (case.prompt, case.limits.turns, case.tags) == ("1 + 1?", 3, ("easy", "sums"))
    assert [(one.name, one.loses) for one in case.damaged] == [("more", ("sum",))]
    assert case.given is not None
    assert "2" not in repr(case.given.private)


def test_what_stands_beside_use_is_an_option_of_the_benchmark(written: Written) -> None:
    assert len(written.write(MANIFEST.replace('Sums"', 'Sums"\nupto = 5')).cases) == 5


@pytest.mark.parametrize(
    ("manifest", "code", "said"),
    [
        (MANIFEST.replace("sums.py:Sums", "nothing-of-this-name"), CODE, "there is no benchmark"),
        (MANIFEST.replace("sums.py", "other.py"), CODE, "cannot be read"),
        (MANIFEST.replace(":Sums", ":Sum"), CODE, "there is no Sum"),
        (MANIFEST.replace(":Sums", ":Private"), CODE, "is no benchmark"),
        (MANIFEST.replace("sums.py:Sums", "no.such.module:Sums"), CODE, "cannot be imported"),
        (MANIFEST.replace('use = "sums.py:Sums"', ""), CODE, "does not say which"),
        (MANIFEST.replace('Sums"', 'Sums"\nupto = "x"'), CODE, "upto is a whole number"),
        (MANIFEST.replace('Sums"', 'Sums"\nupto = 0'), CODE, "has no case"),
        (MANIFEST.replace('Sums"', 'Sums"\nday = 2024-01-01'), CODE, "date or time"),
        (f"{MANIFEST}[check]\nseconds = 5\n", CODE, "means nothing beside"),
        (f'{MANIFEST}[environment]\npackages = ["a==1"]\n', CODE, "means nothing beside"),
        (MANIFEST, "1 / 0", "ZeroDivisionError"),
        (MANIFEST, CODE.replace("sum-{n}", "sum {n}"), "cannot be the id of a case"),
        (MANIFEST, CODE.replace("sum-{n}", "sum"), "two cases have the id 'sum'"),
        (MANIFEST, CODE.replace("range(self.upto)", "[][1]"), "cannot be read: IndexError"),
        (MANIFEST.replace("[pack]", '[pack]\nprotocol = "agent"'), CODE, "does not go with"),
        ('[pack]\nprotocol = "benchmark"\n', CODE, "does not go without"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(
    written: Written, manifest: str, code: str, said: str
) -> None:
    with pytest.raises(PackProblem, match=said) as caught:
        written.write(manifest, code)
    assert "pack.toml" in str(caught.value) or "sums.py" in str(caught.value)


def test_each_change_invalidates_the_least(written: Written) -> None:
    before = written.identity()
    assert written.identity() == before

    comment = written.identity(code=CODE + "# a comment\n")
    assert (comment.task, comment.check != before.check) == (before.task, True)

    version = written.identity(code=CODE.replace('    version = "1"', '    version = "2"'))
    assert version.task != before.task

    gold = written.identity(code=CODE.replace("2 * n", "n + n + 0"))
    assert gold.task == before.task

    shown = written.identity(code=CODE.replace('{"n": n}', '{"n": n + 1}'))
    assert shown.task != before.task

    limits = written.identity(MANIFEST.replace("turns = 3", "turns = 4"))
    assert (limits.task != before.task, limits.check) == (True, before.check)


def test_nothing_is_written_beside_the_benchmark(written: Written) -> None:
    written.write()
    assert sorted(path.name for path in written.folder.iterdir()) == ["pack.toml", "sums.py"]


def test_private_data_says_nothing_of_itself() -> None:
    assert "secret" not in f"{Private({'gold': 'secret'})}"
