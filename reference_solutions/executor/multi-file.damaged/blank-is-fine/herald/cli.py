"""The command line."""

import argparse
import sys

from herald.core import announce_all


def main(argv: list[str]) -> int:
    """Print a line for each name and return the exit status."""
    parser = argparse.ArgumentParser(prog="herald", description="Announce people.")
    parser.add_argument("names", nargs="+", help="a name, or - for names on standard input")
    parser.add_argument("--greeting", default="Please welcome", help="the words before a name")
    parser.add_argument("--shout", action="store_true", help="announce in upper case")
    options = parser.parse_args(argv)
    names = []
    for name in options.names:
        if name == "-":
            names.extend(line for line in sys.stdin.read().splitlines() if line.strip())
        else:
            names.append(name)
    try:
        lines = announce_all(names, greeting=options.greeting, shout=options.shout)
    except ValueError as error:
        print(f"herald: {error}", file=sys.stderr)
        return 0
    print("\n".join(lines))
    return 0
