"""Wikis made from the truth: the reference, and damaged ones that lose what they name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pytest_modelbench.benchmarks.wiki.archive import ORGANISATION, Archive, Entity, Fact, grouped
from pytest_modelbench.benchmarks.wiki.pages import INDEX, numbers, read_pages

Pages = dict[str, str]

DAMAGED: Mapping[str, tuple[str, ...]] = {
    "everything-pasted": (
        *("coverage", "currency", "entities", "relations", "index", "no-distractors"),
    ),
    "no-citations": ("coverage", "grounding", "pages-cited"),
    "missing-pages": ("coverage", "entities", "relations"),
    "invented-numbers": ("grounding",),
    "stale-values": ("currency",),
    "a-distractor": ("no-distractors",),
    "no-index": ("index",),
    "broken-links": ("relations", "links-valid"),
    "false-citations": ("citations-valid",),
    "not-completed": ("completed",),
}
"""Damaged wikis, and the checks that they lose."""

_WORDS = {
    "founded": "First year of work: {}",
    "staff": "Persons employed there: {}",
    "budget": "Crowns for a year: {}",
    "launched": "Year of launch: {}",
    "crew": "Persons aboard: {}",
    "range": "Nautical miles between ports: {}",
    "joined": "With the institute from {} on",
    "started": "In progress from {} on",
    "samples": "Samples in store: {}",
}
_VERBS = {"directs": "Directs", "is based at": "Home port:", "is led by": "Led by"}


def wiki_of(archive: Archive, variant: str = "") -> Pages:
    """Return the reference of an archive, or a damaged wiki of `DAMAGED`."""
    if variant == "everything-pasted":
        return {
            f"document-{number}.md": f"# Document {number}\n\n{one.text}\n[{one.id}]\n"
            for number, one in enumerate(archive.documents, 1)
        }
    left = archive.entities
    if variant == "missing-pages":
        left = left[len(left) // 2 :]
    stale = [fact for fact in archive.facts if fact.stale is not None]
    wrong = stale[: 2 * len(stale) // 5] if variant == "stale-values" else None
    names = {one.name for one in left}
    pages = {_file(one.name): _page(archive, one, wrong, names) for one in left}
    if variant == "invented-numbers":
        _invent(archive, pages)
    if variant == "no-citations":
        pages = {name: re.sub(r" \[D\d+\]", "", text) for name, text in pages.items()}
    if variant == "false-citations":
        pages = {name: re.sub(r"(?m)^(- .*)$", r"\1 [D99]", text) for name, text in pages.items()}
    if variant == "broken-links":
        pages = {name: text.replace("](", "](the-") for name, text in pages.items()}
    if variant == "a-distractor":
        one = archive.documents[-1 if archive.documents[-1].title.startswith("Aqua") else -2]
        pages["aquarium.md"] = f"# Aquarium\n\nIt writes of {archive.distractors[0]}. [{one.id}]\n"
    return pages if variant == "no-index" else {**pages, INDEX: _index(pages)}


def _page(archive: Archive, entity: Entity, wrong: list[Fact] | None, names: set[str]) -> str:
    lines = [f"# {entity.name}", "", f"A {entity.kind} of the {ORGANISATION}.", ""]
    for fact in archive.facts:
        if fact.entity == entity.name:
            lines.append(_line(fact, wrong))
    for one in archive.relations:
        if one.subject == entity.name and one.object in names:
            link = f"[{one.object}]({_file(one.object)})"
            lines.append(f"- {_VERBS[one.verb]} {link} [{one.source}]")
    return "\n".join(lines) + "\n"


def _line(fact: Fact, wrong: list[Fact] | None) -> str:
    """Say a fact, and what it was before; or, where some are to be wrong, nothing of before."""
    said, cited, before = fact.value, fact.sources, ""
    if fact.stale is not None and wrong is None:
        before = f" (formerly {grouped(fact.stale)} {_marks(fact.stale_sources)})"
    elif fact.stale is not None and fact in (wrong or ()):
        said, cited = fact.stale, (*fact.stale_sources, *fact.sources)
    return f"- {_WORDS[fact.attribute].format(grouped(said))} {_marks(cited)}{before}"


def _marks(documents: Sequence[str]) -> str:
    return " ".join(f"[{one}]" for one in documents)


def _invent(archive: Archive, pages: Pages) -> None:
    """Add numbers that are nowhere, until a tenth of all is invented."""
    known = {one for document in archive.documents for one in numbers(document.text)}
    total = sum(len(numbers(page.prose)) for page in read_pages(pages))
    for count, name in zip(range(round(total / 9)), [*pages] * 9, strict=False):
        number = next(one for one in range(7001 + 90 * count, 8000) if str(one) not in known)
        pages[name] += f"- Seen by {grouped(number)} guests\n"


def _index(pages: Pages) -> str:
    listed = [f"- [{page.title}]({page.name})" for page in read_pages(pages)]
    return "\n".join([f"# {ORGANISATION}", "", *listed]) + "\n"


def _file(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()) + ".md"
