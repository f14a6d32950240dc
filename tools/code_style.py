"""Print how the code of each room reads, and fail if a room reads worse than its recorded limits.

`python -m tools.code_style` is part of `make lint`; `--record` lowers the limits in `tools/code_style.json` to today's
values. Limits are never raised: a room that needs a higher one is changed by hand, with the reason in the commit.
"""

import argparse
import ast
import json
import statistics
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
PACKAGE = PROJECT / "dlperf_study"
LIMITS = Path(__file__).with_suffix(".json")
#: What is limited: counts per 1,000 lines, the number of functions named ``x_of``, and words of first lines.
LIMITED = ("conditional", "comprehension", "import", "*_of", "docstring words")
#: Those of them that are counts per 1,000 lines, with half of the last digit that is recorded.
PER_1000_LINES = {"conditional": 0.05, "comprehension": 0.05, "import": 0.5}
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def measure(files: list[Path]) -> dict[str, float]:
    """Return the counts of a set of files."""
    lines = conditionals = comprehensions = imports = named_of = 0
    first_lines = []
    for path in files:
        source = path.read_text(encoding="utf-8")
        lines += source.count("\n")
        for node in ast.walk(ast.parse(source)):
            conditionals += isinstance(node, ast.IfExp)
            comprehensions += isinstance(node, COMPREHENSIONS)
            imports += isinstance(node, ast.Import | ast.ImportFrom)
            if isinstance(node, FUNCTIONS):
                named_of += node.name.endswith("_of")
                docstring = ast.get_docstring(node)
                if docstring:
                    first_lines.append(len(docstring.splitlines()[0].split()))
    per_1000 = 1000 / max(1, lines)
    return {
        "files": len(files),
        "lines": lines,
        "conditional": round(conditionals * per_1000, 1),
        "comprehension": round(comprehensions * per_1000, 1),
        "import": round(imports * per_1000),
        "*_of": named_of,
        "docstring words": statistics.median(first_lines or [0]),
    }


def measure_rooms(package: Path = PACKAGE) -> dict[str, dict[str, float]]:
    """Return the counts of each room, and of the whole package."""
    rooms = {}
    for folder in sorted(package.iterdir()):
        files = sorted(folder.rglob("*.py")) if folder.is_dir() else []
        if files:
            rooms[folder.name] = measure(files)
    rooms[package.name] = measure(sorted(package.rglob("*.py")))
    return rooms


def read_limits() -> dict[str, dict[str, float]]:
    """Return the recorded limits of each room."""
    limits: dict[str, dict[str, float]] = json.loads(LIMITS.read_text(encoding="utf-8"))
    return limits


def worse(rooms: dict[str, dict[str, float]], limits: dict[str, dict[str, float]]) -> list[str]:
    """Return a message for each value above its limit; a new room has those of the package.

    A room whose lines fell has a higher share of what is left. It is worse only if it has more of it.
    """
    messages = []
    for name, values in rooms.items():
        room_limits = limits.get(name, limits[PACKAGE.name])
        for measure_name in LIMITED:
            value, limit = values[measure_name], room_limits[measure_name]
            count, recorded = value, limit
            if measure_name in PER_1000_LINES:
                count = value * values["lines"]
                recorded = (limit + PER_1000_LINES[measure_name]) * room_limits.get("lines", values["lines"])
            if value > limit and count > recorded:
                messages.append(f"{name}: {measure_name} {value:g}, above the recorded {limit:g}")
    return messages


def record(rooms: dict[str, dict[str, float]], limits: dict[str, dict[str, float]]) -> None:
    """Write today's values as limits, where they are lower."""
    recorded = {}
    for name, values in rooms.items():
        earlier = limits.get(name, limits[PACKAGE.name])
        lowest = {"lines": values["lines"]}
        for each in LIMITED:
            lowest[each] = min(values[each], earlier.get(each, values[each]))
        recorded[name] = lowest
    lines = [f'"{name}": {json.dumps(values)}' for name, values in recorded.items()]
    LIMITS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main() -> int:
    """Print one row for each room; return 1 if one is worse than its limits."""
    parser = argparse.ArgumentParser(prog="python -m tools.code_style", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--record", action="store_true", help="lower the limits to today's values")
    options = parser.parse_args()
    rooms = measure_rooms()
    limits = read_limits()
    columns = list(rooms[PACKAGE.name])
    print(f"{'room':<16}" + "".join(f"{column:>17}" for column in columns))
    for name, values in rooms.items():
        print(f"{name:<16}" + "".join(f"{values[column]:>17g}" for column in columns))
    if options.record:
        record(rooms, limits)
    messages = worse(rooms, limits)
    for message in messages:
        print(message, file=sys.stderr)
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main())
