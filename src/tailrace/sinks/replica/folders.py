"""Names the folders of replicas: valid in local paths, URLs and object stores, and distinct for each table.

delta-rs takes a path as a URL in some places and as it is in others, so `%C3` and `ü` may each name two folders.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container
from urllib.parse import quote

# What every release has left as it is, and the sign of an escape, which `TableId.unique` escapes where a name has it.
_SAFE = ".-_~$@+"
_UNSAFE = re.compile(rf"[^A-Za-z0-9!{re.escape(_SAFE)}]")
# Earlier releases left blanks as well, but not at the end. Readers that take delta-rs's `%20` for a path find no files.
_UNSAFE_BUT_BLANKS = re.compile(rf"[^A-Za-z0-9! {re.escape(_SAFE)}]| $")
# File systems take 255 bytes.
_LONGEST, _DIGITS = 200, 32


def folder(name: str) -> str:
    """The folder of a table by its unique name: other characters are `!` and two hexadecimal digits for each byte.

    A long one ends in a hash instead.
    """
    return _escaped(name, _UNSAFE)


def is_among(name: str, folders: Container[str]) -> bool:
    """Whether some folders have that of a table, of this release or of an earlier one."""
    return folder(name) in folders or _escaped(name, _UNSAFE_BUT_BLANKS) in folders


def _escaped(name: str, unsafe: re.Pattern[str]) -> str:
    escaped = unsafe.sub(lambda match: "".join(f"!{byte:02X}" for byte in match[0].encode()), name)
    if len(escaped) <= _LONGEST:
        return escaped
    begin = re.sub("![0-9A-F]?$", "", escaped[: _LONGEST - _DIGITS - 2])
    return f"{begin}!-{hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]}"


def shown(folder: str) -> str:
    """The name of the table in a folder, for people; a long one has its hash."""
    return re.sub(
        "(?:![0-9A-F]{2})+", lambda match: bytes.fromhex(match[0].replace("!", "")).decode(errors="replace"), folder
    )


def former_folders(root: str, name: str) -> tuple[str, ...]:
    """Where earlier releases wrote a table, if that is another folder that they could read again; the newest first.

    The first version encoded names with percent signs. That worked below a URL; below a path it worked for names
    without any.
    """
    encoded = quote(name.replace("!2E", ".").replace("!21", "!"), safe=f" {_SAFE}")
    is_readable = (("%" in encoded) == ("://" in root)) and not (encoded.endswith(" ") and "://" in root)
    found = (_escaped(name, _UNSAFE_BUT_BLANKS), *([encoded] if is_readable else []))
    return tuple(each for each in dict.fromkeys(found) if each != folder(name))
