"""The portable baseline: what can be held without help of the kernel.

The command has an environment, HOME and TMPDIR of its own, limits, a deadline, and nothing of it is
left afterwards (Linux; elsewhere nothing of its process group). It runs as the harness's own user:
files, processes and the network of that user are in its reach. Results say so by their level. Where
the harness is root, the command has the uid alone and no power, and on Linux the harness's memory
and environment, so its keys, are closed to it.
"""

from __future__ import annotations

import os
import re
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_modelbench.errors import Fault
from pytest_modelbench.privacy import close_to_others
from pytest_modelbench.worlds.box import HOME, INTERPRETER, TEMPORARY, BoxSpec, variables
from pytest_modelbench.worlds.reaping import GRACE_SECONDS, REAPER, Held, ReapedBox, limits
from pytest_modelbench.worlds.removal import remove
from pytest_modelbench.worlds.runs import SCRATCH, runs_root


class PortableBox(ReapedBox):
    """Run commands as our own user, at host paths; the weakest level, and there on every machine.

    Targets of mounts are replaced by their sources in the working folder, the arguments and the
    variables, since nothing can be mounted. ``memory_bytes`` holds, ``processes`` does not: that
    limit would count all processes of the user.
    """

    level = "portable"
    own_root = False

    def __init__(self) -> None:
        super().__init__(owner=None)
        close_to_others()

    def _confinement(self, spec: BoxSpec, places: Mapping[str, str]) -> str:
        """Return what the kernel holds the command to, as the reaper takes it; '' for nothing."""
        return ""

    def _launch(
        self,
        argv: Sequence[str],
        spec: BoxSpec,
        *,
        stdin: int,
        stderr: int,
        pass_fds: Sequence[int] = (),
    ) -> Held:
        scratch = runs_root() / f"{SCRATCH}-{os.getpid()}-{secrets.token_hex(8)}"
        control_read, control_write = os.pipe()
        report_read, report_write = os.pipe()
        try:
            places = _places(spec, scratch)
            for folder in (scratch, scratch / "home", scratch / "tmp"):
                folder.mkdir(mode=0o700)
            process = subprocess.Popen(
                [
                    *(INTERPRETER, "-I", "-S", str(REAPER)),
                    *(str(control_read), str(report_write), str(GRACE_SECONDS), limits(spec)),
                    self._confinement(spec, places),
                    *(_at_host(argument, places) for argument in argv),
                ],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd=_at_host(spec.workdir, places),
                env={name: _at_host(value, places) for name, value in variables(spec).items()},
                pass_fds=[*pass_fds, control_read, report_write],
                start_new_session=True,
            )
        except OSError as error:
            os.close(control_write)
            os.close(report_read)
            remove(scratch)
            raise Fault("box", f"a command cannot be started: {error}") from error
        finally:
            os.close(control_read)
            os.close(report_write)
        return Held(process, control_write, report_read, scratch)


def _places(spec: BoxSpec, scratch: Path) -> dict[str, str]:
    """Return what stands for each path of the box on the host, scratch folders among it."""
    places = {HOME: str(scratch / "home"), TEMPORARY: str(scratch / "tmp")}
    for mount in spec.mounts:
        places[mount.target] = os.path.realpath(mount.source, strict=True)
    return places


def _at_host(text: str, places: Mapping[str, str]) -> str:
    """Replace paths of the box in a text, the longest first; ``/work`` in ``/workshop`` is none."""
    targets = sorted(places, key=len, reverse=True)
    pattern = "|".join(re.escape(target) for target in targets)
    return re.sub(rf"(?<![\w./-])({pattern})(?![\w.-])", lambda found: places[found[1]], text)
