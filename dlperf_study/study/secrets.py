"""What is secret in a command line, and in what a program prints.

A text is redacted where it looks like a secret, and numbers stay. A command line is rejected where a value is a secret
by its name or by its form.
"""

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

#: What evidence has instead of a value that may be a secret.
WITHHELD = "(not recorded)"
#: A shorter value can't be a secret, and is part of many words.
SHORTEST_SECRET = 4
#: Switches and small numbers are no secrets, and replaced in a log they would take the sense out of it.
SWITCH = re.compile(r"true|false|none|null|auto|default|[-+]?\d{1,6}(?:\.\d+)?", re.IGNORECASE)
#: A part of a key between its signs: of letters and digits that alternate so often, or of letters alone.
_MIN_KEY_CHARACTERS, _MIN_CHANGES, _MIN_LETTERS = 20, 4, 30


def _read_prefixes() -> tuple[str, ...]:
    lines = Path(__file__).with_name("secret_prefixes.txt").read_text(encoding="utf-8").splitlines()
    return tuple(prefix for line in lines if not line.startswith("#") for prefix in line.split())


PREFIXES = _read_prefixes()
#: The beginning of a key and what follows it; those of AWS go on in capitals.
_KEY = re.compile(rf"(?<!\w)({'|'.join(map(re.escape, PREFIXES))})([\w.~+/=-]{{10,}})", re.ASCII)
_CAPITALS = re.compile(r"[A-Z0-9]{16,}")
#: A user and a password, in a URL or alone.
_CREDENTIALS = re.compile(r"(?<=://)[^/\s@:]{0,200}:(?!\d{1,5}/)[^\s@]{1,200}(?=@)")
_USER_AND_PASSWORD = re.compile(r"://[^/\s@]+@|(?<![^/\s:@])[^/\s:@]+:[^/\s:@]+@")
#: The signature of a URL of cloud storage, the headers of a request, and a value behind its name.
_SIGNATURE = re.compile(
    r"(?<=[?&])((?:X-(?:Amz|Goog)-(?:Signature|Credential|Security-Token)|sig|Signature)=)[^&\s'\"]{8,}"
)
_WEBHOOK = re.compile(r"(?<=hooks\.slack\.com/)[\w/]{16,}")
#: A line of a private key.
_KEY_LINE = re.compile(r"^(?![0-9A-Fa-f]+$)[A-Za-z0-9+/]{60,76}={0,2}(?=\r?$)", re.MULTILINE)
_HEADER = re.compile(
    r"(?<![\w-])(?:(?:Proxy-)?Authorization|(?:Set-)?Cookie)['\"]?:\s{0,9}([^\r\n]{4,})", re.IGNORECASE
)
_NAMED = re.compile(
    r"(?<![\w-])[\w-]{0,40}(?:(?:password|passwd|passphrase|secret|token|api[ _-]?key|access[_-]?key|account[_-]?key)"
    r"['\"]?\s{0,3}[:=]\s{0,3}|password\s{1,3}|\b(?:basic|bearer)\s{1,3})['\"]?([^\s'\",;(){}]{8,})",
    re.IGNORECASE,
)
#: Without any of these, in lower case, a text has no secret by itself.
_SIGNS = (*dict.fromkeys(map(str.lower, PREFIXES)), "://", "sig", "authorization", "cookie", "key", "token")
_SIGNS += ("pass", "secret", "basic", "bearer", "hooks.slack")
#: What a tokenizer calls its own tokens, and what a table or a generator calls its keys: their values are no secrets.
_OF_TEXTS = {"pad", "eos", "bos", "unk", "mask", "sep", "cls", "stop", "start", "end", "image", "special"}
_OF_TABLES = {"sort", "primary", "foreign", "prng", "group", "row", "map", "cache"}
#: Parts of the names of options and variables whose values are secrets, as in ``--api-key``; ``--tokenizer`` has none.
_SECRET_WORDS = {
    *("token", "secret", "password", "passwd", "pwd", "passphrase", "credential", "credentials", "apikey"),
    *("auth", "bearer", "cookie", "cookies"),
}
_KEYS = {"api", "access", "secret", "private", "auth", "license"}
#: The folder in which a shell is, and none.
_NO_SECRETS = {"PWD", "OLDPWD"}
#: Options of which a value with a colon is a user and a password, of these programs.
_USER_OPTIONS, _DOWNLOADERS = {"-u", "--user"}, ("curl", "wget")
_PASSWORD_OPTIONS = {"--pass"}
#: Options whose value is a secret if it looks like one: ``-p 22`` is a port.
_MAY_BE_SECRET = re.compile(r"-[pk]|--?[\w-]{0,40}(?:key|pass)", re.IGNORECASE)


def names_secret(name: str) -> bool:
    """Return whether a name is one of a secret: ``HF_TOKEN``, ``--api-key``."""
    parts = re.findall("[a-z]+", name.lower())
    if _is_of_text_or_table(parts):
        return False
    # Of variables, each that ends so: the key of whatever service it is.
    is_key = "key" in parts[-1:] and (bool(_KEYS & set(parts[:-1])) or name.isupper())
    is_secret = bool(_SECRET_WORDS & set(parts[-1:])) or "secret" in parts
    is_secret = is_secret or (name.isupper() and parts[-1:] == ["pass"])
    return name not in _NO_SECRETS and (is_key or is_secret)


def redacted(text: str) -> str:
    """Return a text without what looks like a secret by itself."""
    without_keys = _KEY_LINE.sub(lambda match: WITHHELD if _is_random(match[0]) else match[0], text)
    in_lower_case = without_keys.lower()
    if not any(sign in in_lower_case for sign in _SIGNS):
        return without_keys
    return "".join(map(_redacted_line, without_keys.splitlines(keepends=True)))


def _redacted_line(line: str) -> str:
    in_lower_case = line.lower()
    if not any(sign in in_lower_case for sign in _SIGNS):
        return line
    line = _KEY.sub(lambda match: WITHHELD if _is_key(match) else match[0], line)
    line = _CREDENTIALS.sub(WITHHELD, line)
    line = _SIGNATURE.sub(rf"\1{WITHHELD}", line)
    line = _HEADER.sub(_without_value, _WEBHOOK.sub(WITHHELD, line))
    return _NAMED.sub(_without_named_value, line)


def _without_named_value(match: re.Match[str]) -> str:
    name = re.match(r"[\w-]*", match[0])
    name_parts = re.findall("[a-z]+", name[0].lower()) if name else []
    is_scheme = name_parts[-1:] in (["basic"], ["bearer"])
    if (
        _is_of_text_or_table(name_parts)
        or not _has_letters_and_digits(match[1])
        or (is_scheme and not _is_random(match[1]))
    ):
        return match[0]
    return _without_value(match)


def _is_of_text_or_table(words: Sequence[str]) -> bool:
    before_last, last = {*words[-2:-1]}, {*words[-1:]}
    return bool((before_last & _OF_TEXTS and last == {"token"}) or (before_last & _OF_TABLES and last == {"key"}))


def _without_value(match: re.Match[str]) -> str:
    return match[0][: match.start(1) - match.start()] + WITHHELD + match[0][match.end(1) - match.start() :]


def has_secret(value: str) -> bool:
    """Return whether a value has a secret by itself."""
    return bool(_USER_AND_PASSWORD.search(value)) or redacted(value) != value


def _is_key(match: re.Match[str]) -> bool:
    """Return whether what follows a beginning is no name: ``sk-learn-2026`` is one."""
    prefix, rest = match[1], match[2]
    if prefix.isupper() and _CAPITALS.match(rest):
        return True
    # A token of Slack has numbers alone.
    return _is_random(rest) or (prefix.startswith("xox") and not re.search("[A-Za-z]", rest))


def _is_random(value: str) -> bool:
    """Return whether a part of a value is so long, and mixes letters and digits so, as only keys do."""
    for part in re.split(r"[-._~+/=]", value):
        changes = len(re.findall(r"[A-Za-z](?=\d)|\d(?=[A-Za-z])", part))
        has_both_cases = part.lower() != part and part.upper() != part
        is_mixed = changes >= _MIN_CHANGES or (changes > 0 and has_both_cases)
        if (len(part) >= _MIN_KEY_CHARACTERS and is_mixed) or (len(part) >= _MIN_LETTERS and part.isalpha()):
            return True
    return False


def _has_letters_and_digits(value: str) -> bool:
    try:
        float(value.rstrip("%,;"))
    except ValueError:
        return bool(re.search("[A-Za-z]", value) and re.search("[0-9]", value))
    return False


def secrets_in(arguments: Sequence[str]) -> list[str]:
    """Return the parts of a command line that are secret."""
    return list(dict.fromkeys(_secrets_in(arguments)))


def _secrets_in(arguments: Sequence[str]) -> Iterator[str]:
    downloads = any(argument.rpartition("/")[2] in _DOWNLOADERS for argument in arguments)
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        name, _, value = argument.partition("=")
        given = value
        if not value and name.startswith("-") and not following.startswith("-"):
            given = following
        if _tells_secret(name, given) or (downloads and name in _USER_OPTIONS and ":" in given.strip(":")):
            yield name
        elif _USER_AND_PASSWORD.search(argument):
            yield "a URL with a password"
        elif any(map(_is_key, _KEY.finditer(argument))):
            yield "the key of a service"
        elif has_secret(argument):
            yield "a secret"
        else:
            yield from _secrets_inside(argument)


def _tells_secret(name: str, value: str) -> bool:
    if len(value) < SHORTEST_SECRET or value.isdigit() or SWITCH.fullmatch(value):
        return False
    if names_secret(name) or name in _PASSWORD_OPTIONS:
        return True
    return bool(_MAY_BE_SECRET.fullmatch(name)) and "/" not in value and _is_random(value)


def _secrets_inside(argument: str) -> Iterator[str]:
    """Yield the secrets of a command line, or of JSON, in an argument."""
    if argument.lstrip().startswith(("{", "[")):
        try:
            pairs = json.loads(argument, object_pairs_hook=lambda pairs: pairs)
        except ValueError:
            pairs = []
        yield from _secrets_in_pairs(pairs)
    elif " " in argument:
        try:
            inner_arguments = shlex.split(argument)
        except ValueError:
            inner_arguments = argument.split()
        yield from _secrets_in(inner_arguments)


def _secrets_in_pairs(content: object) -> Iterator[str]:
    if not isinstance(content, list):
        return
    for item in content:
        if isinstance(item, tuple) and isinstance(item[1], str):
            if _tells_secret(item[0], item[1]):
                yield item[0]
        else:
            yield from _secrets_in_pairs(item[1] if isinstance(item, tuple) else item)
