from __future__ import annotations

import json
import math
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any  # Any: text or bytes, as the file was opened

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from pytest_modelbench import identity
from pytest_modelbench.candidates.agent_version import AGENT_VERSION
from pytest_modelbench.errors import PackProblem, RegistryProblem
from pytest_modelbench.identity import (
    candidate_digest,
    canonical,
    content_files,
    digest,
    folder_digest,
)
from pytest_modelbench.packs.identities import CaseIdentity, identity_of
from pytest_modelbench.packs.reading import read_pack
from pytest_modelbench.packs.writing import new_pack
from pytest_modelbench.records import Candidate, Limits
from pytest_modelbench.today import identifier

PROTOCOL: dict[str, JsonValue] = {"version": "1", "tools": ["read", "write"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a small folder."""
    root = tmp_path / "folder"
    (root / "pkg").mkdir(parents=True)
    (root / "b.py").write_text("b\n")
    (root / "pkg" / "a.py").write_text("a\n")
    return root


def test_digests_are_32_hexadecimal_characters(folder: Path) -> None:
    for found in (digest({"a": 1}), folder_digest(folder)):
        assert len(found) == 32
        assert int(found, 16) >= 0


def test_digests_stay_what_they_are(folder: Path) -> None:
    """A changed form would make every stored result stale: that needs to be meant."""
    assert digest({"b": [1, None, 0.5], "a": "é"}) == "ab60e32069aab8b02af3aed013998707"
    assert folder_digest(folder) == "a35fa1988ec129303385270a865975fb"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (0.0, 0),
        (-0.0, 0),
        ([600.0], [600]),
        ({"x": {"y": 1, "z": 2.0}}, {"x": {"z": 2, "y": 1.0}}),
    ],
)
def test_what_is_the_same(one: object, other: object) -> None:
    assert digest(one) == digest(other)  # type: ignore[arg-type]  # plain data, of many types


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (0, False),
        (1, True),
        (1, "1"),
        (None, "null"),
        (None, 0),
        (0.1, 0.2),
        (math.nan, math.inf),
        (math.nan, None),
        ([1, 2], [2, 1]),
        ("\ud800", "\ufffd"),
        ("\ud800", "?"),
        (2**60, 2**60 + 1),
    ],
)
def test_what_differs(one: object, other: object) -> None:
    assert digest(one) != digest(other)  # type: ignore[arg-type]  # plain data, of many types


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_any_plain_data_has_a_canonical_form(value: object) -> None:
    data = canonical(value)  # type: ignore[arg-type]  # plain data, of many types
    assert data.isascii()
    assert canonical(json.loads(data)) == data


CHANGES: dict[str, Callable[[Path], object]] = {
    "a byte": lambda root: (root / "b.py").write_text("c\n"),
    "a name": lambda root: (root / "b.py").rename(root / "c.py"),
    "a folder": lambda root: (root / "b.py").rename(root / "pkg" / "b.py"),
    "a new file": lambda root: (root / "c.py").write_text(""),
    "a lost file": lambda root: shutil.move(root / "b.py", root.parent),
    "the executable bit": lambda root: (root / "b.py").chmod(0o755),
    "a link": lambda root: (root / "c.py").symlink_to("b.py"),
    "swapped files": lambda root: (
        (root / "b.py").write_text("a\n"),
        (root / "pkg" / "a.py").write_text("b\n"),
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_changes_a_folder(folder: Path, name: str) -> None:
    before = folder_digest(folder)
    CHANGES[name](folder)
    assert folder_digest(folder) != before


def _caches(root: Path) -> None:
    for name in ("__pycache__", ".git", ".pytest_cache", "pkg/__pycache__"):
        (root / name).mkdir()
        (root / name / "x").write_text("x")
    for name in ("b.pyc", ".DS_Store", "pkg/Thumbs.db"):
        (root / name).write_text("x")


def _write_anew(root: Path) -> None:
    (root / "b.py").unlink()
    (root / "b.py").write_text("b\n")


NO_CHANGES: dict[str, Callable[[Path], object]] = {
    "times": lambda root: os.utime(root / "b.py", (1, 1)),
    "group's rights": lambda root: (root / "b.py").chmod(0o600),
    "an empty folder": lambda root: (root / "empty").mkdir(),
    "caches": _caches,
    "written anew": _write_anew,
}


@pytest.mark.parametrize("name", NO_CHANGES)
def test_what_does_not_change_a_folder(folder: Path, name: str) -> None:
    before = folder_digest(folder)
    NO_CHANGES[name](folder)
    assert folder_digest(folder) == before


def test_a_copy_elsewhere_has_the_same_digest(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    assert folder_digest(tmp_path / "copy") == folder_digest(folder)


def test_links_count_by_their_targets(folder: Path) -> None:
    (folder / "c.py").symlink_to("b.py")
    before = folder_digest(folder)
    (folder / "c.py").unlink()
    (folder / "c.py").symlink_to("pkg/a.py")
    assert folder_digest(folder) != before


def test_what_is_left_out(folder: Path) -> None:
    (folder / "pkg" / "damaged.toml").write_text("x")
    before = folder_digest(folder, leave_out=("damaged.toml",))
    (folder / "damaged.toml").write_text("x")
    assert folder_digest(folder, leave_out=("damaged.toml",)) == before
    (folder / "pkg" / "damaged.toml").write_text("y")
    assert folder_digest(folder, leave_out=("damaged.toml",)) != before


def test_names_that_are_no_text(folder: Path) -> None:
    before = folder_digest(folder)
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff.py")).write_text("")
    assert folder_digest(folder) != before
    assert [file.name for file in content_files(folder)] == ["b.py", "pkg/a.py", "\udcff.py"]


def test_settled_files_are_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    later = time.time() + 60
    monkeypatch.setattr(time, "time", lambda: later)
    before = folder_digest(folder)
    read: list[Path] = []
    opened = Path.open

    def noting(path: Path, mode: str) -> IO[Any]:
        read.append(path)
        return opened(path, mode)

    monkeypatch.setattr(Path, "open", noting)
    assert folder_digest(folder) == before
    assert read == []
    shutil.copy(folder / "pkg" / "a.py", folder / "b.py")
    assert folder_digest(folder) != before
    assert read == [folder / "b.py"]


def test_a_change_within_one_tick_is_seen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of equal size and time stamps can have other bytes, as long as it is young."""
    monkeypatch.setattr(identity, "_SETTLED_SECONDS", 3600.0)  # it is, on a busy machine too
    status = (folder / "b.py").stat()
    before = folder_digest(folder)
    (folder / "b.py").write_text("c\n")
    os.utime(folder / "b.py", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert folder_digest(folder) != before
    assert not [path for path in identity._known_files if path.is_relative_to(folder)]


@pytest.fixture
def identify(tmp_path: Path) -> Callable[[], CaseIdentity]:
    """Return what identifies the case of a new pack as its files are then."""
    new_pack("mine", tmp_path / "cases", tmp_path / "references")

    def of_the_case() -> CaseIdentity:
        (case,) = read_pack(tmp_path / "cases" / "mine", tmp_path / "references").cases
        return identity_of(case, protocol=PROTOCOL, grader="1")

    return of_the_case


PACK, CASE = "cases/mine/pack.toml", "cases/mine/clamp/case.toml"

EDITS = [
    (CASE, "`clamp(12, 0, 10)` must be 10", "`clamp(12, 0, 10)` should be 10", "task"),
    ("cases/mine/clamp/seed/limits.py", "nearer of", "nearest of", "task"),
    (PACK, "turns = 12", "turns = 13", "task"),
    (PACK, "seconds = 300 ", "seconds = 301 ", "task"),
    (CASE, 'tags = ["fixes-bug"]', "limits.turns = 3", "task"),
    (PACK, "[check]", '[environment]\npackages = ["a==1"]\n[check]', "task"),
    ("cases/mine/clamp/hidden/test_limits.py", "10.5", "11.5", "check"),
    (PACK, "seconds = 60 ", "seconds = 61 ", "check"),
    (PACK, "[check]", '[check]\nversions = ["pluggy"]', "check"),
    ("references/mine/clamp/limits.py", "min(number, high)", "min(high, number)", "reference"),
    ("references/mine/clamp.damaged/only-above/limits.py", "min(", " min(", "reference"),
    (
        "references/mine/clamp.damaged/only-above/damaged.toml",
        '"test_below"',
        '"test_above"',
        "reference",
    ),
    (PACK, "turns = 12", "# a comment\nturns = 12", ""),
    (PACK, "seconds = 300 ", "seconds = 300.0 ", ""),
    (PACK, 'title = "mine', 'notes = "x"\ntitle = "yours', ""),
    (CASE, 'title = "Fix one function"', 'group = "g"\ntitle = "Mend"', ""),
    (CASE, '["fixes-bug"]', '["other"]', ""),
    ("references/mine/clamp.damaged/only-above/damaged.toml", "# This", "# That", ""),
]


@pytest.mark.parametrize(("file", "old", "new", "part"), EDITS)
def test_each_edit_changes_its_part_and_no_other(
    tmp_path: Path,
    identify: Callable[[], CaseIdentity],
    file: str,
    old: str,
    new: str,
    part: str,
) -> None:
    before = identify()
    text = (tmp_path / file).read_text()
    assert text.count(old) >= 1
    (tmp_path / file).write_text(text.replace(old, new, 1))
    after = identify()
    assert {name for name in before._fields if getattr(before, name) != getattr(after, name)} == (
        {part} if part else set()
    )


def test_the_order_of_keys_and_tables_is_no_matter(
    tmp_path: Path, identify: Callable[[], CaseIdentity]
) -> None:
    before = identify()
    pack = tmp_path / PACK
    tables = pack.read_text().split("\n\n")
    turned = []
    for table in reversed(tables):
        head, *keys = table.strip().splitlines()
        turned.append("\n".join([head, *reversed(keys)]))
    pack.write_text("\n\n".join(turned))
    assert pack.read_text().splitlines()[-1].startswith("# A pack")
    assert identify() == before


def test_a_prompt_is_the_same_in_a_file_of_its_own(
    tmp_path: Path, identify: Callable[[], CaseIdentity]
) -> None:
    before = identify()
    case = tmp_path / CASE
    head, prompt, _ = case.read_text().split('"""')
    case.write_text(head.replace("prompt = ", ""))
    (case.parent / "prompt.md").write_bytes(prompt.replace("\n", "\r\n").encode())
    assert identify() == before


def test_protocol_and_grader_enter(tmp_path: Path, identify: Callable[[], CaseIdentity]) -> None:
    before = identify()
    (case,) = read_pack(tmp_path / "cases" / "mine", tmp_path / "references").cases
    other = identity_of(case, protocol=PROTOCOL | {"version": "2"}, grader="2")
    assert other.task != before.task
    assert other.check != before.check
    assert other.reference == before.reference


def test_a_library_of_the_checks_that_is_missing(
    tmp_path: Path, identify: Callable[[], CaseIdentity]
) -> None:
    pack = tmp_path / PACK
    pack.write_text(pack.read_text().replace("[check]", '[check]\nversions = ["no-such-thing"]'))
    with pytest.raises(PackProblem, match="need 'no-such-thing', which is not installed"):
        identify()


CANDIDATE = Candidate(
    name="local",
    model="openai/x",
    api_base="http://h/v1",
    params={"temperature": 0.7, "seed": 1},
    limits=Limits(turns=5),
)


@pytest.mark.parametrize(
    "change",
    [
        {"model": "openai/y"},
        {"api_base": "http://g/v1"},
        {"same_as": "http://g/v1"},
        {"params": {"temperature": 0.8, "seed": 1}},
        {"params": {}},
        {"tuning": {"failure_limit": 3}},
        {"limits": Limits(turns=6)},
        {"options": {"a": 1}},
        {"agent": "scripted"},
    ],
)
def test_what_makes_another_candidate(change: dict[str, object]) -> None:
    other = CANDIDATE.model_copy(update=change)
    assert candidate_digest(other, "1") != candidate_digest(CANDIDATE, "1")


@pytest.mark.parametrize(
    "change",
    [
        {"name": "other"},
        {"api_key_env": "KEY"},
        {"server": "gpu0"},
        {"note": "n"},
        {"facts": {"mode": "chat"}},
        {"list_price_of": "gpt"},
        {"price": {"input": 1.0}},
        {"params": {"seed": 1, "temperature": 0.7}},
        {"api_base": "http://h/v1/"},
        {"api_base": "http://new/v1", "same_as": "http://h/v1"},
    ],
)
def test_what_is_the_same_candidate(change: dict[str, object]) -> None:
    other = CANDIDATE.model_copy(update=change)
    assert candidate_digest(other, "1") == candidate_digest(CANDIDATE, "1")


def test_a_window_that_a_fact_tells_counts_where_the_tuning_names_none(tmp_path: Path) -> None:
    new_pack("mine", tmp_path / "cases", tmp_path / "references")
    (case, *_) = read_pack(tmp_path / "cases" / "mine", tmp_path / "references").cases

    def found(**fields: object) -> str:
        return identifier()(case, CANDIDATE.model_copy(update=fields)).candidate

    told = found(facts={"max_input_tokens": 4096})
    assert told not in (found(), found(facts={"max_input_tokens": 8192}))
    assert told == found(facts={"max_input_tokens": 4096, "mode": "chat"})
    # What the tuning says goes before it, and counts by itself; results of such candidates stay.
    tuned = {"context_tokens": 4096}
    assert found(tuning=tuned) == found(tuning=tuned, facts={"max_input_tokens": 8192})
    assert found(tuning=tuned) == candidate_digest(
        CANDIDATE.model_copy(update={"tuning": tuned}), AGENT_VERSION
    )


def test_the_agent_is_part_of_the_candidate() -> None:
    assert candidate_digest(CANDIDATE, "1") != candidate_digest(CANDIDATE, "2")


def test_a_script_counts_by_its_content(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[]")
    (tmp_path / "b.json").write_text("[]")
    one, other = (
        Candidate(name="s", agent="scripted", script=str(tmp_path / name))
        for name in ("a.json", "b.json")
    )
    assert candidate_digest(one, "1") == candidate_digest(other, "1")
    (tmp_path / "b.json").write_text("[1]")
    assert candidate_digest(one, "1") != candidate_digest(other, "1")
    (tmp_path / "b.json").unlink()
    with pytest.raises(RegistryProblem, match=r"b\.json: the script of 's' cannot be read"):
        candidate_digest(other, "1")
