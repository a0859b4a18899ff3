"""Pages with revisions, links and redirects, as records of a world.

A page has ``title``, ``text``, ``revision`` (from 1), ``by`` and, once it was changed, ``history``:
its earlier revisions. A page that was moved has ``moved_from``. A link is ``[[Title]]``, or
``[[Title|words]]``, or ``[[Title#Heading]]``; a redirect is a page whose text begins with
``#REDIRECT [[Title]]``. An edit of somebody else can be ``pending``: it lands when its page was
read for the first time, so that whoever edits from what they read has a conflict.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from pytest_modelbench.benchmarks.jsonworlds.state import Record, State, collection, records_in
from pytest_modelbench.benchmarks.tools import ToolRefused

ASSISTANT = "assistant"
APP = "wiki"

_LINK = re.compile(r"\[\[([^\[\]|#\n]+)(?:#[^\[\]|\n]*)?(?:\|[^\[\]\n]*)?\]\]")
_REDIRECT = re.compile(r"#REDIRECT \[\[([^\[\]|#\n]+)\]\]")
_TITLE = re.compile(r"[^\[\]|#\n]{1,100}")


class Wiki:
    """A view of a world's pages; it changes them in place."""

    def __init__(self, state: State) -> None:
        self._state = state

    @property
    def pages(self) -> list[Record]:
        """Return the pages, in their order."""
        return records_in(self._state, APP, "pages")

    def page(self, title: JsonValue) -> Record:
        """Return a page; ToolRefused where there is none."""
        found = next((one for one in self.pages if one.get("title") == title), None)
        if found is None:
            raise ToolRefused(f"there is no page {title!r}; titles are exact")
        return found

    def has(self, title: str) -> bool:
        """Tell whether there is a page."""
        return any(one.get("title") == title for one in self.pages)

    def read(self, title: JsonValue) -> Record:
        """Return a copy of a page; what was pending for it has landed afterwards."""
        page = self.page(title)
        shown = dict(page)
        for edit in records_in(self._state, APP, "pending"):
            if edit.get("title") == title and not edit.get("landed"):
                edit["landed"] = True
                _write(page, str(edit["text"]), str(edit["by"]))
        return shown

    def edit(self, title: JsonValue, base: JsonValue, text: str) -> int:
        """Write a page's text; ToolRefused where it has another revision than the one edited."""
        page = self.page(title)
        if page.get("revision") != base:
            raise ToolRefused(
                f"conflict: {title} is at revision {page['revision']}, by {page['by']}, and you "
                f"edited revision {base}. Nothing was written; read it again"
            )
        if text != page.get("text"):
            _write(page, text, ASSISTANT)
        return int(str(page["revision"]))

    def create(self, title: str, text: str) -> None:
        """Make a page; ToolRefused where there is one."""
        if self.has(title):
            raise ToolRefused(f"there is a page {title!r} already")
        if not _TITLE.fullmatch(title) or title != title.strip():
            raise ToolRefused(f"{title[:40]!r} cannot be a title")
        page: Record = {"title": title, "text": text, "revision": 1, "by": ASSISTANT}
        collection(self._state, APP, "pages").append(page)

    def move(self, title: JsonValue, to: str, redirect: bool) -> None:
        """Give a page another title, and leave a redirect at its old one or nothing."""
        page = self.page(title)
        if self.has(to):
            raise ToolRefused(f"there is a page {to!r} already")
        if not _TITLE.fullmatch(to) or to != to.strip():
            raise ToolRefused(f"{to[:40]!r} cannot be a title")
        page.setdefault("moved_from", title)
        page["title"] = to
        if redirect:
            self.create(str(title), f"#REDIRECT [[{to}]]\n")


def _write(page: Record, text: str, by: str) -> None:
    old: Record = {key: page[key] for key in ("revision", "by", "text")}
    history = page.get("history")
    page["history"] = [*(history if isinstance(history, list) else []), old]
    page["revision"] = int(str(page["revision"])) + 1
    page["text"], page["by"] = text, by


def links_of(page: Mapping[str, object]) -> list[str]:
    """Return the titles that a page links to, in their order."""
    return [title.strip() for title in _LINK.findall(str(page.get("text", "")))]


def redirect_of(page: Mapping[str, object]) -> str:
    """Return where a page redirects to; '' where it is no redirect."""
    found = _REDIRECT.match(str(page.get("text", "")))
    return found.group(1).strip() if found else ""


def sections_of(text: str) -> Iterator[tuple[str, str]]:
    """Yield (heading, text below it) of a page, '' for what stands before the first heading."""
    heading, lines = "", list[str]()
    for line in text.split("\n"):
        if re.match(r"#+ ", line):
            yield heading, "\n".join(lines)
            heading, lines = line.lstrip("#").strip(), []
        else:
            lines.append(line)
    yield heading, "\n".join(lines)


def touched(page: Mapping[str, object]) -> bool:
    """Tell whether an attempt left a page other than it found it, byte for byte.

    A page that was made, moved, or has other text than its newest revision by somebody else.
    """
    if page.get("moved_from"):
        return True
    if page.get("by") != ASSISTANT:
        return False
    history = page.get("history")
    others = [
        one
        for one in (history if isinstance(history, list) else [])
        if isinstance(one, Mapping) and one.get("by") != ASSISTANT
    ]
    return not others or others[-1].get("text") != page.get("text")
