"""A folder of documents is made into a wiki: cited, linked, current, and about nothing else."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from pytest_modelbench.benchmarks.benchmark import Answer, Benchmark, Met, Private, Tool, verdict
from pytest_modelbench.benchmarks.jsonworlds.acting import TEXT, Arguments, acting, described
from pytest_modelbench.benchmarks.tools import ToolRefused
from pytest_modelbench.benchmarks.wiki.answers import DAMAGED, wiki_of
from pytest_modelbench.benchmarks.wiki.archive import ORGANISATION, Settings, archive_of
from pytest_modelbench.benchmarks.wiki.generating import generate
from pytest_modelbench.benchmarks.wiki.scoring import RULES_VERSION, WEIGHTS, score
from pytest_modelbench.packs.source import BenchmarkCase
from pytest_modelbench.records import Check, Verdict

COMPLETED = "completed"
PASS_AT = 0.8
"""The share from which a part of the score is a check that is passed."""

MOST_PAGES = 100
MOST_CHARS = 20_000
OPTIONS = ("dev", "test", "key")
_SETTINGS = ("seed", "scale", "prose", "noise")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,80}\.md")

PROMPT = f"""Make a wiki of the documents of the {ORGANISATION}. Read them all, write the pages with
write_page, and call finish when the wiki is complete: without it, nothing counts.

- One page for each station, vessel, person and programme of the institute, in a file of its own
  (NAME.md). It begins with "# " and the full name as in the registers, and says in your own words
  all that the documents say about it in numbers, and how it has to do with others. Do not copy out
  documents.
- Behind each statement, the document that it is from: [D03], or [D03] [D07]. No number that the
  documents of its page do not have.
- Pages link to one another where one is mentioned: [Name](name.md). The page index.md links to all.
- Where documents differ, this decides, in this order: an erratum over what it corrects; a register
  over an annual report, that over minutes, over newsletters, over press clippings; among equals the
  newest. What held before may stand beside what holds now, marked as such ("formerly 40").
- Leave out what is not about the {ORGANISATION}."""


@dataclass
class Desk:
    """The documents of an attempt, and the pages that it wrote."""

    documents: Sequence[Mapping[str, JsonValue]]
    pages: dict[str, str] = field(default_factory=dict)
    finished: bool = False


class Wiki(Benchmark[Desk]):
    """Archives made from seeds.

    Options: ``dev``, a list of tables with ``seed``, ``scale``, ``prose`` and ``noise``; ``test``,
    the same without ``seed``, which is derived from ``key``, a file that nobody else has.
    """

    version = "1"
    rules_version = f"{RULES_VERSION}; pass at {PASS_AT}"

    def __init__(self, folder: Path, options: Mapping[str, JsonValue]) -> None:
        """Take which archives are wanted."""
        wrong = sorted(set(options) - set(OPTIONS))
        if wrong:
            raise ValueError(f"it has no option {', '.join(wrong)}; it has {', '.join(OPTIONS)}")
        self.archives = {_name(one): one for one in map(_settings, _tables(options, "dev"))}
        hidden = _tables(options, "test")
        if hidden and "key" not in options:
            raise ValueError("test needs key, a file that their seeds are derived from")
        if hidden:
            key = (folder / str(options["key"])).read_bytes()
            for number, one in enumerate(hidden, 1):
                if "seed" in one:
                    raise ValueError("a table of test has no seed: it is derived from the key")
                settings = _settings({**one, "seed": derived_seed(key, number)})
                self.archives[f"test-{number}{_levels(settings)}"] = settings
        if not self.archives:
            raise ValueError("it needs dev = [{ seed = 1 }], or test")

    def cases(self) -> Iterator[BenchmarkCase]:
        """Yield a case an archive."""
        for name, settings in self.archives.items():
            archive = generate(settings)
            data = archive.as_data()
            yield BenchmarkCase(
                id=name,
                prompt=PROMPT,
                public={"documents": data["documents"]},
                private=Private(data),
                tags=("test" if name.startswith("test-") else "dev",),
                damaged={
                    # A larger archive has more headings of two digits, which no document has.
                    variant: (*loses, "grounding")
                    if variant == "everything-pasted" and settings.scale > 1
                    else loses
                    for variant, loses in DAMAGED.items()
                },
            )

    def setup(self, public: Mapping[str, JsonValue], folder: Path) -> Desk:
        """Lay out the documents."""
        documents = public["documents"]
        listed = documents if isinstance(documents, list | tuple) else ()
        return Desk([one for one in listed if isinstance(one, dict)])

    def tools(self, world: Desk) -> Sequence[Tool]:
        """Return what a writer can do."""
        return [*_reading(world), *_writing(world)]

    def harvest(self, world: Desk, met: Met) -> JsonValue:
        """Return the pages, and whether they were said to be complete."""
        return {"pages": {**world.pages}, "finished": world.finished}

    def verify(self, private: Private, observation: JsonValue) -> Verdict:
        """Score the pages; each part of the score is a check, passed from four fifths on."""
        seen = observation if isinstance(observation, dict) else {}
        pages, finished = seen.get("pages"), seen.get("finished") is True
        texts = {n: str(text) for n, text in pages.items()} if isinstance(pages, dict) else {}
        found = score(archive_of(private.data), texts, finished)
        parts = {name: found.parts[name] for name in WEIGHTS}
        checks = [
            Check(name=COMPLETED, passed=finished, reason="" if finished else "not finished"),
            *(
                Check(name=name, passed=share >= PASS_AT, reward=share, reason=f"{share:.2f}")
                for name, share in parts.items()
            ),
        ]
        return verdict(checks, reward=found.reward, reason="wrong" if finished else "not-completed")

    def reference(self, case: BenchmarkCase, variant: str = "") -> Answer | None:
        """Write the wiki that the truth gives, or a damaged one."""
        pages = wiki_of(archive_of(case.private.data), variant)
        calls: list[tuple[str, Mapping[str, JsonValue]]] = [
            ("write_page", {"name": name, "text": text}) for name, text in pages.items()
        ]
        if variant != "not-completed":
            calls.append(("finish", {}))
        return Answer("The wiki is complete.", tuple(calls))


def derived_seed(key: bytes, number: int) -> int:
    """Return the seed of a test archive: without the key nobody can make it beforehand."""
    if not key.strip():
        raise ValueError("the key is empty")
    return int(hashlib.sha256(b"wiki/%d/" % number + key.strip()).hexdigest()[:15], 16)


def _tables(options: Mapping[str, JsonValue], name: str) -> list[dict[str, JsonValue]]:
    value = options.get(name, [])
    if not isinstance(value, list):
        raise TypeError(f"{name} is a list of tables: {name} = [{{ noise = 1 }}]")
    return [one if isinstance(one, dict) else {"": one} for one in value]


def _settings(table: Mapping[str, JsonValue]) -> Settings:
    values = {name: value for name, value in table.items() if type(value) is int}
    if set(values) != set(table) or not set(table) <= set(_SETTINGS) or "seed" not in values:
        raise ValueError(f"{dict(table)}: an archive has whole numbers for {', '.join(_SETTINGS)}")
    return Settings(**values)


def _name(settings: Settings) -> str:
    return f"seed-{settings.seed}{_levels(settings)}"


def _levels(settings: Settings) -> str:
    scale = f"-x{settings.scale}" if settings.scale > 1 else ""
    return f"-p{settings.prose}-n{settings.noise}{scale}"


def _reading(world: Desk) -> list[Tool]:
    def documents(arguments: Arguments) -> str:
        return "\n".join(f"{_head(one)}" for one in world.documents)

    def document(arguments: Arguments) -> str:
        for one in world.documents:
            if one.get("id") == arguments["id"]:
                return f"{_head(one)}\n\n{one['text']}"
        known = ", ".join(str(one["id"]) for one in world.documents)
        raise ToolRefused(f"there is no document {arguments['id']!r}; there are: {known}")

    def pages(arguments: Arguments) -> str:
        return "\n".join(world.pages) or "There is no page yet."

    def page(arguments: Arguments) -> str:
        name = str(arguments["name"])
        if name not in world.pages:
            raise ToolRefused(f"there is no page {name!r}")
        return world.pages[name]

    return [
        acting("list_documents", "List the documents, with kind and date.", documents),
        acting("read_document", "Read a document.", document, {"id": described(TEXT, "as D03")}),
        acting("list_pages", "List the pages that you wrote.", pages),
        acting("read_page", "Read a page that you wrote.", page, {"name": TEXT}),
    ]


def _writing(world: Desk) -> list[Tool]:
    def write(arguments: Arguments) -> str:
        name, text = str(arguments["name"]), str(arguments["text"])
        if not _NAME.fullmatch(name):
            raise ToolRefused(f"{name[:60]!r} is no name; write letters, digits, - and _, and .md")
        if len(text) > MOST_CHARS:
            raise ToolRefused(f"a page has {MOST_CHARS} characters at most")
        if name not in world.pages and len(world.pages) >= MOST_PAGES:
            raise ToolRefused(f"a wiki has {MOST_PAGES} pages at most")
        world.pages[name] = text
        return f"{name} is written."

    def remove(arguments: Arguments) -> str:
        if world.pages.pop(str(arguments["name"]), None) is None:
            raise ToolRefused(f"there is no page {arguments['name']!r}")
        return f"{arguments['name']} is gone."

    def finish(arguments: Arguments) -> str:
        world.finished = True
        return "Finished."

    name = {"name": described(TEXT, "as fox-island.md")}
    return [
        acting("write_page", "Write a page, a new one or all of an old one.", write,
               {**name, "text": described(TEXT, "Markdown")}),
        acting("delete_page", "Remove a page.", remove, name),
        acting("finish", "Say that the wiki is complete; it ends the task.", finish, ends=True),
    ]  # fmt: skip


def _head(document: Mapping[str, JsonValue]) -> str:
    return " · ".join(str(document[key]) for key in ("id", "title", "kind", "date"))
