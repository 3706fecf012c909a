"""The payload of an outbox document, in extended JSON, a member a line."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given, settings

from tailrace.connectors.mongodb.types.json import EXTENDED, STRICT, json_text
from tailrace.transforms.mongodb.indented import indented
from tests.unit.mongodb.types_documents import documents, values_of


def spread(text: str) -> str:
    """Extended JSON as the driver spreads it over lines: each string as it is written."""
    decoder = json.JSONDecoder()
    out, line, place = "", "\n", 0
    while place < len(text):
        char = text[place]
        end = decoder.raw_decode(text, place)[1] if char == '"' else place + 1
        if char in "{[" and text[end] not in "}]":
            line += "  "
            out += char + line
        elif char in "}]" and text[place - 1] not in "{[":
            line = line[:-2]
            out += line + char
        elif char == ",":
            out += char + line
            end += text[end] == " "
        else:
            out += text[place:end]
        place = end
    return out


@settings(max_examples=40, deadline=None)
@given(data=documents())
def test_any_document(data: bytes) -> None:
    (extended,) = json_text(values_of([data]), EXTENDED).to_pylist()
    assume("$dbPointer" not in extended)  # the older JSON writes one as it writes a document of two fields
    (strict,) = json_text(values_of([data]), STRICT).to_pylist()
    assert indented(f'{{"payload": {strict}}}', "payload") == spread(extended)


@pytest.mark.parametrize("payload", ['"x"', "1", "null", "[1]", '{"$date": 5}', '{"$symbol": "s"}', '{"$oid": "0"}'])
def test_what_is_no_document_is_left(payload: str) -> None:
    assert indented(f'{{"payload": {payload}}}', "payload") is None
    assert indented("{}", "payload") is None


def test_escapes_and_types_stay() -> None:
    payload: Any = '{"s": {"$symbol": "\\ud83d\\ude00"}, "u": {"$undefined": true}, "r": {"$ref": "c", "$id": 1}}'
    assert indented(f'{{"payload": {payload}}}', "payload") == (
        '{\n  "s": {\n    "$symbol": "\\ud83d\\ude00"\n  },\n  "u": {\n    "$undefined": true\n  },\n'
        '  "r": {\n    "$ref": "c",\n    "$id": {\n      "$numberInt": "1"\n    }\n  }\n}'
    )
