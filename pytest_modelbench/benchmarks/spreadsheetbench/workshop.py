"""A folder in a box in which Python code that is not ours changes workbooks."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
import stat
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pytest_modelbench.errors import UsageProblem
from pytest_modelbench.worlds.box import INTERPRETER, WORK, Box, BoxSpec, Mount
from pytest_modelbench.worlds.ownership import give

INPUT = "input.xlsx"
OUTPUT = "output.xlsx"
MOST_BYTES = 32 * 2**20
"""Of an output; a larger one is none."""

OUTPUT_BYTES = 2**18
RECALC_SECONDS = 120.0
_LIBRARIES = ("openpyxl", "et_xmlfile")
_PACKAGES = "/packages"
_REGISTRY = Path("/etc/libreoffice/registry")
_PROFILE = "file:///tmp/profile"

_BOOT = (
    "import mimetypes, sys; mimetypes.knownfiles = []; "
    "exec(compile(sys.stdin.read(), 'program.py', 'exec'), {'__name__': '__main__'})"
)
"""Take the program by the input: an argument is bounded to 128 KiB.

openpyxl asks for the types of files, which are in a file that a level may hold back.
"""

# The package writes the names of sheets in capitals.
_FORMULAS = f"""
import formulas, openpyxl, os
names = {{n.upper(): n for n in openpyxl.load_workbook({OUTPUT!r}, read_only=True).sheetnames}}
model = formulas.ExcelModel().loads({OUTPUT!r}).finish()
model.calculate()
model.write(dirpath="calculated")
(found,) = [n for n in os.listdir("calculated") if n.lower() == {OUTPUT!r}]
book = openpyxl.load_workbook(os.path.join("calculated", found))
for number, sheet in enumerate(book.worksheets):
    name = names.get(sheet.title.upper(), sheet.title)
    sheet.title = f"~{{number}}"
    sheet.title = name
book.save({OUTPUT!r})
"""


@dataclass(frozen=True)
class Ran:
    """How code ended; ``status`` is None after a time-out or a signal."""

    status: int | None
    text: str
    timed_out: bool


class Workshop:
    """One folder, with a workbook in it that code may read; what it writes stays in it."""

    def __init__(self, box: Box, folder: Path, workbook: Path) -> None:
        self._box = box
        self._folder = folder
        shutil.copyfile(workbook, folder / INPUT)
        folder.chmod(0o755)  # a box enters its work folder before it is the owner
        give(folder, box.owner)

    def run(self, code: str, seconds: float) -> Ran:
        """Run code in the folder, with openpyxl and the standard library."""
        return self._run(code, (Mount(_packages(), _PACKAGES),), _PACKAGES, seconds)

    def lay(self, output: bytes) -> None:
        """Put an output there that was written elsewhere."""
        (self._folder / OUTPUT).write_bytes(output)
        give(self._folder, self._box.owner)

    def recalculate(self, how: str) -> str:
        """Have the output's formulas calculated by a spreadsheet program; return what went wrong.

        The program runs in the box, since what it reads was written by a candidate.
        """
        if how == "none" or self.output() is None:
            return ""
        if how == "formulas":
            site = Mount(Path(sysconfig.get_paths()["purelib"]), _PACKAGES)
            ran = self._run(_FORMULAS, (site,), _PACKAGES, RECALC_SECONDS)
        else:
            ran = self._convert()
        return "" if ran.status == 0 else f"{how}: {' '.join(ran.text.split())[-300:] or 'failed'}"

    def output(self) -> bytes | None:
        """Return the workbook that was written; None for none, for a link, for one too large."""
        with contextlib.suppress(OSError):
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            with os.fdopen(os.open(self._folder / OUTPUT, flags), "rb") as file:
                status = os.fstat(file.fileno())
                if stat.S_ISREG(status.st_mode) and status.st_size <= MOST_BYTES:
                    return file.read(MOST_BYTES)
        return None

    def _convert(self) -> Ran:
        program = office()
        install = program.parent.parent
        mounts: tuple[Mount, ...] = ()
        inside = str(program)
        if not install.is_relative_to("/usr"):
            mounts, inside = (Mount(install, "/office"),), f"/office/{program.parent.name}/soffice"
        convert = [inside, "--headless", f"-env:UserInstallation={_PROFILE}"]
        if _REGISTRY.is_dir():  # Debian keeps it in /etc, of which a box has nearly nothing
            mounts += (Mount(_REGISTRY, "/registry"),)
            layers = "xcsxcu:file:///registry res:file:///registry"
            user = f"user:!{_PROFILE}/user/registrymodifications.xcu"
            convert.append(f"-env:CONFIGURATION_LAYERS={layers} {user}")
        convert += ["--convert-to", "xlsx", "--outdir", f"{WORK}/calculated", f"{WORK}/{OUTPUT}"]
        script = f'"$@" && mv calculated/{OUTPUT} {OUTPUT}'
        done = self._box.run(
            ["/bin/sh", "-c", script, "sh", *convert],
            self._spec(mounts, ""),
            seconds=RECALC_SECONDS,
        )
        return Ran(done.status, done.output.decode("utf-8", "replace"), done.timed_out)

    def _run(self, code: str, mounts: tuple[Mount, ...], path: str, seconds: float) -> Ran:
        done = self._box.run(
            [INTERPRETER, "-s", "-S", "-P", "-B", "-u", "-c", _BOOT],
            self._spec(mounts, path),
            stdin=code.encode("utf-8", "replace"),
            seconds=seconds,
            output_bytes=OUTPUT_BYTES,
        )
        return Ran(done.status, done.output.decode("utf-8", "replace"), done.timed_out)

    def _spec(self, mounts: tuple[Mount, ...], path: str) -> BoxSpec:
        own = Mount(self._folder, WORK, writable=True)
        return BoxSpec(mounts=(own, *mounts), environment={"PYTHONPATH": path} if path else {})


@contextlib.contextmanager
def workshop(box: Box, workbook: Path) -> Iterator[Workshop]:
    """Open a workshop in a folder of its own, which is gone afterwards."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        yield Workshop(box, Path(name), workbook)


def check_recalculation(how: str) -> None:
    """Raise UsageProblem where what is to calculate is not on this machine."""
    if how == "libreoffice":
        office()
    if how == "formulas" and find_spec("formulas") is None:
        raise UsageProblem('recalc = "formulas" needs the package formulas; install it')


def office() -> Path:
    """Return where LibreOffice's ``soffice`` is; UsageProblem for nowhere."""
    found = shutil.which("soffice")
    if found is None:
        raise UsageProblem('recalc = "libreoffice" needs soffice on the PATH; install LibreOffice')
    return Path(found).resolve()


def library_version() -> str:
    """Return openpyxl's version; UsageProblem where it is missing."""
    _library("openpyxl")
    from importlib.metadata import version

    return version("openpyxl")


@functools.cache
def _packages() -> Path:
    """Return a folder that holds the libraries and nothing else, of this process.

    Where they are installed much else is, and a level that holds reading by folders has to let
    code read the whole of one.
    """
    folder = Path(tempfile.mkdtemp(prefix="modelbench-packages-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for place in map(_library, _LIBRARIES):
        shutil.copytree(place, folder / place.name, ignore=shutil.ignore_patterns("__pycache__"))
    folder.chmod(0o755)
    return folder


def _library(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise UsageProblem("workbooks need openpyxl; install pytest-modelbench[spreadsheet]")
    return Path(spec.origin).parent
