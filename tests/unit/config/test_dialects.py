"""The dialects: Connect's JSON, Java's .properties, and options with packed properties."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.config.dialects import from_mapping, parse_properties, read
from tailrace.config.kinds import split_list
from tailrace.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("a=b", {"a": "b"}),
        ("  a  =  b  ", {"a": "b  "}),
        ("a:b\nc d\ne", {"a": "b", "c": "d", "e": ""}),
        ("a = = b", {"a": "= b"}),
        ("# no\n! nor\n\n   # this\na=#b", {"a": "#b"}),
        ("a=b,\\\n   c,\\\r\n\td", {"a": "b,c,d"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\\\\\\nc", {"a": "b\\c"}),
        ("a=b\\", {"a": "b"}),
        ("a\\ b\\:c\\=d=e", {"a b:c=d": "e"}),
        ("a=\\u00e9\\ud83d\\ude00", {"a": "é😀"}),
        ("a=\\t\\n\\r\\f\\q\\.", {"a": "\t\n\r\fq."}),
        ("a=1\na=2", {"a": "2"}),
        ("a=public\\\\.x", {"a": "public\\.x"}),
        ("", {}),
    ],
)
def test_java_properties(text: str, pairs: dict[str, str]) -> None:
    assert parse_properties(text) == pairs


def test_a_malformed_escape_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"malformed \\uxxxx encoding"):
        parse_properties("a=\\u00g0")


CHARACTERS = st.characters(exclude_categories=["Cs"])


def escaped(text: str) -> str:
    """A text as Properties.store writes it."""
    units = text.encode("utf-16-be")
    return "".join(
        f"\\u{units[i]:02x}{units[i + 1]:02x}" if (i // 2) % 2 else _readable(units[i : i + 2])
        for i in range(0, len(units), 2)
    )


def _readable(unit: bytes) -> str:
    character = chr(int.from_bytes(unit, "big"))
    return character if character.isascii() and character.isalnum() else f"\\u{unit.hex()}"


@given(st.dictionaries(st.text(CHARACTERS, min_size=1), st.text(CHARACTERS)), st.sampled_from(["=", ":", " ", " = "]))
def test_properties_written_with_escapes_read_back(pairs: dict[str, str], separator: str) -> None:
    text = "\n".join(f"{escaped(key)}{separator}{escaped(value)}" for key, value in pairs.items())
    assert parse_properties(text) == pairs


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        pairs = parse_properties(text)
    except ConfigError:
        return
    assert all(isinstance(value, str) for value in pairs.values())


@pytest.mark.parametrize(
    "node", [{"a": "x", "n": 1, "f": True}, {"name": "c", "config": {"a": "x", "n": 1, "f": True, "gone": None}}]
)
def test_connector_json(tmp_path: Path, node: dict[str, object]) -> None:
    path = tmp_path / "connector.json"
    path.write_text(json.dumps(node))
    assert {**read(path), "name": "c"} == {"name": "c", "a": "x", "n": "1", "f": "true"}


def test_properties_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAILRACE_TEST_PASSWORD", "hush")
    path = tmp_path / "connector.properties"
    path.write_text("database.password=${env:TAILRACE_TEST_PASSWORD}\ntransforms.r.replacement=x.${routedByValue}\n")
    assert read(path) == {"database.password": "hush", "transforms.r.replacement": "x.${routedByValue}"}


def test_secrets_in_files(tmp_path: Path) -> None:
    (tmp_path / "secrets.properties").write_text("# of the shop\nuser=me\npassword = hu\\u0073h\n", encoding="utf-8")
    (tmp_path / "password").write_text("quiet\n", encoding="utf-8")
    found = from_mapping(
        {"a": f"${{file:{tmp_path}/secrets.properties:password}}", "b": f"x${{dir:{tmp_path}:password}}y"}
    )
    assert found == {"a": "hush", "b": "xquiety"}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("${env:TAILRACE_NOT_SET}", "the environment variable TAILRACE_NOT_SET is not set"),
        ("${file:/not/there:password}", "/not/there cannot be read: No such file"),
        ("${file:/dev/null:password}", "/dev/null has no entry password"),
        ("${file:password}", "the reference has no path"),
        ("${dir:/not/there:password}", "/not/there/password cannot be read: No such file"),
        ("${vault:a/b}", "${vault:...} needs a config provider"),
    ],
)
def test_other_providers_are_refused(value: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_mapping({"database.password": value})
    assert message in str(caught.value)
    assert "database.password" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "is not JSON"), ('{"a": {"b": 1}}', "a text, number, boolean or list is expected, not dict")],
)
def test_a_broken_file_names_itself(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read(path)
    with pytest.raises(ConfigError, match="cannot read the configuration"):
        read(tmp_path / "none.json")


def test_packed_properties_keep_their_case_and_separate_options_win() -> None:
    packed = json.dumps({"transforms.Unwrap.type": "X", "slot.name": "a"})
    options = {"tailrace.Properties": packed, "transforms.unwrap.type": "Y", "shape": "event"}
    assert from_mapping(options) == {"transforms.Unwrap.type": "Y", "slot.name": "a", "shape": "event"}
    with pytest.raises(ConfigError, match="is not a JSON object"):
        from_mapping({"tailrace.properties": "[]"})


@pytest.mark.parametrize(
    ("items", "text"),
    [
        (["a", "b"], "a,b"),
        (["[a-z]{1,3}", r"odd\, name"], r"[a-z]{1\,3},odd\, name"),
        ([1, True], "1,true"),
        ([r"back\\,slash"], r"back\\\,slash"),
        ([], ""),
    ],
)
def test_a_list_is_a_comma_list(items: list[object], text: str) -> None:
    assert from_mapping({"x": items}) == {"x": text}
    assert len(split_list(text)) == len(items)


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        (
            "c.json",
            '{"name": "c",\n "config": {"a.b": "1",\n "c": "2",\n "a.b": "3"}}',
            "a.b is given twice, see the lines 2 and 4",
        ),
        ("c.json", '{"a": "1", "a": "2"}', "the property a is given twice\n"),
        (
            "c.properties",
            "# of the shop\na=1\nb=2,\\\n3\na : 2\n",
            "the property a is given twice, see the lines 2 and 5",
        ),
    ],
)
def test_a_property_that_a_file_gives_twice_is_an_error(tmp_path: Path, file: str, text: str, said: str) -> None:
    path = tmp_path / file
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read(path)
    assert said in str(caught.value)
    assert str(caught.value).startswith(str(path))


def test_the_name_of_a_connector_may_be_a_property_too(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text('{"name": "c", "config": {"name": "d"}}')
    assert read(path) == {"name": "d"}


def test_a_salt_that_is_given_twice_is_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "c.properties"
    path.write_text("column.mask.hash.MD5.with.salt.s3cret=a\n" * 2)
    with pytest.raises(ConfigError, match=r"salt\.\*+ is given twice") as caught:
        read(path)
    assert "s3cret" not in str(caught.value)


def test_a_misspelt_config_is_reported_as_such(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text('{"name": "c", "confg": {"topic.prefix": "a"}}')
    with pytest.raises(ConfigError, match=r"unknown key confg\n  Remedy: did you mean config\?"):
        read(path)
