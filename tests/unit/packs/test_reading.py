from __future__ import annotations

import os
import re
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_modelbench.errors import PackProblem, PackProblems
from pytest_modelbench.packs.model import Damaged
from pytest_modelbench.packs.reading import find_packs, read_pack, read_packs
from pytest_modelbench.packs.solutions import solution_files
from pytest_modelbench.records import Limits

if TYPE_CHECKING:
    from tests.unit.packs.conftest import Project


DATA = Path(__file__).parents[2] / "data" / "field-reports" / "files"


def test_a_sound_pack_is_read(project: Project) -> None:
    project.write(
        {
            "cases/tiny/pack.toml": '[pack]\nname = "small"\ntitle = "T"\n'
            'tags = ["a"]\nnotes = "n"\n'
            "[limits]\nturns = 5\nseconds = 60\n[check]\nseconds = 9\n"
            '[environment]\npackages = ["pytest==9.2.0", "My_Lib==1.0+x"]\n',
            "cases/tiny/one/case.toml": 'title = "One"\ntags = ["a", "b"]\ngroup = "g"\n'
            "[limits]\nturns = 9\n[check]\nseconds = 4.5\n",
            "cases/tiny/one/prompt.md": "Do\nit.\n\n",
            "cases/tiny/Two/case.toml": 'id = "Two"\nprompt = "Go."\n',
            "cases/tiny/Two/hidden/test_x.py": "",
            "cases/tiny/_notes/x.md": "",
        }
    )
    shutil.move(project.references / "tiny", project.references / "small")
    pack = project.read()
    assert (pack.name, pack.title, pack.protocol) == ("small", "T", "agent")
    assert [case.id for case in pack.cases] == ["Two", "one"]
    one, two = pack.case("one"), pack.case("Two")
    assert (one.title, one.prompt, one.tags, one.group) == ("One", "Do\nit.", ("a", "b"), "g")
    assert one.limits == Limits(turns=9, seconds=60)
    assert two.limits == pack.limits == Limits(turns=5, seconds=60)
    assert (one.check.seconds, two.check.seconds, one.check.mode) == (4.5, 9.0, "separate")
    assert one.environment.packages == ("pytest==9.2.0", "My_Lib==1.0+x")
    assert (one.seed, one.hidden) == (project.case_folder / "seed", project.case_folder / "hidden")
    assert one.reference == project.references / "small" / "one"
    assert one.damaged == (
        Damaged("off", project.references / "small" / "one.damaged" / "off", ("test_adds",)),
    )
    assert (two.seed, two.reference, two.damaged) == (None, None, ())


def test_a_damaged_variant_is_laid_over_the_reference(project: Project) -> None:
    project.write({"references/tiny/one/pkg/more.py": "x = 1\n"})
    case = project.read().case("one")
    assert sorted(solution_files(case)) == ["calc.py", "pkg/more.py"]
    damaged = solution_files(case, "off")
    assert sorted(damaged) == ["calc.py", "pkg/more.py"]
    assert "+ 1" in damaged["calc.py"].read_text()
    with pytest.raises(KeyError):
        solution_files(case, "unheard-of")


def test_the_order_of_a_listing_is_no_matter(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("b", "a", "c"):
        shutil.copytree(project.case_folder, project.pack_folder / name)
    expected = [case.id for case in project.read().cases]
    forward = os.listdir
    monkeypatch.setattr(os, "listdir", lambda *a: sorted(forward(*a), reverse=True))
    assert [case.id for case in project.read().cases] == expected == ["a", "b", "c", "one"]


def test_all_that_is_wrong_is_told_at_once(project: Project) -> None:
    project.write(
        {
            "cases/tiny/pack.toml": '[pack]\nprotcol = "agent"\n[limits]\nturns = "5"\n',
            "cases/tiny/one/case.toml": 'title = "x"\n\nprompt = ""\n',
            "cases/tiny/two/case.toml": "prompt = [\n",
        }
    )
    assert project.problems() == [
        ("cases/tiny/pack.toml", 2, "unknown key 'protcol' in [pack]"),
        ("cases/tiny/pack.toml", 4, "turns is a string, and must be a whole number"),
        ("cases/tiny/one/case.toml", 3, "the prompt is empty"),
        ("cases/tiny/two/case.toml", 1, "is not TOML: Invalid value"),
        ("cases/tiny/two/case.toml", None, "case 'two' has no folder 'hidden'"),
    ]


BAD_MANIFESTS = {
    "protocol": ('[pack]\nprotocol = "chat"\n', 2, "protocol 'chat' is not known"),
    "mode": ('[check]\nmode = "inside"\n', 2, "mode 'inside' is not known"),
    "unpinned": ('[environment]\npackages = ["a==1",\n"b>=2"]\n', 2, "'b>=2' is not a pin"),
    "pinned twice": (
        '[environment]\npackages = ["a.b==1", "A-B==2"]\n',
        2,
        "'A-B==2' pins what 'a.b==1' pins",
    ),
    "name": ('[pack]\nname = "a b"\n', 2, "'a b' cannot be the id of a pack"),
    "name of a place above": ('[pack]\nname = ".."\n', 2, "'..' cannot be the id of a pack"),
    "long name": (
        f'[pack]\nname = "{"n" * 300}"\n',
        2,
        f"the id '{'n' * 57}…' of a pack has 300 characters",
    ),
    "check for ever": ("[check]\nseconds = 1e308\n", 2, "seconds is far too large"),
    "threshold": (
        "[check]\nthreshold = 0.8\n",
        2,
        "threshold means nothing here: hidden checks hold or not, and give no reward between",
    ),
    "threshold too high": ("[check]\nthreshold = 1.5\n", 2, "threshold is 1.5"),
    "table": ("pack = 3\n", 1, "pack is a whole number, and must be a table"),
    "network": ("[environment]\nnetwork = true\n", 2, "unknown key 'network' in [environment]"),
}


@pytest.mark.parametrize("name", BAD_MANIFESTS)
def test_a_bad_pack_manifest(project: Project, name: str) -> None:
    text, line, what = BAD_MANIFESTS[name]
    project.write({"cases/tiny/pack.toml": text})
    assert ("cases/tiny/pack.toml", line, what) in project.problems()


def test_missing_parts(project: Project) -> None:
    shutil.rmtree(project.case_folder / "hidden")
    (project.case_folder / "case.toml").write_text("")
    project.write({"cases/tiny/lost/seed/x.py": ""})
    assert project.problems() == [
        ("cases/tiny/lost", None, "the folder 'lost' has no case.toml"),
        ("cases/tiny/one/case.toml", None, "case 'one' has no prompt"),
        ("cases/tiny/one/case.toml", None, "case 'one' has no folder 'hidden'"),
    ]


def test_a_hidden_folder_without_a_check(project: Project) -> None:
    (project.case_folder / "hidden" / "test_calc.py").rename(
        project.case_folder / "hidden" / "calc.py"
    )
    assert project.problems() == [("cases/tiny/one/hidden", None, "holds no hidden check")]


def test_a_pack_without_manifest_or_cases(project: Project, tmp_path: Path) -> None:
    with pytest.raises(PackProblem, match=r"pack.toml: cannot be read: No such file"):
        read_pack(tmp_path / "nowhere", project.references)
    shutil.rmtree(project.case_folder)
    shutil.rmtree(project.references)
    assert project.problems() == [("cases/tiny/pack.toml", None, "pack 'tiny' has no case")]


def test_two_prompts(project: Project) -> None:
    project.write({"cases/tiny/one/prompt.md": "Or this."})
    assert project.problems() == [
        ("cases/tiny/one/case.toml", 1, "the prompt stands in prompt.md, too")
    ]


def test_a_misspelt_folder_of_a_case(project: Project) -> None:
    (project.case_folder / "seed").rename(project.case_folder / "seeds")
    assert project.problems() == [
        ("cases/tiny/one/seeds", None, "the folder 'seeds' has no meaning in a case")
    ]


def test_references_must_belong_to_a_case(project: Project) -> None:
    (project.references / "tiny" / "one").rename(project.references / "tiny" / "on")
    assert project.problems() == [
        (
            "references/tiny/one.damaged",
            None,
            "damages a reference that does not exist",
        ),
        ("references/tiny/on", None, "is the reference of no case of this pack"),
    ]


def test_damaged_variants_must_say_what_they_lose(project: Project) -> None:
    project.write(
        {
            "references/tiny/one.damaged/off/damaged.toml": "\nloses = []\n",
            "references/tiny/one.damaged/mute/calc.py": "",
            "references/tiny/one.damaged/a b/damaged.toml": 'loses = ["test_adds"]\n',
            "references/tiny/one.damaged/typo/damaged.toml": "\nloses = ['test_ads[1]']\n",
            "references/tiny/one.damaged/typo/calc.py": "",
            "references/tiny/one.damaged/stray.py": "",
        }
    )
    assert project.problems() == [
        (
            "references/tiny/one.damaged/a b",
            None,
            "'a b' cannot be the id of a damaged variant",
        ),
        ("references/tiny/one.damaged/mute", None, "has no damaged.toml"),
        (
            "references/tiny/one.damaged/off/damaged.toml",
            2,
            "names no check that this variant loses",
        ),
        ("references/tiny/one.damaged/stray.py", None, "is not the folder of a damaged variant"),
        (
            "references/tiny/one.damaged/typo/damaged.toml",
            2,
            "names the check 'test_ads[1]', which no hidden file has",
        ),
    ]


CONFTEST = "raise RuntimeError('run')\n"


@pytest.mark.parametrize(
    "place",
    [
        "cases/tiny/conftest.py",
        "cases/tiny/one/conftest.py",
        "cases/tiny/one/tests/conftest.py",
        "cases/tiny/testing/conftest.py",
        "cases/tiny/pytest.ini",
        "cases/tiny/one/pyproject.toml",
        "cases/tiny/one/setup.cfg",
    ],
)
def test_what_pytest_would_run_or_obey(project: Project, place: str) -> None:
    project.write({place: CONFTEST})
    found = [problem for problem in project.problems() if problem[0] == place]
    assert len(found) == 1
    assert "pytest would" in found[0][2]


def test_a_case_named_test_with_a_conftest(project: Project) -> None:
    shutil.copytree(project.case_folder, project.pack_folder / "test-one")
    assert project.problems() == []
    project.write({"cases/tiny/test-one/conftest.py": CONFTEST})
    assert [problem[0] for problem in project.problems()] == ["cases/tiny/test-one/conftest.py"]


def test_seeds_may_hold_tests_of_their_own(tmp_path: Path) -> None:
    """FR24: tests, conftest and ini file of a seed are the seed's."""
    _converted("FR24-seed-with-tests", tmp_path)
    pack = read_pack(tmp_path / "cases", tmp_path / "references")
    assert [case.id for case in pack.cases] == ["one", "two"]
    assert pack.name == "seed-with-tests"
    assert pack.case("one").prompt == "Repair add() in calc.py."


def test_the_certification_pack_is_read(tmp_path: Path) -> None:
    """FR33: what certification finds out is no matter of reading."""
    _converted("FR33-certification", tmp_path)
    pack = read_pack(tmp_path / "cases", tmp_path / "references")
    assert [case.id for case in pack.cases] == [
        "check-broken",
        "reference-fails",
        "seed-already-passes",
        "sound",
    ]
    assert all(case.reference for case in pack.cases)


def _converted(name: str, root: Path) -> None:
    """Put a field report's pack into our layout."""
    pack = re.search(r"^name: (\S+)$", (DATA / name / "pack.yaml").read_text(), re.MULTILINE)
    assert pack
    for source in sorted((DATA / name / "cases").iterdir()):
        case = root / "cases" / source.name
        shutil.copytree(source / "seed", case / "seed")
        (case / "hidden").mkdir()
        check = (source / "checks" / "check_calc.py").read_text()
        (case / "hidden" / "test_calc.py").write_text(check)
        (case / "prompt.md").write_bytes((source / "prompt.md").read_bytes())
        (case / "case.toml").write_text("")
        shutil.copytree(source / "reference", root / "references" / pack[1] / source.name)
    (root / "cases" / "pack.toml").write_text(f'[pack]\nname = "{pack[1]}"\n')


ODD_IDS = re.findall(r'id: ("(?:[^"\\]|\\.)*")', (DATA / "FR23-odd-ids.yaml").read_text("utf-8"))
WORKS = {'"CON"', '"ends-in-dot."'}


@pytest.mark.parametrize("quoted", ODD_IDS)
def test_an_odd_id_works_or_is_refused_with_its_line(project: Project, quoted: str) -> None:
    """FR23: as the case's ``id``, and as its folder where there can be such a folder."""
    project.write({"cases/tiny/one/case.toml": f'prompt = "x"\nid = {quoted}\n'})
    shown = project.problems()
    assert ("cases/tiny/one/case.toml", 2) in {problem[:2] for problem in shown}
    assert any("cannot be the id" in what or "characters" in what for *_, what in shown) == (
        quoted not in WORKS
    )
    text = quoted[1:-1].encode().decode("unicode_escape")
    if "/" in text:
        return
    project.write({"cases/tiny/one/case.toml": 'prompt = "x"\n'})
    project.case_folder.rename(project.pack_folder / text)
    refused = [what for place, _, what in project.problems() if place.startswith("cases/")]
    assert bool(refused) == (quoted not in WORKS)


def test_the_odd_ids_are_those_of_the_report() -> None:
    assert len(ODD_IDS) == 14


def test_a_repeated_id_is_told(project: Project) -> None:
    """FR23: an id is a folder's name, so that two cases can only differ in upper and lower case."""
    shutil.copytree(project.case_folder, project.pack_folder / "ONE")
    (problem,) = project.problems()
    assert problem[0] == "cases/tiny/one/case.toml"
    assert re.fullmatch(
        r"the id 'one' differs from 'ONE' \(.*/ONE/case.toml\) only in case", problem[2]
    )
    project.write({"cases/tiny/ONE/case.toml": 'prompt = "x"\nid = "one"\n'})
    assert ("cases/tiny/ONE/case.toml", 2) in {found[:2] for found in project.problems()}


def test_a_case_named_like_the_damaged_variants_of_another(project: Project) -> None:
    shutil.copytree(project.case_folder, project.pack_folder / "one.damaged")
    assert [place for place, *_ in project.problems()][:1] == ["cases/tiny/one.damaged/case.toml"]


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("cases/tiny/one/seed/link", "../hidden/test_calc.py"),
        ("cases/tiny/one/seed/link", "../hidden"),
        ("cases/tiny/one/seed/deep/link", "../../seed/calc.py"),
        ("cases/tiny/one/seed/link", "/etc/passwd"),
        ("cases/tiny/one/seed/link", "../../../../gone"),
        ("cases/tiny/one/seed/link", "link"),
        ("cases/tiny/one/hidden/link", "../seed/calc.py"),
        ("references/tiny/one/link", "calc.py"),
        ("references/tiny/one/link", "/etc/passwd"),
        ("references/tiny/one.damaged/off/link", "calc.py"),
        ("cases/tiny/linked-case", "one"),
    ],
)
def test_links_that_leave_their_folder(project: Project, link: str, target: str) -> None:
    path = project.root / link
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(target)
    (problem,) = project.problems()
    assert problem[0] == link
    assert "symbolic link" in problem[2]


def test_a_chain_of_links_that_leaves(project: Project) -> None:
    seed = project.case_folder / "seed"
    (seed / "out").symlink_to("../hidden")
    (seed / "in").symlink_to("out/test_calc.py")
    assert [place for place, *_ in project.problems()] == [
        "cases/tiny/one/seed/in",
        "cases/tiny/one/seed/out",
    ]


@pytest.mark.parametrize("beside", ['mode = "in-process"', 'least_trust = "evident"'])
def test_a_judge_is_for_checks_that_may_be_judged(project: Project, beside: str) -> None:
    manifest = "cases/tiny/pack.toml"
    project.write({manifest: f'[pack]\n[check]\njudge = "wise"\n{beside}\n'})
    what = "a judge is asked by checks of mode separate, and its verdicts are judged"
    assert project.problems() == [(manifest, 3, what)]
    project.write({manifest: '[pack]\n[check]\njudge = "wise"\n'})
    assert project.read().case("one").check.judge == "wise"


@pytest.mark.parametrize("part", ["seed", "hidden"])
def test_a_part_that_is_a_link(project: Project, part: str) -> None:
    folder = project.case_folder / part
    folder.rename(project.root / "elsewhere")
    folder.symlink_to(project.root / "elsewhere")
    assert project.problems() == [(f"cases/tiny/one/{part}", None, "is not a folder of its own")]


def test_links_within_a_seed_are_fine(project: Project) -> None:
    seed = project.case_folder / "seed"
    (seed / "pkg").mkdir()
    (seed / "pkg" / "same.py").symlink_to("../calc.py")
    (seed / "here").symlink_to("pkg")
    assert project.problems() == []


def test_repositories_and_special_files(project: Project) -> None:
    project.write(
        {"cases/tiny/one/seed/sub/.git/HEAD": "x", "references/tiny/one/.git": "gitdir: x"}
    )
    os.mkfifo(project.case_folder / "seed" / "pipe")
    place = os.fsencode(project.case_folder / "seed") + b"/\xff.py"
    Path(os.fsdecode(place)).write_text("")
    with socket.socket(socket.AF_UNIX) as end:
        here = Path.cwd()
        os.chdir(project.case_folder / "hidden")  # the path of a socket is short
        try:
            end.bind("socket")
        finally:
            os.chdir(here)
    found = {(Path(place).name, what) for place, _, what in project.problems()}
    repository = "is a repository inside of a pack, and its history may hold the answer"
    assert found == {
        (".git", repository),
        ("pipe", "is neither a file nor a folder"),
        ("socket", "is neither a file nor a folder"),
        ("\udcff.py", "has a name that is not UTF-8"),
    }


def test_find_packs(project: Project, make_project: Callable[[str], Project]) -> None:
    other = make_project("other")
    project.write(
        {
            "cases/tiny/one/seed/pack.toml": "",  # part of a seed, not a pack
            "cases/.hidden/pack.toml": "",
            "venv/pyvenv.cfg": "",
            "venv/lib/pack.toml": "",
        }
    )
    packs = [other.pack_folder, project.pack_folder]
    assert find_packs([project.root]) == sorted(packs)
    assert find_packs([project.root / "cases", project.root]) == sorted(packs)
    assert find_packs([project.pack_folder]) == [project.pack_folder]
    assert find_packs([project.case_folder]) == [project.pack_folder]
    assert find_packs([project.references]) == []


def test_packs_share_no_name_and_problems_are_told_together(
    project: Project, make_project: Callable[[str], Project]
) -> None:
    other, third = make_project("other"), make_project("third")
    other.write({"cases/tiny/pack.toml": '[pack]\nname = "TINY"\n'})
    third.write({"cases/tiny/pack.toml": '[pack]\nname = "fine"\n'})
    shutil.rmtree(third.references)
    folders = [project.pack_folder, other.pack_folder]
    with pytest.raises(PackProblem, match="pack 'TINY' has the name of"):
        read_packs(folders, project.references)
    third.write({"cases/tiny/one/case.toml": ""})
    with pytest.raises(PackProblems) as caught:
        read_packs([*folders, third.pack_folder], project.references)
    assert len(caught.value.problems) == 2
    third.write({"cases/tiny/one/case.toml": 'prompt = "x"'})
    read = read_packs([project.pack_folder, third.pack_folder], project.references)
    assert [pack.name for pack in read] == ["fine", "tiny"]
