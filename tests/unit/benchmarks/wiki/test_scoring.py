"""What each part of a wiki's score counts, by right values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_modelbench.benchmarks.wiki.archive import (
    Archive,
    Document,
    Entity,
    Fact,
    Relation,
    grouped,
    in_words,
)
from pytest_modelbench.benchmarks.wiki.pages import numbers, read_pages, shingles
from pytest_modelbench.benchmarks.wiki.scoring import WEIGHTS, said, score

D1 = (
    "Gull Ness Station was opened in 1931 and employs 212 people. Ilse Thornbury directs Gull Ness "
    "Station. There are nine thousand four hundred birds on the rocks behind it, as far as anybody "
    "has counted them, and a further row of sheds that the members of the institute painted white "
    "in a summer which all of them remember as the warmest of their lives."
)
D2 = "At Gull Ness Station 180 people are employed."
ARCHIVE = Archive(
    entities=(
        Entity("Gull Ness Station", "Gull Ness", "station"),
        Entity("Ilse Thornbury", "Thornbury", "person"),
    ),
    facts=(
        Fact("Gull Ness Station", "founded", 1931, ("D01",)),
        Fact("Gull Ness Station", "staff", 212, ("D01",), 180, ("D02",)),
    ),
    relations=(Relation("Ilse Thornbury", "directs", "Gull Ness Station", "D01"),),
    distractors=("Southmere Aquarium",),
    documents=(
        Document("D01", "Register", "register", "2025-02-11", D1),
        Document("D02", "Newsletter", "newsletter", "2020-12-24", D2),
    ),
)
STATION = "# Gull Ness Station\n\nSince 1931; 212 employed [D01]. Under [her](ilse-thornbury.md).\n"
PERSON = "# Ilse Thornbury\n\nDirects [it](gull-ness.md) [D01].\n"
INDEX = "# All\n\n- [Gull](gull-ness.md)\n- [Ilse](ilse-thornbury.md)\n"
WIKI = {"gull-ness.md": STATION, "ilse-thornbury.md": PERSON, "index.md": INDEX}


def parts(**changes: str | None) -> dict[str, float]:
    """Return the parts below 1 of the wiki with some pages changed, or left out."""
    names = {"station": "gull-ness.md", "person": "ilse-thornbury.md", "index": "index.md"}
    pages = dict(WIKI)
    for key, text in changes.items():
        name = names.get(key, f"{key}.md")
        if text is None:
            del pages[name]
        else:
            pages[name] = text
    found = score(ARCHIVE, pages)
    assert found.reward == round(sum(WEIGHTS[n] * s for n, s in found.parts.items()), 3)
    return {name: round(share, 4) for name, share in found.parts.items() if share < 1}


def test_the_weights_are_those_of_the_rules() -> None:
    assert sum(WEIGHTS.values()) == pytest.approx(1)
    assert dict(WEIGHTS) == {
        "coverage": 0.25,
        "currency": 0.15,
        "grounding": 0.2,
        "entities": 0.1,
        "relations": 0.05,
        "pages-cited": 0.05,
        "citations-valid": 0.05,
        "links-valid": 0.05,
        "index": 0.05,
        "no-distractors": 0.05,
    }


def test_a_right_wiki_is_worth_1_and_one_not_completed_or_empty_nothing() -> None:
    assert parts() == {}
    assert score(ARCHIVE, WIKI).reward == 1.0
    assert score(ARCHIVE, WIKI, completed=False).reward == 0.0
    assert score(ARCHIVE, {}).reward == 0.0


@pytest.mark.parametrize(
    ("old", "new", "share"),
    [
        ("212", "two hundred and twelve", None),
        ("212", "Two-hundred twelve", None),
        ("212", "213", 0.5),
        ("1931", "1,931", None),
        ("[D01]", "[D02]", 0.0),
        ("[D01]", "", 0.0),
        ("[D01]", "[D02] [D01]", None),
        ("# Gull Ness Station", "# The station", 0.0),
        ("# Gull Ness Station", "# The station\n\nCalled gull ness station.", None),
    ],
)
def test_a_fact_is_covered_where_it_is_stated_with_a_source(
    old: str, new: str, share: float | None
) -> None:
    assert parts(station=STATION.replace(old, new)).get("coverage") == share


def test_a_copy_covers_nothing() -> None:
    copy = f"# Gull Ness Station\n\n{D1} [D01] [Ilse](ilse-thornbury.md)\n"
    assert parts(station=copy) == {"coverage": 0.0}
    # Half of it is of one's own: no copy.
    own = " ".join(f"word{one}" for one in "abcdefghijklmnopqrstuvwxyzabcdefghijkl")
    assert parts(station=f"{copy}\n{own}\n") == {}
    # Less than forty runs of eight words are none either.
    assert parts(station=copy.replace(D1[D1.index("There are") :], "")) == {}


@pytest.mark.parametrize(
    ("said_so", "share"),
    [
        ("It had 180 people.", 0.0),
        ("It had one hundred and eighty people.", 0.0),
        ("Formerly 180 people.", None),
        ("180 people, a number that is outdated.", None),
        ("180 people." + " and so on" * 12 + " formerly.", 0.0),
        ("180 people." + " and so on" * 10 + " formerly.", None),
        ("1800 or 18.180 or 180.5 people.", None),
        ("Formerly 180 people." + " and so on" * 30 + " 180 people.", 0.0),
    ],
)
def test_a_stale_value_needs_a_word_near_it(said_so: str, share: float | None) -> None:
    # A page of its own, so that no other part of the page is near it.
    found = parts(old=f"# Old\n\n[D02] [D01]\n\n{said_so}\n", index=INDEX + "- [o](old.md)\n")
    assert found.get("currency") == share


@pytest.mark.parametrize(
    ("more", "share"),
    [
        ("", None),
        ("7 sheds", None),  # numbers of one digit are not looked at
        ("9400 birds", None),  # in words, in a cited source
        ("9,400 birds", None),
        ("2025 and 11", None),  # the date of a cited source
        ("331 birds", 1 - 5 / 3),
        ("9401 birds", 1 - 5 / 3),
    ],
)
def test_numbers_have_to_be_in_a_cited_source(more: str, share: float | None) -> None:
    found = parts(station=STATION + more + "\n").get("grounding")
    assert found == (None if share is None else max(0.0, round(share, 4)))


def test_a_tenth_of_numbers_without_a_source_costs_half() -> None:
    known = " ".join(["1931 212"] * 4)
    assert parts(station=f"{STATION}{known}\n") == {}
    # 12 numbers, then 2 of 14 are invented.
    more = f"{STATION}{known} 1931 212 331 332\n"
    assert parts(station=more) == {"grounding": round(1 - 5 * 2 / 14, 4)}


@pytest.mark.parametrize(
    ("changes", "lost"),
    [
        ({"person": "# Thornbury\n\nDirects [it](gull-ness.md) [D01].\n"},
         {"entities": 0.5, "relations": 0.0}),
        ({"person": "# Ilse Thornbury\n\nDirects it [D01].\n"}, {}),
        ({"person": "# Ilse Thornbury\n\nDirects it [D01].\n",
          "station": STATION.replace("[her](ilse-thornbury.md)", "her")}, {"relations": 0.0}),
        ({"person": PERSON.replace(" [D01]", "")}, {"pages-cited": 0.5}),
        ({"person": PERSON.replace("[D01]", "[D77]")},
         {"pages-cited": 0.5, "citations-valid": 0.5}),
        ({"person": PERSON + "[x](nowhere.md)\n"}, {"links-valid": 0.8}),
        ({"person": PERSON + "[x](https://example.com) [y](#top)\n"}, {}),
        ({"person": PERSON + "[x](./gull-ness.md#top)\n"}, {}),
        ({"index": None}, {"index": 0.0}),
        ({"index": "# All\n\n[Gull](gull-ness.md)\n"}, {"index": 0.0}),
        ({"person": PERSON + "Not of southmere aquarium.\n"}, {"no-distractors": 0.0}),
        ({"index": INDEX + "Southmere Aquarium\n"}, {"no-distractors": 0.0}),
    ],
)  # fmt: skip
def test_pages_links_and_the_rest(changes: dict[str, str | None], lost: dict[str, float]) -> None:
    assert parts(**changes) == lost


def test_the_index_has_four_fifths_of_the_pages() -> None:
    more = {f"p{n}.md": "# P\n\n[D01]\n" for n in range(3)}
    listed = INDEX + "[p0](p0.md) [p1](p1.md)\n"
    assert score(ARCHIVE, {**WIKI, **more, "index.md": listed}).parts["index"] == 1.0
    listed = INDEX + "[p0](p0.md)\n"
    assert score(ARCHIVE, {**WIKI, **more, "index.md": listed}).parts["index"] == 0.0


def test_where_nothing_is_stale_or_related_nothing_is_lost() -> None:
    facts = (replace(ARCHIVE.facts[1], stale=None, stale_sources=()),)
    found = score(replace(ARCHIVE, facts=facts, relations=()), WIKI)
    assert found.parts["currency"] == found.parts["relations"] == 1.0


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1,234 and 12.", ["1234", "12"]),
        ("7, 8 and 9.5", ["9.5"]),
        ("2024-03-05", ["2024", "03", "05"]),
        ("12,34", ["12", "34"]),
        ("D07 x12 12th", []),
        ("1,234,567.50", ["1234567.50"]),
    ],
)
def test_numbers(text: str, found: list[str]) -> None:
    assert numbers(text) == found


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "zero"), (13, "thirteen"), (40, "forty"), (69, "sixty-nine"), (100, "one hundred"),
        (412, "four hundred and twelve"), (9400, "nine thousand four hundred"),
        (11_007, "eleven thousand and seven"),
        (210_999, "two hundred and ten thousand nine hundred and ninety-nine"),
    ],
)  # fmt: skip
def test_words(value: int, words: str) -> None:
    assert in_words(value) == words
    assert said(f"about {words} of them", value)
    assert said(f"about {words.replace(' and', '')} of them", value)
    assert not said(f"about {words} of them", value + 1)


def test_a_number_within_a_longer_one_is_not_said() -> None:
    assert said("one hundred and sixty-nine", 69) == []
    assert said("forty-four thousand", 44) == []
    assert grouped(44354) == "44,354"
    assert grouped(1931) == "1931"


def test_a_page_is_read() -> None:
    (page,) = read_pages({"a.md": "# A 12 \n\n[w](b.md) [D03][D10] ![i](c.png) [D04](d.md)\n"})
    assert page.title == "A 12"
    assert page.links == ("b.md", "d.md")
    assert page.citations == ("D03", "D10")
    assert numbers(page.prose) == ["12"]
    assert shingles("One, two. three", 2) == [("one", "two"), ("two", "three")]


@pytest.mark.parametrize(
    "page",
    [
        "[](" + "a" * 20_000,
        "[](" + "a " * 10_000,
        "# a" + " " * 20_000 + "b",
        "#" + " " * 20_000,
        "1" + "," * 20_000,
        "[" * 20_000,
        "[D01]" * 4000,
        "forty" + "-" * 20_000,
        "1.1.1," * 3000,
        "one hundred and " * 1200,
    ],
)
def test_a_page_made_to_be_slow_to_read_is_read(page: str) -> None:
    """Patterns that go back over what they read would take hours for these."""
    assert 0 <= score(ARCHIVE, {**WIKI, "x.md": page}).reward <= 1
