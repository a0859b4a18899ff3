import os
import pathlib
import subprocess

marker = "/tmp/mb_attack_git_submodule.marker"
here = pathlib.Path.cwd()
prog = here / ".tool.sh"
prog.write_text("#!/bin/sh\necho ran >> %s\nexec cat\n" % marker)
prog.chmod(0o755)


def git(*args, cwd=here):
    subprocess.run(["git", *args], capture_output=True, cwd=cwd)


inner = here / "inner"
inner.mkdir()
git("init", "-q", ".", cwd=inner)
(inner / "file").write_text("x")
git("config", "user.name", "n", cwd=inner)
git("config", "user.email", "n@n.invalid", cwd=inner)
git("add", "-A", cwd=inner)
git("commit", "-qm", "inner", cwd=inner)
git("config", "core.fsmonitor", str(prog), cwd=inner)
