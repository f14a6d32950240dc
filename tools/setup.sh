#!/bin/sh
# Makes .venv with the packages of the extra `dev` in the versions of locks/main.txt.
# Prints each step, and ends with one clear message if something is missing.
set -eu

NEEDED_MB=4000
# The packages that the extra `dev` needs. tests/test_environment.py compares.
PACKAGES=169
log=.venv/setup.log
newline='
'

fail() {
    echo "set-up failed: $1" >&2
    exit 1
}

supported() {
    [ "$("$1" -c 'import sys; print((3, 11) <= sys.version_info < (3, 14))' 2>/dev/null)" = True ]
}

# Sets `python`, and `found` to the first Python that is too old or too new.
find_python() {
    python=
    found=
    set -- python3.11 python3.12 python3.13 python3
    if [ -n "${PYTHON_FOR_SETUP:-}" ]; then
        command -v "$PYTHON_FOR_SETUP" >/dev/null || fail "there is no program PYTHON_FOR_SETUP=$PYTHON_FOR_SETUP"
        set -- "$PYTHON_FOR_SETUP"
    fi
    for candidate; do
        path=$(command -v "$candidate") || continue
        if supported "$path"; then
            python=$path
            return
        fi
        version=$("$path" --version 2>&1) || continue
        # The first line.
        found="found ${version%%"$newline"*} at $path; "
    done
}

install() {
    .venv/bin/python -m pip install --disable-pip-version-check "$@" >"$log" 2>&1 ||
        fail "pip could not install the packages. Is there a network? The last lines of $log:
$(tail -n 5 "$log")"
}

# Prints how many packages are done, and the time left at the speed so far.
tell_progress() {
    phase=
    while sleep 10 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
        now=$(date +%s)
        installing=$(sed -n 's/^Installing collected packages: //p' "$log" | tr ',' '\n' | wc -l)
        if [ "$installing" -gt 0 ]; then
            [ "$phase" = copied ] || since=$((now - 10))
            phase=copied
            all=$installing
            finished=$(find .venv/lib/*/site-packages -maxdepth 1 -name '*.dist-info' -newer .venv/setup-started | wc -l)
        else
            [ "$phase" = fetched ] || since=$((now - 10))
            phase=fetched
            all=$PACKAGES
            finished=$(grep -cE '^ *(Downloading|Using cached) .*\.whl |^Processing |^Requirement already' "$log") || true
        fi
        [ "$finished" -le "$all" ] || finished=$all
        [ "$finished" -gt 0 ] || continue
        if [ "$finished" -eq "$all" ]; then
            echo "set-up 2/3: all $all packages $phase$(megabytes)"
            continue
        fi
        left=$(((now - since) * (all - finished) / finished))
        echo "set-up 2/3: $finished of $all packages $phase$(megabytes), about $left s left"
    done
}

# Prints the size of the downloads so far, if pip logged sizes.
megabytes() {
    [ "$phase" = fetched ] || return 0
    sed -n 's/^ *Downloading .*\.whl (\(.*\))$/\1/p' "$log" |
        awk '{ sum += $2 == "kB" ? $1 / 1000 : $1 } END { if (sum >= 1) printf ", %d MB downloaded", sum }'
}

find_python
if [ -n "$python" ]; then
    "$python" -c 'import venv, ensurepip' 2>/dev/null ||
        fail "$python has no venv module. Install it (Debian: apt install python3-venv)"
    version=$("$python" --version)
elif command -v uv >/dev/null; then
    version="Python 3.12 from uv"
else
    fail "${found}Python 3.11, 3.12 or 3.13 is needed.
Install one (Debian: apt install python3.11-venv).
Or name one: make PYTHON_FOR_SETUP=/path/to/python3.12 plan
Without root, install uv: https://docs.astral.sh/uv. Set-up then uses its Python."
fi
# A study that can't start yet is refused now, and not after minutes of set-up.
if [ -n "${MEASURES_HERE:-}" ] && [ -n "$python" ]; then
    "$python" "$(dirname "$0")/free_machine.py" || exit 1
fi
free=$(df -Pm . | awk 'NR==2 {print $4}')
[ "$free" -ge "$NEEDED_MB" ] || fail "$free MB free on this disk; the environment needs about $NEEDED_MB MB"

# One set-up at a time: another would remove what this one installs.
exec 9<locks/main.txt
flock --version >/dev/null 2>&1 && { flock -n 9 || fail "another set-up is running in this folder. Wait for it to end"; }
trap 'echo "set-up interrupted; the same command starts it again" >&2; exit 130' INT
trap 'echo "set-up interrupted; the same command starts it again" >&2; exit 143' TERM

# A complete .venv with this Python is updated: what `make torch` and others installed stays.
if [ -f .venv/.ready ] && [ -n "$python" ] && [ "$(.venv/bin/python --version 2>&1)" = "$version" ]; then
    echo "set-up 1/3: updating .venv, which is older than its lock or its set-up (for a new one: make clean)"
    rm -f .venv/.ready
else
    echo "set-up 1/3: making .venv with $version"
    rm -rf .venv
    if [ -n "$python" ]; then
        "$python" -m venv .venv
    else
        uv venv --quiet --seed --python 3.12 .venv || fail "uv found no Python 3.12. Is there a network?"
    fi
fi
echo "set-up 2/3: installing $PACKAGES packages, 1-4 minutes (log: $log)"
touch .venv/setup-started
started=$(date +%s)
# The project is built with the pinned setuptools, and not with one that pip fetches for each build.
install "$(grep '^setuptools==' locks/main.txt)"
: >"$log"
tell_progress 9<&- &
reporter=$!
trap 'kill $reporter 2>/dev/null || true' EXIT
install --no-compile --no-build-isolation -c locks/main.txt -e '.[dev]'
kill $reporter 2>/dev/null || true
.venv/bin/python -c "from tools.installer import compile_packages; compile_packages(since=$started)" >>"$log" 2>&1 ||
    fail "the packages can't be compiled. The last lines of $log:
$(tail -n 5 "$log")"
echo "set-up 3/3: checking that the packages fit together, and that Paddle finds the libraries of the system"
.venv/bin/python -m pip check >>"$log" 2>&1 || fail "the packages do not fit together: $(tail -n 3 "$log")"
.venv/bin/python -c 'import paddle' >>"$log" 2>&1 || fail "Paddle can't be imported: $(tail -n 1 "$log")
Install the missing library (libgomp.so.1, Debian: apt install libgomp1), then call make again"
if [ -f .gpu-indexes.json ]; then
    echo "set-up: installing the builds for GPUs of \`make gpu\` again"
    .venv/bin/python -m tools.install gpu
fi
touch .venv/.ready
