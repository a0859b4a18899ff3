"""``modelbench fetch-data``: take a copy of a benchmark's data, know it, and make a pack of it.

Nothing is downloaded: data has licences and revisions, and a score belongs to one of them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from pydantic import JsonValue

from pytest_modelbench.errors import UsageProblem
from pytest_modelbench.packs.model import PACK_MANIFEST
from pytest_modelbench.packs.source import load_source, read_cases
from pytest_modelbench.settings import CASES, in_project

DATA = "data"
REVISION = "revision.json"
_CHUNK = 2**20


@dataclass(frozen=True)
class DataSet:
    """What is known of a benchmark's data: where it lies in a copy, and what copies there are.

    ``markers`` are names of files one of which is at the top of the data; ``wanted`` matches the
    files below that belong to it. ``known`` is digest → revision; ``sizes`` is the number of cases
    → what is called so. ``version`` reads a version off the copy's name.
    """

    title: str
    markers: tuple[str, ...]
    wanted: re.Pattern[str]
    options: Mapping[str, JsonValue]
    known: Mapping[str, str]
    sizes: Mapping[int, str]
    version: re.Pattern[str]
    unknown: str


_BFCL = DataSet(
    title="BFCL single-turn AST",
    markers=("BFCL_v4_simple_python.json", "simple_python.jsonl"),
    wanted=re.compile(
        r"(possible_answer/)?BFCL_v4_(simple|multiple|parallel|irrelevance|live|multi_turn)"
        r"\w*\.json|multi_turn_func_doc/\w+\.json|[a-z_]+\.jsonl"
    ),
    options={"data": DATA},
    known={
        "153c463eefd592a32a28906f13ca8c9e6c4b8e2b34c3ed4be70969cd6e4cbdea": ("bfcl-eval 2026.3.23"),
    },
    sizes={3641: "all categories of v4"},
    version=re.compile(r"bfcl_eval-(\d[\w.]*?)-"),
    unknown="the rules are those of bfcl-eval 2026.3.23, and the data is another",
)

SETS: Mapping[str, DataSet] = {
    "bfcl": _BFCL,
    "bfcl-multi-turn": replace(
        _BFCL,
        title="BFCL multi-turn without long context",
        markers=("BFCL_v4_multi_turn_base.json", "multi_turn_base.jsonl"),
        sizes={600: "three of the four categories of v4"},
    ),
    "bird": DataSet(
        title="BIRD",
        markers=("dev.json", "mini_dev_sqlite.json", "questions.json"),
        wanted=re.compile(
            r"(dev|mini_dev_sqlite|questions)\.json|(\w+/)?(\w+/)?[\w-]+\.sqlite",
        ),
        options={},
        known={},
        sizes={1534: "the dev set", 500: "mini-dev"},
        version=re.compile(r"(\d{4}-?\d\d-?\d\d)"),
        unknown="the dev set has three revisions (2023, 2024-06-27, 2025-11-06) that do not say "
        "which they are; tell it with --revision",
    ),
    "spreadsheetbench": DataSet(
        title="SpreadsheetBench",
        markers=("dataset.json",),
        wanted=re.compile(r"dataset\.json|spreadsheet/[^/]+/[^/]+\.xlsx"),
        options={"data": DATA},
        known={},
        sizes={912: "the whole benchmark", 400: "the verified subset"},
        version=re.compile(r"(verified|v\d[\w.]*)"),
        unknown="upstream gives its data no version; tell where it is from with --revision",
    ),
}


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "fetch-data", help="take your copy of a benchmark's data, and make a pack of it"
    )
    parser.add_argument("benchmark", choices=sorted(SETS), metavar="NAME", help=", ".join(SETS))
    parser.add_argument(
        "--from",
        dest="source",
        type=Path,
        required=True,
        metavar="PATH",
        help="a folder, a wheel, a .zip or a .tar.gz",
    )
    parser.add_argument("--sha256", default="", metavar="HEX", help="what the archive has to be")
    parser.add_argument("--revision", default="", metavar="TEXT", help="which revision it is")
    parser.add_argument("--name", default="", metavar="NAME", help="of the pack; default: NAME")
    parser.add_argument("--cases", type=Path, default=in_project(CASES), metavar="DIR")
    parser.set_defaults(run=_run)


def fetch(
    benchmark: str,
    source: Path,
    folder: Path,
    *,
    sha256: str = "",
    revision: str = "",
) -> list[str]:
    """Copy the data into a pack's folder; return what is to be said of it.

    Raises:
        UsageProblem: it is not the data, not what its hash or version says, or there is other data.
    """
    known = SETS[benchmark]
    if not source.exists():
        raise UsageProblem(f"{source}: there is no such file or folder")
    if sha256:
        _check_archive(source, sha256)
    with _unpacked(source) as top:
        root = _root(known, top, source)
        files = sorted(_wanted(known, root))
        digest = _digest(root, files)
        version = _version(known, source, root)
        _refuse_damaged(known, source, digest, version)
        _refuse_other(folder / DATA, digest)
        options = _options(benchmark, known, root)
        count = _laid(benchmark, root, files, folder, options)
    said = known.known.get(digest) or revision or (version and f"{version}, as its name says")
    what = known.sizes.get(count, "a part")
    title = f"{known.title} ({said or f'sha256 {digest[:12]}'})"
    facts = {
        "benchmark": benchmark,
        "revision": said,
        "sha256": digest,
        "cases": count,
        "files": len(files),
    }
    (folder / DATA / REVISION).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    (folder / DATA / ".gitignore").write_text("*\n", encoding="utf-8")
    lines = [f"{known.title}: {count:,} cases, {what}", f"data: sha256 {digest}"]
    if digest in known.known:
        lines.append(f"scores belong to {said}, the copy that the rules were checked with")
    else:
        lines.append(f"scores belong to {said or 'this digest'}: {known.unknown}")
    manifest = folder / PACK_MANIFEST
    if manifest.exists():
        lines.append(f"{manifest} is left as it is")
    else:
        manifest.write_text(_manifest(benchmark, title, options), encoding="utf-8")
        lines.append(f"wrote {manifest}")
    return lines


def _run(options: argparse.Namespace) -> int:
    folder: Path = options.cases / (options.name or options.benchmark)
    for line in fetch(
        options.benchmark,
        options.source,
        folder,
        sha256=options.sha256,
        revision=options.revision,
    ):
        print(line)
    print(f"\nIs it sound?  pytest --models reference,seed {folder}")
    return 0


def _check_archive(source: Path, sha256: str) -> None:
    if not source.is_file():
        raise UsageProblem(f"{source}: --sha256 is of an archive, and this is a folder")
    with source.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256.lower():
        raise UsageProblem(f"{source}: its SHA-256 is {found}, and not {sha256}; get it again")


@contextmanager
def _unpacked(source: Path) -> Iterator[Path]:
    """Give a folder of the copy; an archive is unpacked into one that is gone afterwards."""
    if source.is_dir():
        yield source
        return
    with tempfile.TemporaryDirectory(prefix="modelbench-data-") as name:
        try:
            if zipfile.is_zipfile(source):
                with zipfile.ZipFile(source) as archive:
                    archive.extractall(name)
            elif tarfile.is_tarfile(source):
                with tarfile.open(source) as archive:
                    archive.extractall(name, filter="data")
            else:
                raise UsageProblem(f"{source}: it is no folder, no wheel, no .zip and no .tar")
        except (OSError, tarfile.TarError, zipfile.BadZipFile) as error:
            raise UsageProblem(f"{source}: it cannot be unpacked: {error}") from error
        yield Path(name)


def _root(known: DataSet, top: Path, source: Path) -> Path:
    """Return the folder of the data in a copy: the one nearest to its top."""
    for marker in known.markers:
        found = sorted(top.rglob(marker), key=lambda path: (len(path.parts), path))
        if found:
            return found[0].parent
    names = " or ".join(known.markers)
    raise UsageProblem(f"{source}: there is no {names} in it, so it is no copy of {known.title}")


def _wanted(known: DataSet, root: Path) -> Iterator[str]:
    for path in root.rglob("*"):
        name = path.relative_to(root).as_posix()
        if path.is_file() and not path.is_symlink() and known.wanted.fullmatch(name):
            yield name


def _digest(root: Path, files: Sequence[str]) -> str:
    """Return the digest of names and contents."""
    total = hashlib.sha256()
    for name in files:
        with (root / name).open("rb") as file:
            total.update(f"{name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return total.hexdigest()


def _version(known: DataSet, source: Path, root: Path) -> str:
    """Return the version that the copy's name tells, or a folder above the data; '' for none."""
    for name in (source.name, *(part for part in reversed(root.parts))):
        found = known.version.search(name)
        if found:
            return found[1]
    return ""


def _refuse_damaged(known: DataSet, source: Path, digest: str, version: str) -> None:
    """Refuse a copy that bears the version of known data and is not that data."""
    for other, revision in known.known.items():
        if version and revision.endswith(f" {version}") and digest != other:
            raise UsageProblem(
                f"{source}: its name says {version}, and its data is not that of {revision} "
                f"(sha256 {digest}, and not {other}); get it again"
            )


def _refuse_other(place: Path, digest: str) -> None:
    """Refuse to lay data over other data: stored results belong to that."""
    if not place.is_dir():
        return
    try:
        there = json.loads((place / REVISION).read_text(encoding="utf-8"))["sha256"]
    except (OSError, ValueError, KeyError):
        there = "another"
    if there != digest:
        raise UsageProblem(
            f"{place}: there is data already, of another revision (sha256 {there}); remove it, or "
            "give this pack a --name of its own"
        )


def _laid(
    benchmark: str,
    root: Path,
    files: Iterable[str],
    folder: Path,
    options: Mapping[str, JsonValue],
) -> int:
    """Copy the files and return the number of cases; where those cannot be read, leave nothing."""
    place = folder / DATA
    new = not place.exists()
    try:
        for name in files:
            target = place / PurePosixPath(name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, target)
        return len(read_cases(load_source(benchmark, folder, options)))
    except BaseException:
        if new:
            shutil.rmtree(place, ignore_errors=True)
        raise


def _options(benchmark: str, known: DataSet, root: Path) -> dict[str, JsonValue]:
    """Return the options of ``[benchmark]`` for the data that is there."""
    if benchmark != "bird":
        return dict(known.options)
    questions = next(name for name in known.markers if (root / name).is_file())
    found = sorted(root.rglob("*.sqlite"))
    # NAME.sqlite, or NAME/NAME.sqlite
    above = {one.parents[1] if one.stem == one.parent.name else one.parent for one in found}
    if len(above) != 1:
        what = "no database NAME.sqlite" if not above else f"databases in {len(above)} folders"
        raise UsageProblem(f"{root}: there are {what} in the copy; bring one folder of them")
    databases = PurePosixPath(DATA, above.pop().relative_to(root).as_posix())
    options: dict[str, JsonValue] = {
        "questions": f"{DATA}/{questions}",
        "databases": str(databases),
    }
    asked = json.loads((root / questions).read_text(encoding="utf-8"))
    wanted = {str(one.get("db_id")) for one in asked if isinstance(one, dict)}
    here = {path.stem for path in found}
    if wanted - here:
        options["only"] = [*sorted(wanted & here)]
    return options


def _manifest(benchmark: str, title: str, options: Mapping[str, JsonValue]) -> str:
    told = "".join(f"{key} = {json.dumps(value)}\n" for key, value in options.items())
    return (
        "# Made by `modelbench fetch-data`, once; edit it as you like.\n\n"
        f"[pack]\ntitle = {json.dumps(title)}\n\n"
        f'[benchmark]\nuse = "{benchmark}"\n{told}\n'
        "[limits]\nturns = 15\nseconds = 600\n"
    )
