"""Apicurio's registry by its own API (2 and 3): artifacts in groups, nested records as references, ids of two kinds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from urllib.parse import quote

from tailrace.errors import SinkError
from tailrace.events.avro.schema import PRIMITIVES, records, schema_text
from tailrace.events.registry.apicurio_settings import DEFAULT, PATH_2, ApicurioSettings
from tailrace.events.registry.http import (
    AT_ONCE_SECONDS,
    RegistryConnection,
    RegistryResponse,
)
from tailrace.events.registry.registry import AVRO, Registry, Wanted, refused, unlike, unregistered
from tailrace.override import override

_MOST_VERSIONS = "500"  # what API 3 gives at once
_NOT_FOUND, _CONFLICT = 404, 409
_JSON = {"Content-Type": "application/json"}
_IF_EXISTS_2 = {"FAIL": "FAIL", "CREATE_VERSION": "UPDATE", "FIND_OR_CREATE_VERSION": "RETURN_OR_UPDATE"}


@dataclass(frozen=True)
class Artifact:
    """A schema to be registered, with those that it refers to by name, which come first."""

    group: str
    name: str
    text: str
    references: tuple[tuple[str, Artifact], ...] = ()


class ApicurioRegistry(Registry):
    """Implements Registry by Apicurio's REST API."""

    def __init__(self, settings: ApicurioSettings) -> None:
        self._settings = settings
        self._is_2 = settings.address.urls[0].endswith(PATH_2)

    @cached_property
    def _http(self) -> RegistryConnection:
        return RegistryConnection(self._settings.address)

    @override
    def name(self, wanted: Wanted) -> str:
        group, name = self._settings.place(wanted)
        return name if group == DEFAULT else f"{group}/{name}"

    @override
    def about(self) -> str:
        with closing(RegistryConnection(self._settings.address, AT_ONCE_SECONDS)) as http:
            answer = http.ask("GET", "/system/info")
        if not answer.is_good:
            raise self._failed("the registry", answer)
        return f"{self._settings.address.shown} answers, {answer.body.get('name')} {answer.body.get('version')}"

    @override
    def id(self, wanted: Wanted) -> int:
        settings = self._settings
        if settings.registers:
            return int(self._registered(wanted, artifact(self._settings, wanted))[settings.id_name])
        if settings.takes_latest:
            return self._latest_id(wanted)
        return self._stored_id(wanted)

    @override
    def refusal(self, wanted: Wanted) -> SinkError | None:
        """With API 2 the compatibility is not asked for ahead, as it has no request that only tries."""
        try:
            if not self._settings.registers:
                self.id(wanted)
            elif not self._is_2:
                self._registered(wanted, artifact(self._settings, wanted), dry=True)
        except SinkError as error:
            return error
        return None

    def _registered(self, wanted: Wanted, artifact: Artifact, dry: bool = False) -> Mapping[str, Any]:
        """What the registry has of an artifact, which is made where it is not there; `dry` tries it only."""
        references = []
        if not dry:
            for name, inner in artifact.references:
                version = self._registered(wanted, inner)["version"]
                references.append({"groupId": inner.group, "artifactId": inner.name, "version": version, "name": name})
        answer = (self._post_2 if self._is_2 else self._post_3)(wanted.language, artifact, references, dry)
        if answer.status == _CONFLICT:
            raise self._conflict(wanted, artifact, answer)
        if not answer.is_good:
            raise self._failed(artifact.name, answer)
        registered: Mapping[str, Any] = answer.body if self._is_2 else answer.body["version"]
        return registered

    def _post_3(
        self, language: str, artifact: Artifact, references: list[dict[str, str]], dry: bool
    ) -> RegistryResponse:
        content = {"content": artifact.text, "contentType": "application/json", "references": references}
        body = {"artifactId": artifact.name, "artifactType": language, "firstVersion": {"content": content}}
        query = {"ifExists": self._settings.if_exists, "canonical": "false", **({"dryRun": "true"} if dry else {})}
        return self._http.ask("POST", f"/groups/{quote(artifact.group, safe='')}/artifacts", body, query)

    def _post_2(
        self, language: str, artifact: Artifact, references: list[dict[str, str]], dry: bool
    ) -> RegistryResponse:
        query = {"ifExists": _IF_EXISTS_2[self._settings.if_exists], "canonical": "false"}
        named = {"X-Registry-ArtifactId": artifact.name, "X-Registry-ArtifactType": language}
        body: Any = artifact.text
        named |= _JSON
        if references:
            # Of a schema that is a list the registry would keep another text, with blanks: as its own client has it,
            # only what has references goes this way.
            named["Content-Type"] = "application/create.extended+json"
            body = {"content": artifact.text, "references": references}
        return self._http.ask("POST", f"/groups/{quote(artifact.group, safe='')}/artifacts", body, query, **named)

    def _latest_id(self, wanted: Wanted) -> int:
        group, name = self._settings.place(wanted)
        answer = self._http.ask("GET", self._path(group, name, "/meta" if self._is_2 else "/versions/branch=latest"))
        if answer.status == _NOT_FOUND:
            raise unregistered(name, f"{self._settings.prefix}auto-register")
        if not answer.is_good:
            raise self._failed(name, answer)
        difference = wanted.difference(self._content(answer.body["globalId"]))
        if difference != "nothing":
            raise unlike(name, difference, f"{self._settings.prefix}find-latest")
        return int(answer.body[self._settings.id_name])

    def _stored_id(self, wanted: Wanted) -> int:
        """The id of the registered version with this content, in canonical form or as it is."""
        made = artifact(self._settings, wanted)
        for canonical in ("true", "false"):
            if self._is_2:
                path = self._path(made.group, made.name, "/meta")
                query = {"canonical": canonical}
            else:
                path, query = "/search/versions", {"canonical": canonical, "artifactType": wanted.language}
                query |= {"groupId": made.group, "artifactId": made.name}
                query |= {"orderby": "globalId", "order": "desc"}
            answer = self._http.ask("POST", path, made.text, query, **_JSON)
            stored = answer.body if self._is_2 else next(iter(answer.body.get("versions", ())), {})
            if answer.is_good and stored:
                return int(stored[self._settings.id_name])
        if made.references and (version := self._version(made)) is not None:
            return int(version[self._settings.id_name])
        raise unregistered(self.name(wanted), f"{self._settings.prefix}auto-register")

    def _version(self, made: Artifact) -> Mapping[str, Any] | None:
        """The newest version with this text and such references, which the registry cannot search for."""
        query = {"limit": _MOST_VERSIONS, "orderby": "globalId", "order": "desc"}
        answer = self._http.ask("GET", self._path(made.group, made.name, "/versions"), query=query)
        versions = answer.body.get("versions", ()) if answer.is_good else ()
        newest = sorted(versions, key=lambda each: int(each["globalId"]), reverse=True)
        return next((each for each in newest if self._is_alike(made, each["version"])), None)

    def _is_alike(self, made: Artifact, version: str) -> bool:
        """Whether a version has this text and, under the same names, references that are alike."""
        path = self._path(made.group, made.name, f"/versions/{version}")
        if self._http.ask("GET", path if self._is_2 else f"{path}/content").body != json.loads(made.text):
            return False
        referred = {each["name"]: each["version"] for each in self._http.ask("GET", f"{path}/references").body}
        inner = dict(made.references)
        return referred.keys() == inner.keys() and all(self._is_alike(inner[name], referred[name]) for name in inner)

    def _content(self, global_id: int) -> Any:
        """A schema as a whole."""
        query = {"dereference": "true"} if self._is_2 else {"references": "DEREFERENCE"}
        answer = self._http.ask("GET", f"/ids/globalIds/{global_id}", query=query)
        if not answer.is_good:
            raise self._failed(f"global id {global_id}", answer)
        return answer.body

    def _conflict(self, wanted: Wanted, artifact: Artifact, answer: RegistryResponse) -> SinkError:
        """The error for a schema that a rule forbids."""
        rule = self._http.ask("GET", self._path(artifact.group, artifact.name, "/rules/COMPATIBILITY"))
        if not rule.is_good:
            rule = self._http.ask("GET", "/admin/rules/COMPATIBILITY")
        latest = self._http.ask(
            "GET", self._path(artifact.group, artifact.name, "/meta" if self._is_2 else "/versions/branch=latest")
        )
        if not latest.is_good:
            return self._failed(artifact.name, answer)
        query = {} if self._is_2 else {"references": "PRESERVE"}
        old = self._http.ask("GET", f"/ids/globalIds/{latest.body['globalId']}", query=query).body
        level = rule.body.get("config") if rule.is_good else None
        return refused(artifact.name, level, replace(wanted, text=artifact.text).difference(old), answer.message)

    def _path(self, group: str, name: str, rest: str) -> str:
        return f"/groups/{quote(group, safe='')}/artifacts/{quote(name, safe='')}{rest}"

    def _failed(self, name: str, answer: RegistryResponse) -> SinkError:
        return SinkError(
            f"the schema registry answers with status {answer.status}: {answer.message}",
            where=f"{name} at {self._settings.address.shown}",
            remedy="see the registry's log, and whether the address is that of its API",
        )


def artifact(settings: ApicurioSettings, wanted: Wanted) -> Artifact:
    """A schema as the reference registers it: as a whole, or each record within it as an artifact of its own."""
    group, name = settings.place(wanted)
    if settings.whole or wanted.language != AVRO:
        return Artifact(group, name, wanted.text)
    definitions = {each["name"]: each for each in records(wanted.node)}

    def made(group: str, name: str, node: Any) -> Artifact:
        references = [(each, made(settings.group_of(each), each, definitions[each])) for each in _referred(node)]
        return Artifact(group, name, schema_text(_by_name(node, is_top=True)), tuple(references))

    return made(group, name, wanted.node)


def _referred(node: Any) -> list[str]:
    """The records that the reference registers beside a schema: in its fields, and directly in their unions, arrays and
    maps; one that comes twice is listed twice."""
    if isinstance(node, Mapping) and node["type"] == "record":
        return [name for field in node["fields"] for name in _direct(field["type"])]
    return _direct(node) if isinstance(node, list) else []


def _direct(kind: Any) -> list[str]:
    members = kind if isinstance(kind, list) else [kind]
    if isinstance(kind, Mapping):
        members = [kind.get("items", kind.get("values", kind))]
    return [name for member in members if (name := _record(member)) is not None]


def _record(member: Any) -> str | None:
    if isinstance(member, Mapping) and member["type"] == "record":
        return str(member["name"])
    # A name that is no primitive type: of a record that was defined before.
    return member if isinstance(member, str) and member not in PRIMITIVES else None


def _by_name(node: Any, is_top: bool = False) -> Any:
    """A schema with the names of the records that `_referred` lists in the place of their definitions."""
    if isinstance(node, list):
        return [_record(member) or member for member in node]
    if not is_top:
        name = _record(node)
        if name is not None:
            return name
    if not isinstance(node, Mapping):
        return node
    if node["type"] == "record":
        return {**node, "fields": [{**each, "type": _by_name(each["type"])} for each in node["fields"]]}
    return {name: _record(value) or value if name in ("items", "values") else value for name, value in node.items()}
