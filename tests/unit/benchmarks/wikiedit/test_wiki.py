"""Editing a wiki: revisions, conflicts, moves, links; and what is asserted of the pages."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from pytest_modelbench.benchmarks.tools import run_tool
from pytest_modelbench.benchmarks.wikiedit.pages import links_of, redirect_of, touched
from pytest_modelbench.benchmarks.wikiedit.provider import WikiEdit
from pytest_modelbench.benchmarks.wikiedit.rules import WIKI

State = dict[str, Any]  # Any: plain data, which the asserts judge

A = "# A\n\nSee [[B]].\n\n## Old\n\nx\n"
B = "# B\n\n[[C|there]] and [[D#Top]]\n"
START: State = {
    "wiki": {
        "pages": [
            {
                "title": "A",
                "revision": 3,
                "by": "ann",
                "text": A,
            },
            {
                "title": "B",
                "revision": 1,
                "by": "bob",
                "text": B,
            },
            {"title": "C", "revision": 2, "by": "ann", "text": "#REDIRECT [[B]]\n"},
        ],
        "pending": [{"id": "p", "title": "B", "by": "zoe", "text": "# B\n\nnew\n"}],
    }
}


@pytest.fixture
def world() -> State:
    return copy.deepcopy(START)


def call(world: State, name: str, **arguments: Any) -> str:
    (tool,) = [one for one in WikiEdit(Path(), {}).acts(world) if one.name == name]
    return run_tool(tool, arguments)[0]


def holds(world: State, kind: str, **said: object) -> bool:
    return WIKI.check(world, {"type": kind, **said})


def test_an_edit_makes_a_revision(world: State) -> None:
    assert call(world, "edit_page", title="A", base_revision=3, text="new\n") == (
        "A is at revision 4."
    )
    assert call(world, "read_page", title="A") == "A, revision 4, by assistant\n\nnew\n"
    assert call(world, "read_revision", title="A", revision=3).startswith("# A")
    assert "revision 3, by ann" in call(world, "page_history", title="A")
    assert "no revision 2" in call(world, "read_revision", title="A", revision=2)
    assert call(world, "edit_page", title="A", base_revision=4, text="new\n").endswith("4.")


def test_who_edits_what_another_has_changed_has_a_conflict(world: State) -> None:
    assert "[[C|there]]" in call(world, "read_page", title="B")
    text = call(world, "replace_in_page", title="B", base_revision=1, old="# B", new="# b")
    assert "conflict: B is at revision 2, by zoe, and you edited revision 1" in text
    assert world["wiki"]["pages"][1]["text"] == "# B\n\nnew\n"
    assert "revision 2, by zoe" in call(world, "read_page", title="B")
    done = call(world, "replace_in_page", title="B", base_revision=2, old="new", new="newer")
    assert done == "B is at revision 3."


def test_what_is_refused_changes_nothing(world: State) -> None:
    before = copy.deepcopy(world)
    said = [
        call(world, "edit_page", title="Z", base_revision=1, text=""),
        call(world, "replace_in_page", title="A", base_revision=3, old="", new="y"),
        call(world, "replace_in_page", title="A", base_revision=3, old="nowhere", new="y"),
        call(world, "replace_in_page", title="A", base_revision=3, old="\n", new=" "),
        call(world, "create_page", title="A", text=""),
        call(world, "create_page", title="x]]", text=""),
        call(world, "create_page", title=" x", text=""),
        call(world, "move_page", title="A", to="B"),
        call(world, "move_page", title="A", to="a|b"),
    ]
    assert all(one.startswith("Error: ") for one in said)
    assert world == before


def test_searching_and_links(world: State) -> None:
    assert call(world, "search_pages", text="SEE") == "A: See [[B]]."
    assert call(world, "pages_that_link_to", title="B") == "A\nC"
    assert call(world, "broken_links") == "B → D"
    assert call(world, "list_pages") == "A\nB\nC"
    b = world["wiki"]["pages"][1]
    assert links_of(b) == ["C", "D"]
    assert redirect_of(world["wiki"]["pages"][2]) == "B"
    assert redirect_of(b) == ""


def test_a_move_leaves_a_redirect_or_nothing(world: State) -> None:
    call(world, "move_page", title="A", to="A2")
    assert holds(world, "wiki_redirect", title="A", to="A2")
    assert holds(world, "wiki_page_contains", title="A2", text="See [[B]]")
    call(world, "move_page", title="B", to="B2", leave_redirect=False)
    assert holds(world, "wiki_page_not_exists", title="B")
    assert not holds(world, "wiki_no_broken_links")
    assert not holds(world, "wiki_others_identical", **{"except": ["A", "A2"]})
    assert holds(world, "wiki_others_identical", **{"except": ["A", "A2", "B2"]})


@pytest.mark.parametrize(
    ("kind", "said", "result"),
    [
        ("wiki_page_exists", {"title": "A"}, True),
        ("wiki_page_exists", {"title": "a"}, False),
        ("wiki_page_contains", {"title": "A", "text": ["# A", "x"]}, True),
        ("wiki_page_contains", {"title": "A", "text": ["# A", "X"]}, False),
        ("wiki_page_lacks", {"title": "A", "text": ["y", "X"]}, True),
        ("wiki_page_lacks", {"title": "A", "text": ["y", "x"]}, False),
        ("wiki_page_lacks", {"title": "Z", "text": "x"}, False),
        ("wiki_page_says_times", {"title": "A", "text": "#", "count": 3}, True),
        ("wiki_page_equals", {"title": "C", "text": "#REDIRECT [[B]]\n"}, True),
        ("wiki_page_equals", {"title": "C", "text": "#REDIRECT [[B]]"}, False),
        ("wiki_section_contains", {"title": "A", "heading": "Old", "text": "x"}, True),
        ("wiki_section_contains", {"title": "A", "heading": "A", "text": "x"}, False),
        ("wiki_text_before", {"title": "A", "first": "See", "second": "Old"}, True),
        ("wiki_text_before", {"title": "A", "first": "Old", "second": "See"}, False),
        ("wiki_text_before", {"title": "A", "first": "See", "second": "none"}, False),
        ("wiki_links", {"title": "B", "to": "D"}, True),
        ("wiki_not_links", {"title": "B", "to": "A"}, True),
        ("wiki_redirect", {"title": "C", "to": "B"}, True),
        ("wiki_redirect", {"title": "B", "to": "C"}, False),
        ("wiki_no_links_to", {"to": "B"}, False),
        ("wiki_no_links_to", {"to": "A"}, True),
        ("wiki_no_broken_links", {}, False),
        ("wiki_no_double_redirects", {}, True),
        ("wiki_others_identical", {"except": []}, True),
    ],
)
def test_assertions(world: State, kind: str, said: dict[str, object], result: bool) -> None:
    assert holds(world, kind, **said) is result


def test_a_link_of_a_redirect_is_no_link_of_a_page(world: State) -> None:
    call(world, "edit_page", title="A", base_revision=3, text="gone\n")
    assert holds(world, "wiki_no_links_to", to="B")


def test_a_redirect_to_a_redirect_is_double(world: State) -> None:
    call(world, "create_page", title="E", text="#REDIRECT [[C]]\n")
    assert not holds(world, "wiki_no_double_redirects")


def test_identical_is_byte_for_byte_and_by_others(world: State) -> None:
    page = world["wiki"]["pages"][0]
    old = page["text"]
    call(world, "edit_page", title="A", base_revision=3, text=old + " ")
    assert touched(page)
    call(world, "edit_page", title="A", base_revision=4, text=old)
    assert not touched(page)
    call(world, "read_page", title="B")
    assert not touched(world["wiki"]["pages"][1])
    call(world, "create_page", title="New", text="")
    assert touched(world["wiki"]["pages"][3])
    assert not holds(world, "wiki_others_identical", **{"except": ["A"]})
