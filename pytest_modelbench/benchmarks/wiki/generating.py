"""An archive made from a seed: entities, facts, values gone stale, relations, documents.

The same settings give the same archive, on any machine. A unit of scale has 9 entities, 21 facts of
which 5 have a stale value, 6 relations and 12 documents, 2 of them about something else.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pytest_modelbench.benchmarks.wiki.archive import (
    Archive,
    Document,
    Entity,
    Fact,
    Relation,
    Settings,
)
from pytest_modelbench.benchmarks.wiki.prose import (
    DISTRACTORS,
    distractor_text,
    erratum_sentence,
    fact_sentence,
    filler,
    relation_sentence,
    scanned,
)

STALE = 5
"""Facts with a stale value, a unit of scale."""

_PLACES = (
    *("Calder Point", "Skerry Bay", "Thornhead", "Gull Ness", "Marrow Sound", "Fenwick Reach"),
    *("Kelda Voe", "Ardmore Spit", "Whinfell", "Brackwater", "Stone Haven", "Lang Sker"),
)
_BIRDS = (
    *("Merganser", "Dunlin", "Fulmar", "Whimbrel", "Razorbill", "Sanderling", "Turnstone"),
    "Goldeneye",
)
_FIRST = ("Ilse", "Marek", "Odile", "Tomas", "Freya", "Anselm", "Yara", "Bram")
_LAST = ("Thornbury", "Vasko", "Lindgren", "Okonjo", "Halloran", "Perrault", "Stavely", "Mirza")
_STUDIES = (
    *("Kelp Watch", "Tide Ledger", "Eider Count", "Silt Survey", "Plankton Line", "Reef Diary"),
    "Gannet Log",
)

_ATTRIBUTES = {
    "station": (("founded", 1890, 1995), ("staff", 110, 480), ("budget", 210_000, 890_000)),
    "vessel": (("launched", 1951, 2016), ("crew", 31, 99), ("range", 2200, 9800)),
    "person": (("joined", 1984, 2019),),
    "programme": (("started", 1961, 2018), ("samples", 11_000, 99_000)),
}
_CHANGING = ("staff", "budget", "crew", "samples")

_PLAN = (
    ("Register of stations and vessels", "register", "2025-02"),
    ("Register of persons and programmes", "register", "2025-03"),
    ("Annual report 2024", "annual report", "2025-04"),
    ("Annual report 2023", "annual report", "2024-04"),
    ("Annual report 2021", "annual report", "2022-04"),
    ("Minutes of the board, spring", "minutes", "2025-05"),
    ("Minutes of the board, autumn", "minutes", "2023-10"),
    ("Newsletter, summer", "newsletter", "2023-07"),
    ("Newsletter, winter", "newsletter", "2020-12"),
    ("Evening Post: a day out at sea", "press clipping", "2025-08"),
    ("Aquarium leaflet", "newsletter", "2024-06"),
    ("Aquarium members' letter", "newsletter", "2025-01"),
)
_DECIDING = (0, 1, 2)
"""Documents in which the value of a changing fact is the one that counts."""
_OUTDATED = (4, 8, 9)
"""Documents with stale values: two are old, one is new and of the least authority."""
_REPORT, _BOARD = 2, 5
_NEWSLETTER = 7
_UNIT = len(_PLAN)


@dataclass
class _Draft:
    """A document on its way: its sentences."""

    sentences: list[str] = field(default_factory=list)


def generate(settings: Settings) -> Archive:
    """Return the archive of some settings."""
    dice = random.Random(f"wiki/{settings.seed}/{settings.scale}")
    entities = _entities(dice, settings.scale)
    facts = _facts(dice, entities, settings)
    relations = _relations(dice, entities)
    documents = _documents(dice, settings, entities, facts, relations)
    return Archive(entities, facts, relations, DISTRACTORS, documents)


def _id(number: int) -> str:
    return f"D{number + 1:02}"


def _entities(dice: random.Random, scale: int) -> tuple[Entity, ...]:
    places = dice.sample(_PLACES, 3 * scale)
    birds = dice.sample(_BIRDS, 2 * scale)
    people = list(zip(dice.sample(_FIRST, 2 * scale), dice.sample(_LAST, 2 * scale), strict=True))
    studies = dice.sample(_STUDIES, 2 * scale)
    return (
        *(Entity(f"{place} Station", place, "station") for place in places),
        *(Entity(f"RV {bird}", bird, "vessel") for bird in birds),
        *(Entity(f"{first} {last}", last, "person") for first, last in people),
        *(Entity(f"{study} Programme", study, "programme") for study in studies),
    )


def _facts(dice: random.Random, entities: Sequence[Entity], settings: Settings) -> tuple[Fact, ...]:
    used: set[int] = set()

    def fresh(least: int, most: int) -> int:
        while True:
            value = dice.randint(least, most)
            # A year is one from 1000 to 2100: no other number may look like one.
            if value not in used and (most < 2100 or not 1000 <= value <= 2100):
                used.add(value)
                return value

    found = [
        Fact(entity.name, attribute, fresh(least, most), ())
        for entity in entities
        for attribute, least, most in _ATTRIBUTES[entity.kind]
    ]
    ranges = {name: (least, most) for kind in _ATTRIBUTES.values() for name, least, most in kind}
    changing = [number for number, one in enumerate(found) if one.attribute in _CHANGING]
    stale = set(dice.sample(changing, STALE * settings.scale))
    last = max(stale)
    for number, fact in enumerate(found):
        unit = _UNIT * dice.randrange(settings.scale)
        if number not in stale:
            places = dice.sample(range(_UNIT - 2), dice.choice((1, 2, 2)))
            sources = tuple(sorted(_id(unit + place) for place in places))
            found[number] = replace(fact, sources=sources)
            continue
        sources = (_id(unit + dice.choice(_DECIDING)),)
        outdated = (_id(unit + dice.choice(_OUTDATED)),)
        if number == last and settings.noise >= 2:  # the report is wrong, the board corrects it
            sources, outdated = (_id(unit + _BOARD),), (_id(unit + _REPORT),)
        value = fresh(*ranges[fact.attribute])
        found[number] = replace(fact, sources=sources, stale=value, stale_sources=outdated)
    return tuple(found)


def _relations(dice: random.Random, entities: Sequence[Entity]) -> tuple[Relation, ...]:
    def of(kind: str) -> list[str]:
        return [one.name for one in entities if one.kind == kind]

    stations, people = of("station"), of("person")
    pairs = [
        *((person, "directs", dice.choice(stations)) for person in people),
        *((vessel, "is based at", dice.choice(stations)) for vessel in of("vessel")),
        *((study, "is led by", dice.choice(people)) for study in of("programme")),
    ]
    return tuple(
        Relation(one, verb, other, _id(dice.choice((0, 1, 2, 3, 5, 7))))
        for one, verb, other in pairs
    )


def _documents(
    dice: random.Random,
    settings: Settings,
    entities: Sequence[Entity],
    facts: Sequence[Fact],
    relations: Sequence[Relation],
) -> tuple[Document, ...]:
    drafts = [_Draft() for _ in range(_UNIT * settings.scale)]
    called = {one.name: one for one in entities}

    def name(entity: str, at: int) -> str:
        registered = _PLAN[at % _UNIT][1] == "register"
        return entity if registered or settings.noise < 3 else called[entity].short

    def place(document: str) -> int:
        return int(document[1:]) - 1

    for fact in facts:
        for document in fact.sources:
            at = place(document)
            said = (name(fact.entity, at), fact.attribute, fact.value)
            corrects = fact.stale is not None and at % _UNIT == _BOARD
            drafts[at].sentences.append(
                erratum_sentence(*said, fact.stale or 0)
                if corrects
                else fact_sentence(dice, *said, settings.prose)
            )
        for document in fact.stale_sources:
            at = place(document)
            stale = (name(fact.entity, at), fact.attribute, fact.stale or 0)
            drafts[at].sentences.append(fact_sentence(dice, *stale, settings.prose))
    for relation in relations:
        at = place(relation.source)
        subject, other = name(relation.subject, at), name(relation.object, at)
        drafts[at].sentences.append(relation_sentence(subject, relation.verb, other))
    found = []
    for number, draft in enumerate(drafts):
        title, kind, month = _PLAN[number % _UNIT]
        sentences = draft.sentences
        dice.shuffle(sentences)
        if number % _UNIT >= _UNIT - 2:
            sentences = distractor_text(dice)
        sentences = filler(dice, sentences)
        text = ("\n" if settings.prose == 0 else " ").join(sentences)
        if settings.noise >= 1:
            text = scanned(dice, text)
        day = f"{month}-{dice.randint(10, 28)}"
        found.append(Document(_id(number), title, kind, day, text + "\n"))
    if settings.noise == 4:
        found.append(_misspelt(found[_NEWSLETTER], len(found), entities))
    return tuple(found)


def _misspelt(document: Document, number: int, entities: Sequence[Entity]) -> Document:
    """Return a copy of a document with names misspelt, as of a careless typist."""
    text = document.text
    for one in entities:
        for name in (one.name, one.short):
            wrong = name[:2] + name[3] + name[2] + name[4:]
            text = text.replace(name, wrong)
    return Document(_id(number), f"{document.title} (copy)", "newsletter", "2023-09-14", text)
