"""What is secret in a command line, and in what a program prints.

A text is redacted where it looks like a secret. A command line is rejected only where a value surely is one.
"""

import json
import math
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

#: What evidence has instead of a value that may be a secret.
WITHHELD = "(not recorded)"
#: A shorter value can't be a secret, and is part of many words.
SHORTEST_SECRET = 4
#: Switches and small numbers are no secrets, and replaced in a log they would take the sense out of it.
SWITCH = re.compile(r"true|false|none|null|auto|default|[-+]?\d{1,6}(?:\.\d+)?", re.IGNORECASE)
#: The key of a service has at least so many characters after its beginning; without digits it is no name from so many.
_KEY_CHARACTERS, _LONG_WORD = 10, 16
#: A value that its name alone does not tell: at least so many characters, and bits of entropy per character.
_RANDOM_CHARACTERS, _RANDOM_BITS = 12, 3.0


def _read_prefixes() -> tuple[str, ...]:
    lines = Path(__file__).with_name("secret_prefixes.txt").read_text(encoding="utf-8").splitlines()
    return tuple(prefix for line in lines if not line.startswith("#") for prefix in line.split())


PREFIXES = _read_prefixes()
_KEY = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, PREFIXES))})([\w.~+/=-]{{{_KEY_CHARACTERS},}})", re.ASCII)
#: A user and a password, in a URL or alone.
_CREDENTIALS = re.compile(r"(?<=://)[^/\s@:]*:[^/\s@]+(?=@)")
_USER_AND_PASSWORD = re.compile(r"://[^/\s@]+@|(?<![^/\s:@])[^/\s:@]+:[^/\s:@]+@")
#: The signature of a URL of cloud storage, and the header of a request.
_SIGNATURE = re.compile(
    r"(?<=[?&])((?:X-(?:Amz|Goog)-(?:Signature|Credential|Security-Token)|sig|Signature)=)[^&\s'\"]{8,}"
)
_HEADER = re.compile(
    r"(?<![\w-])(?:(?:Proxy-)?Authorization|Cookie|[\w-]{0,40}(?:api-key|token))['\"]?:\s{0,9}['\"]?"
    r"(?:(?:Bearer|Basic|Token)\s{1,9})?([^\s'\"]{8,})",
    re.IGNORECASE,
)
#: Without any of these, in lower case, a text has no secret by itself.
_SIGNS = (*dict.fromkeys(map(str.lower, PREFIXES)), "://", "sig", "authorization", "cookie", "api-key", "token")
#: Parts of the names of options and variables whose values are secrets, as in ``--api-key``; ``--tokenizer`` has none.
_SECRET_WORDS = {
    *("token", "secret", "password", "passwd", "pwd", "passphrase", "credential", "credentials", "apikey"),
    *("auth", "bearer", "cookie", "cookies"),
}
_KEYS = {"api", "access", "secret", "private", "auth", "license"}
#: The folder in which a shell is, and none.
_NO_SECRETS = {"PWD", "OLDPWD"}
#: Options of which a value with a colon is a user and a password.
_USER_OPTIONS = {"-u", "--user"}
_PASSWORD_OPTIONS = {"--pass"}
#: Options whose value is a secret if it looks like one: ``-p 22`` is a port.
_MAY_BE_SECRET = re.compile(r"-[pk]|[\w-]{0,40}(?:key|pass)", re.IGNORECASE)


def names_secret(name: str) -> bool:
    """Return whether a name is one of a secret: ``HF_TOKEN``, ``--api-key``."""
    parts = re.findall("[a-z]+", name.lower())
    # Of variables, each that ends so: the key of whatever service it is.
    is_key = "key" in parts[-1:] and (bool(_KEYS & set(parts[:-1])) or name.isupper())
    is_secret = bool(_SECRET_WORDS & set(parts[-1:])) or "secret" in parts
    return name not in _NO_SECRETS and (is_key or is_secret)


def redacted(text: str) -> str:
    """Return a text without what looks like a secret by itself."""
    in_lower_case = text.lower()
    if not any(sign in in_lower_case for sign in _SIGNS):
        return text
    return "".join(map(_redacted_line, text.splitlines(keepends=True)))


def _redacted_line(line: str) -> str:
    in_lower_case = line.lower()
    if not any(sign in in_lower_case for sign in _SIGNS):
        return line
    line = _KEY.sub(lambda found: WITHHELD if _is_key(found[1]) else found[0], line)
    line = _CREDENTIALS.sub(WITHHELD, line)
    line = _SIGNATURE.sub(rf"\1{WITHHELD}", line)
    return _HEADER.sub(lambda found: found[0][: found.start(1) - found.start()] + WITHHELD, line)


def _is_key(rest: str) -> bool:
    """Return whether what follows a beginning is no words: ``sk-learn-2026`` is."""
    pieces = re.split(r"[-._~+/=]", rest)
    if any(len(piece) >= _LONG_WORD for piece in pieces) or not re.search("[A-Za-z]", rest):
        return True
    return any(len(piece) >= _KEY_CHARACTERS and is_random(piece, 0.0) for piece in pieces)


def has_secret(value: str) -> bool:
    """Return whether a value has a secret by itself."""
    return bool(_USER_AND_PASSWORD.search(value)) or redacted(value) != value


def is_random(value: str, bits: float = _RANDOM_BITS) -> bool:
    """Return whether a value has letters and digits, and so many bits of Shannon entropy per character."""
    counts = Counter(value)
    entropy = -sum(count / len(value) * math.log2(count / len(value)) for count in counts.values())
    has_letters_and_digits = bool(re.search("[A-Za-z]", value) and re.search("[0-9]", value))
    return has_letters_and_digits and entropy >= bits


def secrets_in(arguments: Sequence[str]) -> list[str]:
    """Return the parts of a command line that are secret."""
    return list(dict.fromkeys(_secrets_in(arguments)))


def _secrets_in(arguments: Sequence[str]) -> Iterator[str]:
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        name, _, value = argument.partition("=")
        given = value or ("" if following.startswith("-") else following)
        if _tells_secret(name, given):
            yield name
        elif _USER_AND_PASSWORD.search(argument):
            yield "a URL with a password"
        elif _KEY.search(argument) and has_secret(argument):
            yield "the key of a service"
        elif has_secret(argument):
            yield "a secret"
        else:
            yield from _secrets_inside(argument)


def _tells_secret(name: str, value: str) -> bool:
    if len(value) < SHORTEST_SECRET or value.isdigit() or SWITCH.fullmatch(value):
        return False
    if name in _USER_OPTIONS:
        user, _, password = value.partition(":")
        return bool(user and password) and not password.isdigit() and "/" not in value
    if names_secret(name) or name in _PASSWORD_OPTIONS:
        return True
    may_be_one = _MAY_BE_SECRET.fullmatch(name) and "/" not in value
    return bool(may_be_one) and len(value) >= _RANDOM_CHARACTERS and is_random(value)


def _secrets_inside(argument: str) -> Iterator[str]:
    """Yield the secrets of a command line, or of JSON, in an argument."""
    if argument.lstrip().startswith(("{", "[")):
        try:
            pairs = json.loads(argument, object_pairs_hook=lambda pairs: pairs)
        except ValueError:
            pairs = []
        yield from _secrets_of_pairs(pairs)
    elif " " in argument:
        try:
            inner_arguments = shlex.split(argument)
        except ValueError:
            inner_arguments = argument.split()
        yield from _secrets_in(inner_arguments)


def _secrets_of_pairs(content: object) -> Iterator[str]:
    if not isinstance(content, list):
        return
    for item in content:
        if isinstance(item, tuple) and isinstance(item[1], str):
            if _tells_secret(item[0], item[1]):
                yield item[0]
        else:
            yield from _secrets_of_pairs(item[1] if isinstance(item, tuple) else item)
