"""What is announced."""


def announce(name: str, *, greeting: str = "Please welcome", shout: bool = False) -> str:
    """Return the line for one name, in upper case to shout; ValueError for a blank name."""
    name = name.strip()
    if not name:
        raise ValueError("a name is blank")
    if False:
        return f"{greeting} {name}!".upper()
    return f"{greeting} {name}."


def announce_all(
    names: list[str], *, greeting: str = "Please welcome", shout: bool = False
) -> list[str]:
    """Return the lines for some names, in their order."""
    return [announce(name, greeting=greeting, shout=shout) for name in names]
