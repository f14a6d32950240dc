#!/bin/sh
# Runs every benchmark, and fails at the end if one was beyond its limit: bench.sh PYTHON
missed=
for file in benchmarks/[a-z]*.py; do
    name=$(basename "$file" .py)
    echo "== $file"
    "$1" -m "benchmarks.$name" || missed="$missed $name"
done
[ -z "$missed" ] || {
    echo "beyond their limit:$missed" >&2
    exit 1
}
