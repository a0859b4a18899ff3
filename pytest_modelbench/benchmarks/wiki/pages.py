"""Reading a wiki of Markdown pages: titles, links, citations, numbers."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass

INDEX = "index.md"

_CITATION = re.compile(r"\[(D\d{2,3})\](?!\()")
# Pages are a candidate's: no pattern here takes more than a few times as long for twice the text.
_LINK = re.compile(r"(?<!!)\[([^\[\]\n]*)\]\(([^()\n]*)\)")
_HEADING = re.compile(r"^# +(\S[^\n]*)$", re.MULTILINE)
_NUMBER = re.compile(r"(?<![\w.,])\d(?:[\d.,]*\d)?(?!\w)")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")


@dataclass(frozen=True)
class Page:
    """A page: ``prose`` is its text without citations and without what links lead to."""

    name: str
    title: str
    text: str
    prose: str
    links: tuple[str, ...]
    citations: tuple[str, ...]


def read_pages(pages: Mapping[str, str]) -> list[Page]:
    """Return the pages of a wiki, by name."""
    return [_page(name, text) for name, text in sorted(pages.items())]


def _page(name: str, text: str) -> Page:
    heading = _HEADING.search(text)
    title = heading.group(1).strip() if heading else name.removesuffix(".md")
    targets = [target.split()[0] for _, target in _LINK.findall(text) if target.strip()]
    links = [
        posixpath.normpath(target.partition("#")[0])
        for target in targets
        if not re.match(r"[a-z]+:|#", target)
    ]
    shown = _LINK.sub(r"\1", _CITATION.sub("", text))
    return Page(name, title, text, shown, tuple(links), tuple(_CITATION.findall(text)))


def numbers(text: str) -> list[str]:
    """Return the numbers of two digits or more, commas between thousands left out."""
    found = []
    for written in _NUMBER.findall(text):
        plain = written.replace(",", "") if _THOUSANDS.fullmatch(written) else written
        found += [one for one in re.split(r"[,]", plain) if sum(map(str.isdigit, one)) >= 2]
    return found


def shingles(text: str, length: int = 8) -> list[tuple[str, ...]]:
    """Return the runs of so many words, capitals and signs aside."""
    words = re.findall(r"\w+", text.casefold())
    return [tuple(words[at : at + length]) for at in range(len(words) - length + 1)]


def squashed(text: str) -> str:
    """Return the letters of a text alone: words divided at the end of a line are whole again."""
    return re.sub(r"[\W\d_]+", "", text.casefold())
