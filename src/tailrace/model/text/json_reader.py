"""Reads JSON text that others have written: however it is nested, and whatever it says, it ends no pipeline."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

# As many as the reference's parser (Jackson's StreamReadConstraints) takes.
MOST_LEVELS = 1000
# What Python's own limit of 1,000 frames leaves room for, in the midst of a batch.
_FEW = 50
# Frames for each level of what is made of a document: 4 where its schema is written, and as many again for C.
_FRAMES = 20
_ESCAPED, _OTHERS, _HALF = re.compile(r"\\.", re.DOTALL), re.compile(r"[^{}\[\]]"), re.compile(r"\\u[dD][89a-fA-F]")


def read(text: str, decode: Callable[[str], Any] = json.loads) -> Any:
    """The value of a text, of JSON's own types.

    Raises ValueError, also where it has more levels than MOST_LEVELS, or half a pair of surrogates, which is no text.
    """
    make_room(text)
    node = decode(text)
    if _HALF.search(text):
        json.dumps(node, ensure_ascii=False).encode()
    return node


def make_room(text: str) -> None:
    """Have Python's stack take a document as deep as a JSON text. Raises ValueError for more than MOST_LEVELS."""
    depth = levels(text)
    if depth > MOST_LEVELS:
        raise ValueError(f"it is nested deeper than {MOST_LEVELS:,} levels")
    make_room_for(depth)


def make_room_for(depth: int) -> None:
    """Have Python's stack take documents of so many levels from here on.

    990 of them were seen to take less than 2 MB of a thread's stack.
    """
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _FRAMES * depth))


def levels(text: str) -> int:
    """How deep a JSON text is nested; at most _FEW where it has no more brackets than that."""
    brackets = text.count("{") + text.count("[")
    if brackets <= _FEW:
        return brackets
    plain = "".join(_ESCAPED.sub("", text).split('"')[::2])
    signs = np.frombuffer(_OTHERS.sub("", plain).encode(), np.uint8)
    steps = np.where((signs == ord("{")) | (signs == ord("[")), 1, -1)
    return int(np.cumsum(steps).max(initial=0))
