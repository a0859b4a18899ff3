import os
import pathlib
import subprocess

marker = "/tmp/mb_attack_git_textconv.marker"
here = pathlib.Path.cwd()
prog = here / ".tool.sh"
prog.write_text("#!/bin/sh\necho ran >> %s\nexec cat\n" % marker)
prog.chmod(0o755)


def git(*args, cwd=here):
    subprocess.run(["git", *args], capture_output=True, cwd=cwd)


git("config", "--local", "diff.x.textconv", str(prog))
git("config", "--local", "diff.x.command", str(prog))
(here / ".gitattributes").write_text("*.py diff=x\n")
