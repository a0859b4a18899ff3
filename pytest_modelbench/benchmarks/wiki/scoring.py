"""What a wiki is worth: ten parts, each a share from 0 to 1, with weights that add up to 1."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pytest_modelbench.benchmarks.wiki.archive import Archive, Document, in_words
from pytest_modelbench.benchmarks.wiki.pages import (
    INDEX,
    Page,
    numbers,
    read_pages,
    shingles,
    squashed,
)

RULES_VERSION = "wiki 1"

WEIGHTS: Mapping[str, float] = {
    "coverage": 0.25,
    "currency": 0.15,
    "grounding": 0.20,
    "entities": 0.10,
    "relations": 0.05,
    "pages-cited": 0.05,
    "citations-valid": 0.05,
    "links-valid": 0.05,
    "index": 0.05,
    "no-distractors": 0.05,
}

COPY_SHARE, COPY_LEAST = 0.75, 40
"""A page of so many runs of eight words or more is a copy where so much of it is in documents."""
NEAR = 120
"""Characters between a stale value and the word that says it is one."""
QUALIFIERS = re.compile(
    r"\b(former(ly)?|previous(ly)?|earlier|until|no longer|once|outdated|out of date|superseded|"
    r"corrected|instead of|wrong(ly)?|incorrect(ly)?|used to|replaced|before)\b",
    re.IGNORECASE,
)
PENALTY = 5
INDEXED = 0.8


@dataclass(frozen=True)
class Score:
    """``parts`` by name, each from 0 to 1; ``reward`` is 0 where the work was not completed."""

    parts: Mapping[str, float]
    reward: float


def score(archive: Archive, pages: Mapping[str, str], completed: bool = True) -> Score:
    """Score a wiki by the truth of its archive. One without pages has no part."""
    if not pages:
        return Score(dict.fromkeys(WEIGHTS, 0.0), 0.0)
    wiki = _Wiki(archive, read_pages(pages))
    parts = {
        "coverage": wiki.coverage(),
        "currency": wiki.currency(),
        "grounding": max(0.0, 1 - PENALTY * wiki.unsupported()),
        "entities": _share([name in wiki.titles for name in wiki.names]),
        "relations": wiki.relations(),
        "pages-cited": _share([bool(wiki.cited(page)) for page in wiki.content]),
        "citations-valid": _share(
            [one in wiki.documents for page in wiki.pages for one in page.citations]
        ),
        "links-valid": _share([link in pages for page in wiki.pages for link in page.links]),
        "index": wiki.index(),
        "no-distractors": wiki.no_distractors(),
    }
    total = sum(WEIGHTS[name] * share for name, share in parts.items())
    return Score(parts, round(total, 3) if completed else 0.0)


def _share(held: Sequence[bool], nothing: float = 1.0) -> float:
    """Return how many hold; of nothing, all do."""
    return sum(held) / len(held) if held else nothing


@dataclass
class _Wiki:
    """A wiki beside the truth of its archive."""

    archive: Archive
    pages: list[Page]

    @cached_property
    def content(self) -> list[Page]:
        return [page for page in self.pages if page.name != INDEX]

    @cached_property
    def documents(self) -> dict[str, Document]:
        return {one.id: one for one in self.archive.documents}

    @cached_property
    def names(self) -> list[str]:
        return [one.name.casefold() for one in self.archive.entities]

    @cached_property
    def titles(self) -> dict[str, Page]:
        return {page.title.casefold(): page for page in self.content}

    @cached_property
    def _shingles(self) -> set[tuple[str, ...]]:
        return {one for document in self.archive.documents for one in shingles(document.text)}

    def cited(self, page: Page) -> list[str]:
        """Return the documents that a page cites and that there are."""
        return [one for one in dict.fromkeys(page.citations) if one in self.documents]

    def copied(self, page: Page) -> bool:
        found = shingles(page.prose)
        if len(found) < COPY_LEAST:
            return False
        return sum(one in self._shingles for one in found) >= COPY_SHARE * len(found)

    def coverage(self) -> float:
        """Return the share of facts that some page states, cites a source of, and copies nowhere.

        A page states a fact where it names the entity and has the number.
        """
        candidates = [
            (page.prose, page.prose.casefold(), set(self.cited(page)))
            for page in self.content
            if not self.copied(page)
        ]
        return _share(
            [
                any(
                    fact.entity.casefold() in lowered
                    and cited & set(fact.sources)
                    and said(text, fact.value)
                    for text, lowered, cited in candidates
                )
                for fact in self.archive.facts
            ]
        )

    def currency(self) -> float:
        """Return the share of stale values that are nowhere said as if they held."""
        return _share(
            [
                not any(_says_as_current(page.prose, fact.stale) for page in self.content)
                for fact in self.archive.facts
                if fact.stale is not None
            ]
        )

    def unsupported(self) -> float:
        """Return the share of numbers that no document which their page cites has."""
        missing = total = 0
        for page in self.content:
            sources = [self.documents[one] for one in self.cited(page)]
            whole = "\n".join(f"{one.title}\n{one.date}\n{one.text}" for one in sources)
            known, letters = set(numbers(whole)), squashed(whole)
            found = numbers(page.prose)
            total += len(found)
            missing += sum(one not in known and not _in_words(one, letters) for one in found)
        return missing / total if total else 0.0

    def relations(self) -> float:
        """Return the share of relations of which one page links to the other's."""

        def linked(one: str, other: str) -> bool:
            page, target = self.titles.get(one.casefold()), self.titles.get(other.casefold())
            return page is not None and target is not None and target.name in page.links

        return _share(
            [
                linked(one.subject, one.object) or linked(one.object, one.subject)
                for one in self.archive.relations
            ]
        )

    def index(self) -> float:
        """Return 1 where the index links to four in five of the other pages."""
        index = next((page for page in self.pages if page.name == INDEX), None)
        if index is None or not self.content:
            return 0.0
        listed = sum(page.name in index.links for page in self.content)
        return float(listed >= INDEXED * len(self.content))

    def no_distractors(self) -> float:
        """Return 1 where no page names what the archive's owner has nothing to do with."""
        texts = [page.prose.casefold() for page in self.pages]
        named = [one.casefold() in text for one in self.archive.distractors for text in texts]
        return float(not any(named))


def said(text: str, value: int) -> list[tuple[int, int]]:
    """Return where a text has a number, in digits or words, as (start, end)."""
    words = in_words(value).replace("-", " ").split()
    spelt = r"[\W_]+".join(f"(?:{one}[\\W_]+)?" if one == "and" else one for one in words)
    spelt = spelt.replace(r")?[\W_]+", ")?")
    digits = rf"(?<![\w.,])(?:{value}|{value:,})(?!\w|[.,]\d)"
    alone = r"(?<!hundred )(?<!thousand )(?<!and )\b", r"\b(?!\W+(?:hundred|thousand)\b)"
    found = re.finditer(rf"{digits}|{alone[0]}{spelt}{alone[1]}", text, re.IGNORECASE)
    return [one.span() for one in found]


def _says_as_current(text: str, stale: int) -> bool:
    """Tell whether a text has a number somewhere without a word near it that says it is stale."""
    return any(
        not QUALIFIERS.search(text[max(0, start - NEAR) : end + NEAR])
        for start, end in said(text, stale)
    )


def _in_words(number: str, letters: str) -> bool:
    """Tell whether the letters of a text have a whole number in words."""
    if not number.isdigit() or len(number) > 6:
        return False
    words = squashed(in_words(int(number)))
    return words in letters or words.replace("and", "") in letters
