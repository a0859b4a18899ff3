"""The names that an isolation may be asked for by, told without importing a level."""

from __future__ import annotations

from pytest_modelbench.errors import UsageProblem

AUTO = "auto"
NAMES = (
    *(AUTO, "strict", "bubblewrap", "landlock", "portable"),
    *("bubblewrap+seccomp", "docker", "podman"),
)
"""As ``levels`` has them, which a test holds them to."""


def known(wanted: str) -> str:
    """Return a name of a level; UsageProblem, with those that there are, for another."""
    if wanted not in NAMES:
        raise UsageProblem(f"isolation {wanted!r} is not known; take one of {', '.join(NAMES)}")
    return wanted
