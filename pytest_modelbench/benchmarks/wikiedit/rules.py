"""What can be asserted of a wiki's pages."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_modelbench.benchmarks.jsonworlds.assertions import AssertionTypes, records, texts
from pytest_modelbench.benchmarks.jsonworlds.scoring import Assertion, World
from pytest_modelbench.benchmarks.wikiedit.pages import (
    APP,
    links_of,
    redirect_of,
    sections_of,
    touched,
)

WIKI = AssertionTypes()

Page = Mapping[str, object]


def _pages(world: World) -> list[Page]:
    return records(world, APP, "pages")


def _page(world: World, assertion: Assertion) -> Page | None:
    return next((one for one in _pages(world) if one["title"] == assertion["title"]), None)


def _text(world: World, assertion: Assertion) -> str:
    page = _page(world, assertion)
    return "" if page is None else str(page["text"])


@WIKI.register("wiki_page_exists", required=("title",))
def _exists(world: World, assertion: Assertion) -> bool:
    return _page(world, assertion) is not None


@WIKI.register("wiki_page_contains", required=("title", "text"))
def _contains(world: World, assertion: Assertion) -> bool:
    """Hold where a page has each of some texts, as they are written."""
    return all(text in _text(world, assertion) for text in texts(assertion["text"]))


@WIKI.register("wiki_page_lacks", required=("title", "text"))
def _lacks(world: World, assertion: Assertion) -> bool:
    """Hold where a page is there and has none of some texts."""
    unwanted = texts(assertion["text"])
    there = _page(world, assertion) is not None
    return there and not any(text in _text(world, assertion) for text in unwanted)


@WIKI.register("wiki_page_says_times", required=("title", "text", "count"))
def _times(world: World, assertion: Assertion) -> bool:
    return _text(world, assertion).count(str(assertion["text"])) == assertion["count"]


@WIKI.register("wiki_page_equals", required=("title", "text"))
def _equals(world: World, assertion: Assertion) -> bool:
    page = _page(world, assertion)
    return page is not None and page["text"] == assertion["text"]


@WIKI.register("wiki_section_contains", required=("title", "heading", "text"))
def _section(world: World, assertion: Assertion) -> bool:
    return any(
        heading == assertion["heading"] and all(text in body for text in texts(assertion["text"]))
        for heading, body in sections_of(_text(world, assertion))
    )


@WIKI.register("wiki_text_before", required=("title", "first", "second"))
def _before(world: World, assertion: Assertion) -> bool:
    """Hold where a page has two texts, the first one first."""
    text = _text(world, assertion)
    first, second = str(assertion["first"]), str(assertion["second"])
    return first in text and second in text and text.index(first) < text.index(second)


@WIKI.register("wiki_links", required=("title", "to"))
def _links(world: World, assertion: Assertion) -> bool:
    page = _page(world, assertion)
    return page is not None and assertion["to"] in links_of(page)


@WIKI.register("wiki_redirect", required=("title", "to"))
def _redirect(world: World, assertion: Assertion) -> bool:
    page = _page(world, assertion)
    return page is not None and redirect_of(page) == assertion["to"]


@WIKI.register("wiki_no_links_to", required=("to",))
def _no_links_to(world: World, assertion: Assertion) -> bool:
    """Hold where no page but redirects links to a title."""
    pages = [one for one in _pages(world) if not redirect_of(one)]
    return not any(assertion["to"] in links_of(one) for one in pages)


@WIKI.register("wiki_no_broken_links")
def _no_broken(world: World, assertion: Assertion) -> bool:
    titles = {one["title"] for one in _pages(world)}
    return all(link in titles for one in _pages(world) for link in links_of(one))


@WIKI.register("wiki_no_double_redirects")
def _no_double(world: World, assertion: Assertion) -> bool:
    """Hold where no redirect leads to a redirect, itself among them."""
    redirects = {str(one["title"]): redirect_of(one) for one in _pages(world) if redirect_of(one)}
    return not any(target in redirects for target in redirects.values())


@WIKI.register("wiki_others_identical", required=("except",))
def _others(world: World, assertion: Assertion) -> bool:
    """Hold where every page that is not excepted is as others left it, byte for byte."""
    free = set(texts(assertion["except"]))
    return not any(touched(one) for one in _pages(world) if str(one["title"]) not in free)


WIKI.oppose("wiki_page_not_exists", of="wiki_page_exists")
WIKI.oppose("wiki_not_links", of="wiki_links")
