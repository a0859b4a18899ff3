"""How documents of an archive say what they say."""

from __future__ import annotations

import random
import re
import textwrap
from collections.abc import Sequence

from pytest_modelbench.benchmarks.wiki.archive import NUMBER_WORDS, ORGANISATION, grouped, in_words

DISTRACTORS = ("Southmere Aquarium", "Captain Ribbon", "Halle Bright")
"""Who the documents about something else are about."""

_SAID = {
    "founded": ("{0} was opened in {1}.", "Work at {0} began in {1}, in two huts by the shore."),
    "staff": ("At {0} {1} people are employed.", "The payroll of {0} lists {1} names."),
    "budget": ("{0} has {1} crowns a year to spend.", "The yearly budget of {0} is {1} crowns."),
    "launched": ("{0} left the slip in {1}.", "The yard launched {0} in {1}."),
    "crew": ("{0} sails with a crew of {1}.", "There are berths for {1} on {0}, all taken."),
    "range": ("{0} can go {1} nautical miles without a port.", "The range of {0} is {1} miles."),
    "joined": ("{0} joined in {1}.", "Since {1} {0} has been with the institute."),
    "started": ("{0} has run since {1}.", "The first season of {0} was {1}."),
    "samples": ("{0} holds {1} samples.", "In the store of {0} there are {1} samples."),
}
_FILLER = (
    "The weather was kinder than in most years, with {} dry days.",
    "Thanks are due to the {} helpers who gave their time.",
    "The harbour road is to be mended over {} metres when there is money for it.",
    "Lunch was taken standing, by {} persons.",
    "Visitors are asked to keep their dogs on a lead; {} did not.",
    "A list of the {} persons present is kept with the secretary.",
    "The pump in shed {} has been taken away at last.",
    "The library has {} new books, most of them about birds.",
    "Of {} letters that came in, nearly all have been answered.",
    "The kitchen served {} plates of soup in a single week.",
    "A walk along the shore was joined by {} guests of all ages.",
)
"""What says nothing; its numbers are none that a fact could have."""

_ELSEWHERE = (
    "Southmere Aquarium welcomed 41,200 guests, more than ever.",
    "Captain Ribbon, the oldest turtle of Southmere Aquarium, weighs 138 kilograms.",
    "Halle Bright has been elected to lead the members of Southmere Aquarium.",
    "The new tank of Southmere Aquarium takes 310 cubic metres of water.",
    "Feeding of the rays is at half past three.",
)


def fact_sentence(dice: random.Random, name: str, attribute: str, value: int, prose: int) -> str:
    """Say a fact: as a line, a sentence, or (prose 2) a sentence whose number may be in words."""
    if prose == 0:
        return f"{name} - {attribute}: {grouped(value)}"
    written = grouped(value)
    if prose == 2 and not 1000 <= value <= 2100 and dice.random() < 0.5:
        written = in_words(value)
    return dice.choice(_SAID[attribute]).format(name, written)


def erratum_sentence(name: str, attribute: str, value: int, wrong: int) -> str:
    """Correct what another document says."""
    return (
        f"Erratum to the annual report: under {name}, {attribute}, read {grouped(value)} "
        f"instead of {grouped(wrong)}."
    )


def relation_sentence(subject: str, verb: str, other: str) -> str:
    """Say a relation."""
    return f"{subject} {verb} {other}."


def distractor_text(dice: random.Random) -> list[str]:
    """Return sentences about something else."""
    return dice.sample(_ELSEWHERE, 4)


def filler(dice: random.Random, sentences: Sequence[str]) -> list[str]:
    """Return sentences with others between them that say nothing."""
    found = [*sentences]
    for one in dice.sample(_FILLER, 7):
        number = dice.choice((dice.randint(13, 29), dice.randint(500, 999)))
        found.insert(dice.randint(0, len(found)), one.format(number))
    return [f"From the files of the {ORGANISATION}.", *found]


def scanned(dice: random.Random, text: str) -> str:
    """Return a text as a scanner reads it: lines, words divided, smudges; numbers stay whole."""
    lines = []
    for paragraph in text.split("\n"):
        for line in textwrap.wrap(paragraph, 72, break_long_words=False, break_on_hyphens=False):
            word = re.search(r"\b[a-z]{8,}\b", line)
            if word and word.group() not in NUMBER_WORDS and dice.random() < 0.6:
                middle = word.start() + 4
                line = f"{line[:middle]}-\n{line[middle:]}"
            lines.append(line + dice.choice(("", "", "", " ~", "  ,")))
    return "\n".join(lines)
