"""A small file system: a tree of folders, and the folder one is in."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_modelbench.benchmarks.bfcl.apps.app import App, Refusal, State

FORBIDDEN = frozenset('|/\\?%*:"><')

Folder = dict[str, Any]  # Any: a text is a file, a dict is a folder


class Files(App):
    """Two runs are compared by their trees, wherever they are in them."""

    def __init__(self, scenario: Mapping[str, Any]) -> None:  # Any: JSON, as in `State`
        """Begin as a scenario says, at the top."""
        super().__init__({})
        root = copy.deepcopy(scenario.get("root"))
        name, told = next(iter(root.items())) if root else ("/", {"contents": {}})
        self.hidden: State = {"name": name, "path": []}
        self.state: State = {"root": _tree(told["contents"])}

    def pwd(self) -> object:
        """Return where one is."""
        return {"current_working_directory": "/" + "/".join([self._name, *self.hidden["path"]])}

    def ls(self, a: bool = False) -> object:
        """List the folder; hidden names when asked to."""
        return {"current_directory_content": [n for n in self._here if a or n[:1] != "."]}

    def cd(self, folder: str) -> object:
        """Go into a folder, up, or to the top."""
        wanted = folder.rstrip("/") or "/"
        if wanted == "..":
            if not self.hidden["path"]:
                raise Refusal("This is the top folder already.")
            self.hidden["path"].pop()
            return {}
        if "/" in wanted and wanted != "/":
            raise Refusal(f"cd: {wanted}: one folder at a time")
        if wanted == "/":
            self.hidden["path"] = []
        elif wanted != ".":
            self._folder(wanted, "cd")
            self.hidden["path"].append(wanted)
        path = self.hidden["path"]
        return {"current_working_directory": path[-1] if path else self._name}

    def mkdir(self, dir_name: str) -> object:
        """Make a folder."""
        self._make("mkdir", dir_name, {})
        return None

    def touch(self, file_name: str) -> object:
        """Make an empty file."""
        self._make("touch", file_name, "")
        return None

    def echo(self, content: str, file_name: str | None = None) -> object:
        """Write into a file that is there, or show."""
        if not file_name:
            return {"terminal_output": content}
        self._must_be_name("echo", file_name)
        if not isinstance(self._here.get(file_name), str):
            raise Refusal(f"echo: cannot write to '{file_name}': no such file")
        self._here[file_name] = content
        return None

    def cat(self, file_name: str) -> object:
        """Show a file."""
        self._must_be_name("cat", file_name)
        if isinstance(self._here.get(file_name), dict):
            raise Refusal(f"cat: '{file_name}' is a folder")
        return {"file_content": self._text("cat", file_name)}

    def find(self, path: str = ".", name: str | None = None) -> object:
        """Return what is below a folder and has a text in its name."""
        start = self._folder(path, "find")
        below = _below(start, path.rstrip("/"))
        return {"matches": [place for place, one in below if name is None or name in one]}

    def wc(self, file_name: str, mode: str = "l") -> object:
        """Count lines, words or characters."""
        if mode not in ("l", "w", "c"):
            raise Refusal(f"wc: there is no mode '{mode}'")
        text = self._text("wc", file_name)
        kind = {"l": "lines", "w": "words", "c": "characters"}[mode]
        parts = {"l": text.splitlines(), "w": text.split(), "c": text}[mode]
        return {"count": len(parts), "type": kind}

    def sort(self, file_name: str) -> object:
        """Show a file's lines in order."""
        return {"sorted_content": "\n".join(sorted(self._text("sort", file_name).splitlines()))}

    def grep(self, file_name: str, pattern: str) -> object:
        """Show the lines that hold a text."""
        lines = self._text("grep", file_name).splitlines()
        return {"matching_lines": [line for line in lines if pattern in line]}

    def du(self, human_readable: bool = False) -> object:
        """Return the size of all files here and below."""
        size = float(_size(self._here))
        if not human_readable:
            return {"disk_usage": f"{size:.0f} bytes"}
        units = ["B", "KB", "MB", "GB", "TB", "PB"]
        while size >= 1024 and len(units) > 1:
            size /= 1024
            units.pop(0)
        return {"disk_usage": f"{size:.2f} {units[0]}"}

    def tail(self, file_name: str, lines: int = 10) -> object:
        """Show the last lines of a file."""
        found = self._text("tail", file_name).splitlines()
        return {"last_lines": "\n".join(found[-min(lines, len(found)) :])}

    def diff(self, file_name1: str, file_name2: str) -> object:
        """Show the lines in which two files differ."""
        texts = [self._text("diff", name).splitlines() for name in (file_name1, file_name2)]
        pairs = zip(*texts, strict=False)
        return {"diff_lines": "\n".join(f"- {a}\n+ {b}" for a, b in pairs if a != b)}

    def mv(self, source: str, destination: str) -> object:
        """Move into a folder, or under another name."""
        return self._transfer("mv", "moved", source, destination, keep=False)

    def cp(self, source: str, destination: str) -> object:
        """Copy into a folder, or under another name."""
        return self._transfer("cp", "copied", source, destination, keep=True)

    def rm(self, file_name: str) -> object:
        """Remove a file, or a folder with all in it."""
        if file_name not in self._here:
            raise Refusal(f"rm: there is no '{file_name}'")
        del self._here[file_name]
        return {"result": f"'{file_name}' removed"}

    def rmdir(self, dir_name: str) -> object:
        """Remove an empty folder."""
        found = self._here.get(dir_name)
        if not isinstance(found, dict):
            raise Refusal(f"rmdir: there is no folder '{dir_name}'")
        if found:
            raise Refusal(f"rmdir: '{dir_name}' is not empty")
        del self._here[dir_name]
        return {"result": f"'{dir_name}' removed"}

    @property
    def _name(self) -> str:
        return str(self.hidden["name"])

    @property
    def _here(self) -> Folder:
        folder: Folder = self.state["root"]
        for name in self.hidden["path"]:
            folder = folder[name]
        return folder

    def _folder(self, path: str, what: str) -> Folder:
        """Return the folder at a path from here, or from the top."""
        folder: Folder = self.state["root"] if path.startswith("/") else self._here
        for name in path.strip("/").split("/"):
            found = folder if name in (".", "") else folder.get(name)
            if not isinstance(found, dict):
                raise Refusal(f"{what}: '{path}': no such folder")
            folder = found
        return folder

    def _text(self, what: str, name: str) -> str:
        found = self._here.get(name)
        if not isinstance(found, str):
            raise Refusal(f"{what}: {name}: no such file")
        return found

    def _must_be_name(self, what: str, name: str) -> None:
        if FORBIDDEN & set(name):
            raise Refusal(f"{what}: '{name}' has a character that no name may have")

    def _make(self, what: str, name: str, made: object) -> None:
        self._must_be_name(what, name)
        if name in self._here:
            raise Refusal(f"{what}: '{name}' is there already")
        self._here[name] = made

    def _transfer(self, what: str, done: str, source: str, target: str, *, keep: bool) -> object:
        here = self._here
        if source not in here:
            raise Refusal(f"{what}: there is no '{source}'")
        if "/" in target:
            raise Refusal(f"{what}: the destination is a name, and no path")
        into = here.get(target)
        if target in here and not isinstance(into, dict):
            raise Refusal(f"{what}: '{target}' is no folder")
        place, name, told = here, target, target
        if isinstance(into, dict):
            place, name, told = into, source, f"{target}/{source}"
            if source in into:
                raise Refusal(f"{what}: '{told}' is there already")
        place[name] = copy.deepcopy(here[source])
        if not keep:
            del here[source]
        return {"result": f"'{source}' {done} to '{told}'"}


def _tree(contents: Mapping[str, Any]) -> Folder:  # Any: JSON, as in `State`
    return {
        name: _tree(one["contents"]) if one["type"] == "directory" else one["content"]
        for name, one in contents.items()
    }


def _below(folder: Folder, base: str) -> Iterator[tuple[str, str]]:
    for name, one in folder.items():
        yield f"{base}/{name}", name
        if isinstance(one, dict):
            yield from _below(one, f"{base}/{name}")


def _size(one: str | Folder) -> int:
    return len(one.encode()) if isinstance(one, str) else sum(map(_size, one.values()))
