"""How programs write numbers and their units, as regular expressions: what is one number, and what makes it another."""

#: What may stand for a number; whether it is one is found out when it is converted.
NUMBER = r"[-+.\dEeNnAaIiFf]+"
#: What makes a number another one than its first digits: thousands or decimals behind a comma, and a multiple.
COMMA, MULTIPLES = r",\d[\d.,]*+", "[kKMGT]"
#: Units of time, by what one of them lasts in seconds.
_TIMES = {1.0: "s|secs?|seconds?", 1e-3: "ms|msecs?|milliseconds?", 1e-6: "us|µs|usecs?|microseconds?"}
_LONG_TIMES = "mins?|minutes?|h|hours?"
#: What may stand right behind a rate, without a space.
_COUNTED = "(?:im(?:g|age)s?|samples?|seqs?|sequences?|sentences?|examples?)/s(?:ec(?:ond)?)?"
#: What else a rate may count, so that it is none of samples.
_UNCOUNTED = "(?:tok(?:en)?s?|tks|words?|steps?|batch(?:es)?)/s(?:ec(?:ond)?)?"
#: What turns a rate round, as in s/step, and what makes one of the whole job that of a part of it.
_TURNED, _OF_A_PART = r"[mu]?s(?:ecs?|econds?)?/\w+", r"\w+/s(?:ec(?:ond)?)?(?:/| per )\w+"


def another(unit: str, factor: float, of_job: bool) -> str:
    """Return what, behind a number, makes it another one: digits, letters, another unit than ours × ``factor``.

    ``of_job``: the number is of the whole job, so that one of a part of it is another.
    """
    own, foreign = _of_times(factor) if unit == "s" else _of_rates(unit, factor, of_job)
    return rf"{COMMA}|(?!(?:{own})(?!\w))\w+|\s+(?:{foreign})\b"


def _of_times(factor: float) -> tuple[str, str]:
    """Return what may stand behind a time, and what may not."""
    others = (names for size, names in _TIMES.items() if size != factor)
    return _TIMES.get(factor, ""), "|".join([*others, _LONG_TIMES, r"\w+/s(?:ec(?:ond)?)?"])


def _of_rates(unit: str, factor: float, of_job: bool) -> tuple[str, str]:
    """Return what may stand behind a rate, or any other number, and what may not."""
    foreign = rf"{MULTIPLES}|\w+/(?:ms|mins?|minute|h|hour)" if factor == 1 else "[MGT]"
    parts = [
        *([_OF_A_PART] if of_job else []),
        *(foreign, _TURNED),
        *([_UNCOUNTED] if unit == "samples/s" else []),
    ]
    return _COUNTED if factor == 1 else "K", "|".join(parts)
