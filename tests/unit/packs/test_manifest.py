from __future__ import annotations

import contextlib
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_modelbench.errors import PackProblem, PackProblems
from pytest_modelbench.packs.manifest import Manifest, Problems, key_lines, read_prose

TRICKY = '''\
# [comment]
title = "a # no comment" # a comment
prompt = """
[limits]
turns = 1 \\""" = x
"""

[limits] # = 7
  turns = 3
"wall_seconds" = 4
[check.'in ner']
list = [
  "]", # ]
  'b[', [1, 2,
  3],
]
inline = { a = "}", b = 2 }
last.key = 1
'''


def test_key_lines() -> None:
    assert key_lines(TRICKY) == {
        ("title",): 2,
        ("prompt",): 3,
        ("limits",): 8,
        ("limits", "turns"): 9,
        ("limits", "wall_seconds"): 10,
        ("check",): 11,
        ("check", "in ner"): 11,
        ("check", "in ner", "list"): 12,
        ("check", "in ner", "inline"): 17,
        ("check", "in ner", "last"): 18,
        ("check", "in ner", "last", "key"): 18,
    }


KEYS = st.text("abc-_12", min_size=1, max_size=4) | st.text(max_size=4)
SCALARS = st.integers(-5, 5) | st.booleans() | st.text(max_size=8)


def _quoted(text: str) -> str:
    out = '"'
    for char in text:
        plain = char.isprintable() and char not in '"\\' and ord(char) < 0xD800
        out += char if plain else f"\\U{ord(char):08x}"
    return out + '"'


@given(st.dictionaries(KEYS.filter(str.isprintable), SCALARS | st.lists(SCALARS, max_size=3)))
def test_every_key_of_any_table_has_its_line(values: dict[str, object]) -> None:
    lines, where = [], {}
    for number, (key, value) in enumerate(values.items()):
        lines.append("")
        where[(key,)] = 2 * number + 2
        shown = value if isinstance(value, list) else [value]
        items = ",".join(_quoted(v) if isinstance(v, str) else str(v).lower() for v in shown)
        lines.append(f"{_quoted(key)} = [{items}]")
    text = "\n".join(lines)
    assert list(tomllib.loads(text)) == list(values)
    assert key_lines(text) == where


@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda text: text.encode("utf-8")))
def test_garbage_is_a_problem_and_no_crash(tmp_path: Path, garbage: bytes) -> None:
    path = tmp_path / "case.toml"
    path.write_bytes(garbage)
    problems = Problems()
    manifest = Manifest(path, problems)
    manifest.take_text("title")
    manifest.take_texts("tags")
    manifest.take_table("limits").take_number("turns", whole=True)
    manifest.finish()
    assert manifest.sound or len(problems)
    with contextlib.suppress(PackProblem):
        problems.check()


FRAGMENTS = ("[", "]", "{", "}", "=", ".", "\n", '"""', "'''", '"', "'", "#", "\\", "a", "1", ",")


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join))
def test_the_line_finder_survives_what_toml_is_made_of(text: str) -> None:
    lines = key_lines(text) if _is_toml(text) else {}
    assert set(lines) >= ({(key,) for key in tomllib.loads(text)} if _is_toml(text) else set())


def _is_toml(text: str) -> bool:
    try:
        tomllib.loads(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    ("data", "line", "what"),
    [
        (b"a = 1\nb = \n", 2, "not TOML"),
        (b"a = 1\n\xff\n", 2, "not UTF-8"),
        (b"a = 1\na = 2\n", 2, "not TOML"),
        (b"a = " + b"9" * 5000, None, "not TOML"),
        (b"a = " + b"[" * 20000, None, "nested too deeply"),
    ],
)
def test_what_is_no_manifest(tmp_path: Path, data: bytes, line: int | None, what: str) -> None:
    path = tmp_path / "pack.toml"
    path.write_bytes(data)
    problems = Problems()
    assert not Manifest(path, problems).sound
    with pytest.raises(PackProblem, match=what) as caught:
        problems.check()
    assert (caught.value.path, caught.value.line) == (path, line)


def test_a_byte_order_mark_is_no_matter(tmp_path: Path) -> None:
    path = tmp_path / "pack.toml"
    path.write_bytes(b'\xef\xbb\xbf\r\ntitle = "x"\r\n')
    manifest = Manifest(path, Problems())
    assert manifest.take_text("title") == "x"
    assert manifest.line("title") == 2


def test_a_file_that_is_missing_or_a_folder(tmp_path: Path) -> None:
    problems = Problems()
    Manifest(tmp_path / "pack.toml", problems)
    Manifest(tmp_path, problems)
    with pytest.raises(PackProblems) as caught:
        problems.check()
    assert [one.path for one in caught.value.problems] == [tmp_path / "pack.toml", tmp_path]


WRONG_TYPES = """\
text = 1
texts = "a"
more = ["a", "a"]
empty = [""]
number = true
whole = 1.5
zero = 0
huge = inf
table = []
choice = "c"
"""


def test_each_wrong_value_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(WRONG_TYPES)
    problems = Problems()
    manifest = Manifest(path, problems)
    assert manifest.take_text("text", "else") == "else"
    assert manifest.take_texts("texts") == ()
    assert manifest.take_texts("more") == ()
    assert manifest.take_texts("empty") == ()
    for key, whole in (("number", False), ("whole", True), ("zero", True), ("huge", False)):
        assert manifest.take_number(key, whole=whole) is None
    manifest.take_table("table").finish()
    assert manifest.take_choice("choice", ("a", "b"), "a") == "a"
    manifest.finish()
    with pytest.raises(PackProblems) as caught:
        problems.check()
    assert [one.line for one in caught.value.problems] == list(range(1, 11))


def test_an_unknown_key_is_told_with_the_nearest(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text("[limits]\nturn = 3\n")
    problems = Problems()
    manifest = Manifest(path, problems)
    limits = manifest.take_table("limits")
    limits.take_number("turns", whole=True)
    limits.finish()
    manifest.finish()
    with pytest.raises(
        PackProblem, match=r"unknown key 'turn' in \[limits\]; did you mean 'turns'"
    ):
        problems.check()


def test_prose_has_one_form(tmp_path: Path) -> None:
    path = tmp_path / "prompt.md"
    path.write_bytes(b"\n one\r\ntwo \r\n\r\n")
    assert read_prose(path, Problems()) == "one\ntwo"
