"""What is announced."""


def announce(name: str, *, greeting: str = "Please welcome") -> str:
    """Return the line for one name; ValueError for a blank name."""
    name = name.strip()
    if not name:
        raise ValueError("a name is blank")
    return f"{greeting} {name}."


def announce_all(names: list[str], *, greeting: str = "Please welcome") -> list[str]:
    """Return the lines for some names, in their order."""
    return [announce(name, greeting=greeting) for name in names]
