"""Names the folders of replicas: valid in local paths, URLs and object stores, and distinct for each table.

delta-rs takes a path as a URL in some places and as it is in others, so `%C3` and `ü` may each name two folders.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container

# What is left as it is, and the sign of an escape, which `TableId.unique` escapes where a name has it. A blank is not
# left: readers that take delta-rs's `%20` for a path find no files.
_SAFE = ".-_~$@+"
_UNSAFE = re.compile(rf"[^A-Za-z0-9!{re.escape(_SAFE)}]")
# File systems take 255 bytes.
_LONGEST, _DIGITS = 200, 32


def folder(name: str) -> str:
    """The folder of a table by its unique name: other characters are `!` and two hexadecimal digits for each byte.

    A long one ends in a hash instead.
    """
    escaped = _UNSAFE.sub(lambda match: "".join(f"!{byte:02X}" for byte in match[0].encode()), name)
    if len(escaped) <= _LONGEST:
        return escaped
    begin = re.sub("![0-9A-F]?$", "", escaped[: _LONGEST - _DIGITS - 2])
    return f"{begin}!-{hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]}"


def is_among(name: str, folders: Container[str]) -> bool:
    """Whether some folders have that of a table."""
    return folder(name) in folders


def shown(folder: str) -> str:
    """The name of the table in a folder, for people; a long one has its hash."""
    return re.sub(
        "(?:![0-9A-F]{2})+", lambda match: bytes.fromhex(match[0].replace("!", "")).decode(errors="replace"), folder
    )
