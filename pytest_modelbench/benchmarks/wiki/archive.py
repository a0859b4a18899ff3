"""What an archive is about, and its documents: the truth that a wiki is scored by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from pydantic import JsonValue, TypeAdapter

ORGANISATION = "Northreach Institute"

AUTHORITY = ("register", "annual report", "minutes", "newsletter", "press clipping")
"""Kinds of documents, the one that decides first; within one kind the newest decides."""


@dataclass(frozen=True)
class Settings:
    """What an archive is made from. ``prose`` is 0 to 2, ``noise`` 0 to 4, ``scale`` from 1."""

    seed: int
    scale: int = 1
    prose: int = 1
    noise: int = 0

    def __post_init__(self) -> None:
        if not (1 <= self.scale <= 3 and 0 <= self.prose <= 2 and 0 <= self.noise <= 4):
            raise ValueError(f"scale is 1 to 3, prose 0 to 2, noise 0 to 4: {self}")


@dataclass(frozen=True)
class Entity:
    """Something that has a page."""

    name: str
    short: str
    kind: str


@dataclass(frozen=True)
class Fact:
    """A number of an entity. ``sources`` state it; ``stale_sources`` state another, ``stale``."""

    entity: str
    attribute: str
    value: int
    sources: tuple[str, ...]
    stale: int | None = None
    stale_sources: tuple[str, ...] = ()


@dataclass(frozen=True)
class Relation:
    """One entity has to do with another."""

    subject: str
    verb: str
    object: str
    source: str


@dataclass(frozen=True)
class Document:
    """A document, named by ``id`` as D01."""

    id: str
    title: str
    kind: str
    date: str
    text: str


@dataclass(frozen=True)
class Archive:
    """Documents and the truth in them. ``distractors`` are names that no page should have."""

    entities: tuple[Entity, ...]
    facts: tuple[Fact, ...]
    relations: tuple[Relation, ...]
    distractors: tuple[str, ...]
    documents: tuple[Document, ...]

    def as_data(self) -> dict[str, JsonValue]:
        """Return it as plain data."""
        return asdict(self)


def archive_of(data: Mapping[str, JsonValue]) -> Archive:
    """Return the archive of plain data."""
    return _ARCHIVE.validate_python(dict(data))


_ARCHIVE = TypeAdapter(Archive)


def grouped(value: int) -> str:
    """Return a number as it is written: years plain, others with commas."""
    return str(value) if 1000 <= value <= 2100 else f"{value:,}"


_ONES = [
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
    *("eighteen", "nineteen"),
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
NUMBER_WORDS = frozenset([*_ONES, *_TENS, "hundred", "thousand"])


def in_words(value: int) -> str:
    """Return a number from 0 to 999,999 in words, as ``four hundred and twelve``."""
    if value < 20:
        return _ONES[value]
    if value < 100:
        tens, ones = divmod(value, 10)
        return _TENS[tens - 2] + (f"-{_ONES[ones]}" if ones else "")
    if value < 1000:
        hundreds, rest = divmod(value, 100)
        return f"{_ONES[hundreds]} hundred" + (f" and {in_words(rest)}" if rest else "")
    thousands, rest = divmod(value, 1000)
    between = " and " if 0 < rest < 100 else " "
    return f"{in_words(thousands)} thousand" + (f"{between}{in_words(rest)}" if rest else "")
