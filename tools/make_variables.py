"""Refuse a misspelt variable of make: prints the reason. The Makefile passes its variables and the unknown names.

Any Python 3 of the machine runs it, before set-up.
"""

import difflib
import sys


def main(known: list[str], unknown: list[str]) -> None:
    """Print the first misspelt name with the right one; warn of names that are like none."""
    for name in unknown:
        closest = difflib.get_close_matches(name.upper(), known, 1)
        if closest:
            print(f"there is no variable {name}; did you mean {closest[0]}? The variables are {' '.join(known)}")
            return
        warning = f"make: there is no variable {name}: it changes nothing but the environment of the command"
        print(warning, file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1].split(), sys.argv[2:])
