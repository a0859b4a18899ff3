"""Read packs, and refuse what is not sound with the file, the line and the remedy."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from pydantic import ConfigDict, JsonValue, TypeAdapter, ValidationError

from pytest_modelbench.errors import PackProblem, UsageProblem
from pytest_modelbench.packs.manifest import Manifest, Problems, Table, read_prose
from pytest_modelbench.packs.model import (
    BENCHMARK,
    CASE_MANIFEST,
    CHECK_MODES,
    DAMAGED_MANIFEST,
    DAMAGED_SUFFIX,
    PACK_MANIFEST,
    PROTOCOLS,
    Case,
    CheckSpec,
    Damaged,
    EnvironmentSpec,
    Pack,
)
from pytest_modelbench.packs.shape import (
    Entries,
    check_id,
    check_solution_folder,
    check_task_folder,
    check_top,
    is_folder,
    listing,
)
from pytest_modelbench.packs.source import Source, load_source, read_cases
from pytest_modelbench.records import Limits, Trust

MOST_CHECK_SECONDS = 1e6
"""Eleven days. A system call that waits takes no more than twice that."""

PURE = "pure"
"""How the cases of a benchmark are checked: no code of anybody's runs, so once is enough."""

_JSON_OBJECT: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(
    dict[str, JsonValue], config=ConfigDict(defer_build=True)
)

PROMPT_FILE = "prompt.md"
SEED_FOLDER = "seed"
HIDDEN_FOLDER = "hidden"


def read_pack(folder: Path, references_root: Path) -> Pack:
    """Read a pack and its cases; raise PackProblem, or PackProblems for all that is wrong."""
    problems = Problems()
    pack = _read_pack(folder, references_root, problems)
    problems.check()
    return pack


def read_packs(folders: Iterable[Path], references_root: Path) -> tuple[Pack, ...]:
    """Read several packs, sorted by name; problems of all of them are raised together."""
    problems = Problems()
    packs = [_read_pack(folder, references_root, problems) for folder in folders]
    first: dict[str, Pack] = {}
    for pack in packs:
        other = first.setdefault(pack.name.casefold(), pack)
        if other is not pack:
            problems.add(
                f"pack {pack.name!r} has the name of {other.manifest}",
                pack.manifest,
                remedy="give one of them another [pack] name: results are kept by it",
            )
    problems.check()
    return tuple(sorted(packs, key=lambda pack: pack.name))


def find_packs(roots: Iterable[Path]) -> list[Path]:
    """Return the folders at or below some roots that hold a ``pack.toml``, sorted, each once.

    A root inside a pack finds that pack. Nothing is searched below a pack.
    """
    found: set[Path] = set()
    for root in roots:
        start = root.absolute()
        above = [one for one in (start, *start.parents) if (one / PACK_MANIFEST).is_file()]
        found.update(above[:1] or _packs_below(start))
    return sorted(found)


def _packs_below(folder: Path) -> Iterator[Path]:
    for here, folders, files in os.walk(folder):
        if PACK_MANIFEST in files:
            yield Path(here)
            folders.clear()
        if "pyvenv.cfg" in files:
            folders.clear()
        folders[:] = sorted(n for n in folders if n[0] not in "._" and n != "node_modules")


def _read_pack(folder: Path, references_root: Path, problems: Problems) -> Pack:
    path = folder / PACK_MANIFEST
    manifest = Manifest(path, problems)
    about = manifest.take_table("pack")
    name = about.take_text("name", folder.name)
    sound = len(problems)
    check_id("pack", name, path, about.line("name"), problems)
    if len(problems) > sound:
        name = folder.name  # the rest is read by a name that leads nowhere else
    title = about.take_text("title", name)
    tags = about.take_texts("tags")
    about.take_text("notes")
    of_benchmark = BENCHMARK in manifest
    protocol = about.take_choice("protocol", PROTOCOLS, BENCHMARK if of_benchmark else PROTOCOLS[0])
    if (protocol == BENCHMARK) is not of_benchmark:
        what = f"protocol {protocol!r} does not go " + ("with" if of_benchmark else "without")
        remedy = 'write [benchmark] with use = "…", or leave out both'
        about.problem("protocol", f"{what} a table [benchmark]", remedy)
    about.finish()
    limits = _limits(manifest.take_table("limits"), Limits())
    of_check, of_environment = manifest.take_table("check"), manifest.take_table("environment")
    if of_benchmark:
        _refuse_meaningless(of_check, of_environment)
    elif "threshold" in of_check:
        what = "threshold means nothing here: hidden checks hold or not, and give no reward between"
        of_check.problem("threshold", what, "remove it, or score answers by a [benchmark]")
    check = _check(of_check, CheckSpec())
    environment = _environment(of_environment)
    source = _source(manifest.take_table(BENCHMARK), folder, problems) if of_benchmark else None
    manifest.finish()

    entries = listing(folder)
    check_top(folder, entries, problems, may_list_cases=of_benchmark)
    references = references_root / name
    defaults = Pack(
        name=name,
        folder=folder,
        manifest=path,
        protocol=protocol,
        cases=(),
        limits=limits,
        check=check,
        environment=environment,
        title=title,
        tags=tags,
    )
    if of_benchmark:
        given = () if source is None else _given(source, defaults, problems)
        return replace(defaults, cases=given)
    folders = _case_folders(folder, entries, problems) if manifest.sound else []
    solutions = listing(references)
    cases = tuple(_read_case(one, defaults, references, solutions, problems) for one in folders)
    if manifest.sound:
        if not folders:
            problems.add(
                f"pack {name!r} has no case",
                path,
                remedy=f"add a folder with a {CASE_MANIFEST}, or begin with `modelbench new-pack`",
            )
        _check_names(cases, problems)
        _check_orphans(references, solutions, cases, problems)
    return replace(defaults, cases=cases)


def _refuse_meaningless(check: Table, environment: Table) -> None:
    """Refuse what says how code is run and judged: a benchmark's rules run none of anybody's."""
    for table, keys in ((check, ("mode", "seconds", "judge")), (environment, ("packages",))):
        for key in keys:
            if key in table:
                what = f"{key} means nothing beside [benchmark], whose rules are its own"
                table.problem(key, what, "remove it")


def _source(table: Table, folder: Path, problems: Problems) -> Source | None:
    """Load the benchmark of a pack; all keys but ``use`` are options of its own."""
    use = table.take_text("use")
    options = table.take_rest()
    if not use:
        table.problem("", "[benchmark] does not say which", 'write use = "NAME"')
        return None
    try:
        plain = _JSON_OBJECT.validate_python(options, strict=True)
        return load_source(use, folder, plain)
    except PackProblem as problem:
        problems.extend(problem)
    except ValidationError:
        table.problem("", "an option is a date or time", "write it as a string")
    except UsageProblem as problem:
        table.problem("use", str(problem), "see docs/write-a-benchmark.md")
    return None


def _given(source: Source, pack: Pack, problems: Problems) -> tuple[Case, ...]:
    """Return the cases that a benchmark gives."""
    try:
        given = read_cases(source)
    except PackProblem as problem:
        problems.extend(problem)
        return ()
    except UsageProblem as problem:
        problems.add(str(problem), pack.manifest, remedy="see docs/write-a-benchmark.md")
        return ()
    seen: dict[str, str] = {}
    for one in given:
        check_id("case", one.id, pack.manifest, None, problems)
        for variant in one.damaged:
            check_id("damaged answer", variant, pack.manifest, None, problems)
        first = seen.get(one.id.casefold())
        if first is not None:
            remedy = "give each case an id of its own, which capitals alone do not make"
            problems.add(f"two cases have the id {first!r}", pack.manifest, remedy=remedy)
        seen[one.id.casefold()] = one.id
    if not given:
        problems.add(f"pack {pack.name!r} has no case", pack.manifest, remedy="look at its data")
    check = replace(pack.check, mode=PURE)
    return tuple(
        Case(
            pack=pack.name,
            id=one.id,
            folder=pack.folder,
            manifest=pack.manifest,
            title=one.title or one.id,
            prompt=one.prompt,
            limits=pack.limits,
            seed=None,
            hidden=None,
            reference=None,
            damaged=tuple(
                Damaged(name, pack.folder, tuple(loses)) for name, loses in one.damaged.items()
            ),
            tags=(*pack.tags, *(tag for tag in one.tags if tag not in pack.tags)),
            group=one.group,
            protocol=pack.protocol,
            check=check,
            environment=pack.environment,
            source=source,
            given=one,
        )
        for one in given
    )


def _case_folders(folder: Path, entries: Entries, problems: Problems) -> list[Path]:
    """Return the folders of a pack that are cases, sorted by name; others are problems."""
    found: list[Path] = []
    for name, entry in entries.items():
        if name[0] in "._" or not is_folder(entry):
            continue
        path = folder / name
        if entry.is_symlink():
            problems.add(
                f"the case {name!r} is a symbolic link",
                path,
                remedy="put the case's own folder there",
            )
        elif not (path / CASE_MANIFEST).exists():
            problems.add(
                f"the folder {name!r} has no {CASE_MANIFEST}",
                path,
                remedy=f"write one, or name the folder _{name} if it is no case",
            )
        else:
            found.append(path)
    return found


def _read_case(
    folder: Path, pack: Pack, references: Path, solutions: Entries, problems: Problems
) -> Case:
    """Read a case; ``solutions`` is what the folder ``references`` holds."""
    path = folder / CASE_MANIFEST
    manifest = Manifest(path, problems)
    entries = listing(folder)
    name = manifest.take_text("id", folder.name)
    check_id("case", name, path, manifest.line("id") if "id" in manifest else None, problems)
    if name != folder.name:
        manifest.problem(
            "id",
            f"the id {name!r} is not the name of the case's folder, {folder.name!r}",
            "remove the key, or rename the folder",
        )
    title = manifest.take_text("title", name)
    prompt = _prompt(manifest, folder, entries, problems)
    tags = manifest.take_texts("tags")
    group = manifest.take_text("group")
    manifest.take_text("notes")
    limits = _limits(manifest.take_table("limits"), pack.limits)
    check = _check(manifest.take_table("check"), pack.check, for_case=True)
    manifest.finish()

    check_top(folder, entries, problems, folders=(SEED_FOLDER, HIDDEN_FOLDER))
    seed, hidden = entries.get(SEED_FOLDER), entries.get(HIDDEN_FOLDER)
    if seed is not None:
        check_task_folder(seed, problems)
    if hidden is not None:
        files = check_task_folder(hidden, problems)
        if not hidden.is_symlink() and hidden.is_dir() and not any(map(_is_check, files)):
            problems.add(
                "holds no hidden check",
                folder / HIDDEN_FOLDER,
                remedy="write test_NAME.py with test functions that ask for `solution`",
            )
    else:
        problems.add(
            f"case {name!r} has no folder {HIDDEN_FOLDER!r}",
            path,
            remedy=f"write hidden checks to {HIDDEN_FOLDER}/test_NAME.py",
        )
    reference = solutions.get(folder.name)
    if reference is not None:
        check_solution_folder(reference, problems)
    return Case(
        pack=pack.name,
        id=folder.name,
        folder=folder,
        manifest=path,
        title=title,
        prompt=prompt,
        limits=limits,
        seed=folder / SEED_FOLDER if is_folder(seed) else None,
        hidden=folder / HIDDEN_FOLDER if is_folder(hidden) else None,
        reference=references / folder.name if is_folder(reference) else None,
        damaged=_damaged(references, solutions, folder, problems),
        tags=(*pack.tags, *(tag for tag in tags if tag not in pack.tags)),
        group=group,
        protocol=pack.protocol,
        check=check,
        environment=pack.environment,
    )


def _is_check(name: str) -> bool:
    return name.startswith("test_") and name.endswith(".py")


def _prompt(manifest: Manifest, folder: Path, entries: Entries, problems: Problems) -> str:
    file = folder / PROMPT_FILE
    inline = manifest.take_text("prompt").strip()
    if "prompt" in manifest and PROMPT_FILE in entries:
        manifest.problem("prompt", f"the prompt stands in {PROMPT_FILE}, too", "keep one of them")
    if "prompt" not in manifest and PROMPT_FILE not in entries:
        if manifest.sound:
            problems.add(
                f"case {folder.name!r} has no prompt",
                manifest.path,
                remedy=f"add `prompt`, or write {PROMPT_FILE} beside it",
            )
        return ""
    prompt = inline if "prompt" in manifest else read_prose(file, problems)
    if not prompt:
        where = manifest.path if "prompt" in manifest else file
        problems.add("the prompt is empty", where, manifest.line("prompt"), remedy="write it")
    return prompt


_LIMITS = {key: field.annotation == int | None for key, field in Limits.model_fields.items()}
"""Every limit, and whether it is a whole number."""


def _limits(table: Table, default: Limits) -> Limits:
    """Read ``[limits]`` over those that hold without it."""
    taken = {key: table.take_number(key, whole=whole) for key, whole in _LIMITS.items()}
    table.finish()
    found = {key: number for key, number in taken.items() if number is not None}
    return Limits.model_validate({**default.model_dump(), **found}) if found else default


def _check(table: Table, default: CheckSpec, *, for_case: bool = False) -> CheckSpec:
    """Read ``[check]``. A case may only set what the pack leaves to it: the seconds."""
    seconds = table.take_number("seconds", whole=False, most=MOST_CHECK_SECONDS)
    mode, versions, least_trust = default.mode, default.versions, default.least_trust
    judge, threshold = default.judge, default.threshold
    if not for_case:
        mode = table.take_choice("mode", CHECK_MODES, default.mode)
        versions = table.take_texts("versions")
        threshold = table.take_number("threshold", whole=False, most=1.0)
        judge = table.take_text("judge")
        least_trust = Trust(table.take_choice("least_trust", list(Trust), default.least_trust))
        if judge and (mode != "separate" or least_trust is not Trust.JUDGED):
            table.problem(
                "judge",
                "a judge is asked by checks of mode separate, and its verdicts are judged",
                'write mode = "separate", and leave least_trust out',
            )
        if mode == "in-process" and least_trust is Trust.TRUSTED:
            table.problem(
                "least_trust",
                "no verdict of mode in-process is trusted: candidate code shares the process",
                'write least_trust = "evident", or mode = "separate"',
            )
    table.finish()
    if for_case and seconds is None:
        return default
    return CheckSpec(
        mode=mode,
        seconds=default.seconds if seconds is None else float(seconds),
        least_trust=least_trust,
        versions=versions,
        judge=judge,
        threshold=threshold,
    )


_PIN = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)==([A-Za-z0-9.!+_-]+)")


def _environment(table: Table) -> EnvironmentSpec:
    packages = table.take_texts("packages")
    table.finish()
    names: dict[str, str] = {}
    for package in packages:
        match = _PIN.fullmatch(package)
        if match is None:
            table.problem(
                "packages", f"{package!r} is not a pin", "write name==version: the list is the lock"
            )
            continue
        name = re.sub(r"[-_.]+", "-", match[1]).lower()
        if name in names:
            what = f"{package!r} pins what {names[name]!r} pins"
            table.problem("packages", what, "keep one of them")
        names[name] = package
    return EnvironmentSpec(packages)


def _damaged(
    references: Path, solutions: Entries, case: Path, problems: Problems
) -> tuple[Damaged, ...]:
    folder = references / f"{case.name}{DAMAGED_SUFFIX}"
    if not is_folder(solutions.get(folder.name)):
        return ()
    if not is_folder(solutions.get(case.name)):
        problems.add(
            "damages a reference that does not exist",
            folder,
            remedy=f"write {references / case.name} first",
        )
    variants: list[Damaged] = []
    words = _words_of_checks(case / HIDDEN_FOLDER)
    for name, entry in listing(folder).items():
        if name.startswith("."):
            continue
        path = folder / name
        if entry.is_symlink() or not entry.is_dir():
            problems.add(
                "is not the folder of a damaged variant", path, remedy="put it into one, or away"
            )
            continue
        check_id("damaged variant", name, path, None, problems)
        check_solution_folder(entry, problems)
        if not (path / DAMAGED_MANIFEST).is_file():
            problems.add(
                f"has no {DAMAGED_MANIFEST}",
                path,
                remedy='write it: loses = ["NAME_OF_A_CHECK"]',
            )
            continue
        manifest = Manifest(path / DAMAGED_MANIFEST, problems)
        loses = manifest.take_texts("loses")
        if manifest.sound and not loses:
            manifest.problem(
                "loses",
                "names no check that this variant loses",
                'write loses = ["NAME_OF_A_CHECK"]',
            )
        for check in loses:
            if words and (word := _word_of(check)) not in words:
                tests = [one for one in words if one.startswith("test")]
                close = difflib.get_close_matches(word, tests, n=1)
                manifest.problem(
                    "loses",
                    f"names the check {check!r}, which no {HIDDEN_FOLDER} file has",
                    f"did you mean {close[0]}?" if close else "name one that is there",
                )
        manifest.take_text("notes")
        manifest.finish()
        variants.append(Damaged(name, path, loses))
    return tuple(variants)


def _words_of_checks(hidden: Path) -> set[str]:
    """Return every word of the hidden files; a check's function is one, however it is made."""
    texts = (path.read_text("utf-8", "replace") for path in sorted(hidden.rglob("*.py")))
    return {word for text in texts for word in re.findall(r"\w+", text)}


def _word_of(check: str) -> str:
    """Return the function of a check's name: ``test_x`` of ``pkg/test_a.py::TestB::test_x[1]``."""
    return check.partition("[")[0].rpartition("::")[2]


def _check_names(cases: Iterable[Case], problems: Problems) -> None:
    first: dict[str, Case] = {}
    for case in cases:
        other = first.setdefault(case.id.casefold(), case)
        if other is not case:
            problems.add(
                f"the id {case.id!r} differs from {other.id!r} ({other.manifest}) only in case",
                case.manifest,
                remedy="rename one: some file systems cannot tell them apart",
            )


def _check_orphans(
    references: Path, solutions: Entries, cases: Iterable[Case], problems: Problems
) -> None:
    known = {case.id for case in cases}
    for name, entry in solutions.items():
        if name.removesuffix(DAMAGED_SUFFIX) in known or name[0] in "._":
            continue
        if is_folder(entry):
            problems.add(
                "is the reference of no case of this pack",
                references / name,
                remedy=f"name it after one of: {', '.join(sorted(known)) or 'none'}",
            )
