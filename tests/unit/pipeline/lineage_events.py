"""Lineage events that were sent into a file, checked against OpenLineage's schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import yaml
from referencing import Registry, Resource

SCHEMAS = Path(__file__).parent / "openlineage"


def to_file(folder: Path) -> dict[str, str]:
    """The properties that have events sent into the file `events.jsonl` of a folder."""
    transport = {"type": "file", "log_file_path": str(folder / "events.jsonl"), "append": True}
    file = folder / "openlineage.yml"
    file.write_text(yaml.safe_dump({"transport": transport}), encoding="utf-8")
    return {
        "openlineage.integration.enabled": "true",
        "openlineage.integration.config.file.path": str(file),
    }


def sent(folder: Path) -> list[dict[str, Any]]:
    """The events in the file. Raises ValidationError for one that a schema refuses."""
    file = folder / "events.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    events = [json.loads(line) for line in lines]
    schemas = [json.loads(each.read_text(encoding="utf-8")) for each in SCHEMAS.glob("*.json")]
    known = Registry().with_resources([(each["$id"], Resource.from_contents(each)) for each in schemas])
    for event in events:
        checked(event, event["schemaURL"], known)
        facets = [event["run"]["facets"], event["job"]["facets"]]
        facets += [each.get("facets", {}) for each in (*event["inputs"], *event["outputs"])]
        for each in facets:
            for facet in each.values():
                checked(facet, facet["_schemaURL"], known)
    return events


def checked(content: Any, schema: str, known: Any) -> None:
    jsonschema.Draft202012Validator({"$ref": schema}, registry=known).validate(content)
