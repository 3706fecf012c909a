"""The rules that keep the whole small: who may import whom, who may name a database, how long things may be."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from tailrace.connectors.registry import BUILT_IN
from tests.unit.source_code import MODULES, SOURCE, nodes, text, tree

TESTS = Path(__file__).parents[1]

# Each package may import only itself and packages further left.
ORDER = [
    *("model", "javalike", "config", "events", "transforms", "connectors", "snapshot"),
    *("capture", "verify", "spark", "sinks", "pipeline", "operate", "cli"),
]
# The two wings: what reads databases, and what makes events of changes. They meet in `spark` and in `verify`.
SOURCES, EVENTS = ("connectors", "snapshot", "capture"), ("events", "transforms")
# What is outside the order: everybody may import these, and `testing` serves the CLI's demo and the tests.
FOUNDATION = {"errors", "override", "version"}
# The package's own face stands before all others: what users call, imported when it is called.
FACE = "__init__.py"
TESTING_MAY_BE_IMPORTED_BY = {"cli", "testing"}

# Packages that only these places may import.
CONFINED = {
    "pyspark": ("spark", "sinks", "pipeline", "testing"),
    # Signals come by Kafka as well, whatever the sink.
    "confluent_kafka": ("sinks", "snapshot", "testing"),
    "deltalake": ("sinks", "testing"),
    "prometheus_client": ("operate",),
}

# Where the code of each database is, and the words that nobody else writes, in comments and messages neither.
REGISTRY = "connectors/registry.py"
# Where a replica's format that is a database's tables is named, and the folder of its code is opened.
TARGETS = ("sinks/replica/roots.py", "sinks/replica/lakes.py")
# What is known of the reference engine's faults: the connectors that have them, and their places upstream.
FAULTS = "config/faults.py"
DATABASES = sorted(BUILT_IN)
WORDS = {
    "postgres": r"postgres|psycopg|adbc_driver_postgresql|pgoutput|libpq|pgjdbc",
    "mongodb": r"mongo|\bbson\b",
    "sqlserver": r"\bsql ?server|mssql|pyodbc",
    "db2": r"\bdb2\b|ibm_db",
}
# Modules that a reader finds in every connector, each a file or a folder.
CONNECTOR_MODULES = {
    *("package", "config", "connector", "position", "catalog", "types", "log", "snapshot", "admin"),
    "verify",
}
# What reads tables, whatever the log is: sql_tables/ has it for databases that are read by SQL.
READS_OF_TABLES = {"ChunkSession", "ChunkTable", "Page", "SignalTable", "TableSplit"}
VAGUE_NAMES = {"utils", "util", "common", "helpers", "helper", "manager", "managers", "misc"}
# A dataclass of more fields takes those after the first few by name alone: a reader of a call knows what is what.
MOST_FIELDS_BY_PLACE, MOST_FIELDS_OF_A_CALL_BY_PLACE = 6, 4
FILLED_BY_PLACE = {
    # From the columns of a query, in order.
    *("CatalogColumn", "Leaf", "Row", "Publication", "Sending", "Slot", "TableOverview", "Figures"),
    "Commit",
    # From another object's parts, in order.
    *("SourceAnswer", "NativeChanges", "Index", "KafkaSink", "MicroBatch", "Reading", "ReplicaSink", "Rows"),
    # The tables of properties: name, kind, default and text, then what few have.
    "Option",
}
MOST_LINES_OF_A_FILE = 400
MOST_LINES_OF_A_FUNCTION = 40


@cache
def where(module: Path) -> str:
    """The module's path as `package/.../file.py`."""
    return module.relative_to(SOURCE).as_posix()


@cache
def imports(module: Path) -> tuple[tuple[int, str], ...]:
    """(line, full name) of all that a module imports, in functions and for type checking alike."""
    return tuple(_imports(module))


def _imports(module: Path) -> Iterator[tuple[int, str]]:
    for node in nodes(module):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module == "tailrace":
            yield from ((node.lineno, f"tailrace.{name.name}") for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.lineno, node.module or ""


def refused(module: Path) -> Iterator[str]:
    """The imports of a module that the order does not allow."""
    room = where(module).split("/")[0]
    for line, name in imports(module):
        parts = name.split(".")
        target = parts[1] if parts[0] == "tailrace" and len(parts) > 1 else None
        if target is None or target in FOUNDATION or target == room:
            continue
        if target == "testing" and room in TESTING_MAY_BE_IMPORTED_BY:
            continue
        if room == "testing" or (target in ORDER and ORDER.index(target) < ORDER.index(room)):
            continue
        yield (
            f"{where(module)}:{line} imports {name}: move what it needs from {target}/ to {room}/ or to a package left "
            f"of both, or pass it in as an argument"
        )


@pytest.mark.parametrize("room", [*ORDER, "testing"])
def test_imports_follow_the_order(room: str) -> None:
    wrong = [line for module in MODULES if where(module).startswith(f"{room}/") for line in refused(module)]
    assert not wrong, "\n".join([f"The order is {' < '.join(ORDER)}; imports go left only.", *wrong])


@pytest.mark.parametrize(("wing", "other"), [(SOURCES, EVENTS), (EVENTS, SOURCES)])
def test_neither_wing_imports_the_other(wing: tuple[str, ...], other: tuple[str, ...]) -> None:
    """Left of ChangeBatch code knows one database, right of it none, and they know nothing of each other."""
    wrong = [
        f"{where(module)}:{line} imports {name}: move what both need down to model/ (data, values as text), to config/ "
        f"(what a property decides) or to javalike/ (Java's behaviour), or let spark/ pass it in"
        for module in MODULES
        if where(module).split("/")[0] in wing
        for line, name in imports(module)
        if name.startswith(tuple(f"tailrace.{room}" for room in other))
    ]
    assert not wrong, "\n".join(wrong)


def test_no_modules_import_each_other() -> None:
    """Nor for type checking: the first module of a circle cannot be read without the last one."""
    names = {f"tailrace.{where(module).removesuffix('.py').replace('/', '.')}": module for module in MODULES}
    graph = {name: _modules_imported(module, names) - {name} for name, module in names.items()}
    while leaves := {name for name, targets in graph.items() if not targets & graph.keys()}:
        graph = {name: targets for name, targets in graph.items() if name not in leaves}
    while roots := graph.keys() - {target for targets in graph.values() for target in targets}:
        graph = {name: targets for name, targets in graph.items() if name not in roots}
    circles = [f"{name} imports {', '.join(sorted(targets & graph.keys()))}" for name, targets in sorted(graph.items())]
    assert not circles, "\n".join(["move what two modules need of each other to a third one:", *circles])


def _modules_imported(module: Path, names: Mapping[str, Path]) -> set[str]:
    """The modules of `names` that a module imports, by the names in `from package import module` as well."""
    found = set()
    for node in nodes(module):
        if isinstance(node, ast.ImportFrom) and node.module:
            full = {f"{node.module}.{name.name}" for name in node.names}
            found |= full & names.keys() or {node.module} & names.keys()
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names} & names.keys()
    return found


def test_every_package_has_its_place_in_the_order() -> None:
    found = {where(module).split("/")[0] for module in MODULES} - {FACE}
    unknown = sorted(found - {*ORDER, "testing", *(f"{name}.py" for name in FOUNDATION)})
    assert not unknown, f"add these to ORDER, or move them into one of its packages: {unknown}"


def test_a_databases_code_is_reached_through_the_registry() -> None:
    """Others name no module below connectors/<db>/ or testing/<db>.py, so that a new database changes none of them."""
    wrong = [
        f"{where(module)}:{line} imports {name}: ask {REGISTRY} for the connector, and add what its package or admin "
        f"does not offer yet to the protocols of connectors/ports.py; what is not particular to {database} moves out "
        f"of connectors/{database}/"
        for database in DATABASES
        for module in MODULES
        if not owns(database, module)
        for line, name in imports(module)
        if name.startswith((f"tailrace.connectors.{database}", f"tailrace.testing.{database}"))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("room", [*ORDER, "testing", "errors.py", FACE])
def test_only_a_databases_own_modules_name_it(room: str) -> None:
    wrong = [
        f"{where(module)}:{number} names {database} ({found[0]}): move what is particular to it to "
        f"connectors/{database}/, or to {REGISTRY} if it is needed before that is imported; a message takes such words "
        f"from the connector, by connectors/ports.py"
        for database, words in WORDS.items()
        for module in MODULES
        if where(module).split("/")[0] == room and not owns(database, module)
        if re.search(words, text(module), re.IGNORECASE)
        for number, line in enumerate(text(module).splitlines(), 1)
        if (found := re.search(words, line, re.IGNORECASE))
    ]
    assert not wrong, "\n".join(wrong)


def owns(database: str, module: Path) -> bool:
    """Whether a module is one that may know this database."""
    return where(module).startswith(
        (
            *(f"connectors/{database}/", f"transforms/{database}/", f"sinks/replica/{database}/"),
            *(f"testing/{database}.py", REGISTRY, FAULTS, *TARGETS),
        )
    )


def test_a_connector_is_found_where_the_rule_looks_for_it() -> None:
    """Each has a folder, an entry module for Spark that only names it, and words that are searched for."""
    for name, entry in BUILT_IN.items():
        assert entry.package.startswith(f"tailrace.connectors.{name}.package:"), entry
        assert name in WORDS, f"add the words of {name} and of its drivers to WORDS"
        assert all(re.search(WORDS[name], driver) for driver in entry.drivers), (
            f"add {entry.drivers} to WORDS[{name!r}]"
        )
        entry_module = SOURCE.parent / f"pyspark_tailrace_{name}" / "__init__.py"
        imported = {target for _, target in imports(entry_module)}
        assert imported == {"tailrace.spark.source"}, f"{entry_module} may only name its connector: {imported}"


def test_a_connector_is_in_the_package_that_is_installed() -> None:
    """What pip installs of a built-in connector: its module for Spark, and the extra with its drivers."""
    text = (SOURCE.parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    assert set(WORDS) == set(BUILT_IN), "WORDS has the words of each built-in connector, and of no other"
    for name, entry in BUILT_IN.items():
        assert f'"src/pyspark_tailrace_{name}"' in text, f"add src/pyspark_tailrace_{name} to the wheel's packages"
        assert re.search(rf"^{name} = \[", text, re.MULTILINE), f"add an extra {name}: {entry.install} installs it"


def test_tables_are_read_without_their_log() -> None:
    """How a database keeps its log is nothing that reading its tables by SQL depends on."""
    wrong = [
        f"{where(module)}:{line} imports {name}: ask SqlDialect or the snapshot's Moment for it, which change_tables/ "
        f"implements, or move what both need to sql_tables/"
        for module in MODULES
        if where(module).startswith("connectors/sql_tables/")
        for line, name in imports(module)
        if name.startswith(tuple(f"tailrace.connectors.{room}" for room in ("change_tables", *DATABASES)))
    ]
    assert not wrong, "\n".join(wrong)


def test_a_log_of_change_tables_reads_no_other_tables() -> None:
    wrong = [
        f"{where(module)}:{node.lineno} implements {name.name}: move it to sql_tables/, over SqlDialect"
        for module in MODULES
        if where(module).startswith("connectors/change_tables/")
        for node in nodes(module)
        if isinstance(node, ast.ImportFrom)
        for name in node.names
        if name.name in READS_OF_TABLES
    ]
    assert not wrong, "\n".join(wrong)


def test_a_connector_leaves_the_planning_of_splits_to_the_snapshot() -> None:
    """Order, resume points, markers and notices of splits are the same for every database."""
    wrong = [
        f"{where(module)}:{node.lineno} makes the marker {node.value}: implement Cuts (connectors/snapshot_ports.py), "
        f"and leave what is planned to snapshot/splits.py"
        for module in MODULES
        if where(module).startswith("connectors/")
        for node in nodes(module)
        if isinstance(node, ast.Constant) and node.value in ("first_in_data_collection", "last_in_data_collection")
    ]
    assert not wrong, "\n".join(wrong)


def test_relative_imports_are_not_used() -> None:
    wrong = [
        f"{where(module)}:{node.lineno}: write the full name, so that the import order can be read"
        for module in MODULES
        for node in nodes(module)
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", CONFINED)
def test_outside_packages_stay_in_their_places(package: str) -> None:
    places = CONFINED[package]
    wrong = [
        f"{where(module)}:{line} imports {name}: move that code to {' or '.join(f'{place}/' for place in places)}"
        for module in MODULES
        if not where(module).startswith(tuple(f"{place}/" for place in places))
        for line, name in imports(module)
        if name.split(".")[0] == package
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("database", DATABASES)
def test_every_connector_has_the_same_modules(database: str) -> None:
    missing = sorted(CONNECTOR_MODULES - {entry.stem for entry in (SOURCE / "connectors" / database).iterdir()})
    assert not missing, f"connectors/{database}/ lacks {missing}: a file or a folder each, as the other connectors have"


def test_properties_are_read_by_the_objects_that_declare_them() -> None:
    """A name in quotes is no property for mypy, and is not found where nobody reads what is declared."""
    wrong = [
        f"{where(module)}:{node.lineno} reads {ast.unparse(node)}: give the option that declares the property"
        for module in MODULES
        for node in nodes(module)
        if isinstance(node, ast.Subscript | ast.Call) and _reads_by_text(node)
    ]
    assert not wrong, "\n".join(wrong)


def _reads_by_text(node: ast.Subscript | ast.Call) -> bool:
    """Whether it is `config["name"]` or `config.values.get("name")`, or one of their like; an f-string is a text."""
    if isinstance(node, ast.Subscript):
        owner, key = node.value, node.slice
    elif isinstance(node.func, ast.Attribute) and node.func.attr in ("get", "need", "is_given") and node.args:
        owner, key = node.func.value, node.args[0]
    else:
        return False
    is_text = isinstance(key, ast.JoinedStr) or (isinstance(key, ast.Constant) and isinstance(key.value, str))
    return is_text and re.fullmatch(r"(.*\.)?_?config(\.values|\.given)?", ast.unparse(owner)) is not None


@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        ('self._config["slot.name"]', True),
        ('config.values.get(f"{name}.type")', True),
        ('config.given["a"]', True),
        ("config[SLOT_NAME]", False),
        ('properties["slot.name"]', False),
    ],
)
def test_a_read_by_text_is_seen(text: str, is_read: bool) -> None:
    node = ast.parse(text, mode="eval").body
    assert isinstance(node, ast.Subscript | ast.Call)
    assert _reads_by_text(node) == is_read


def test_files_are_short() -> None:
    lengths = {where(module): len(module.read_text(encoding="utf-8").splitlines()) for module in MODULES}
    long = [f"{name}: {lines} lines" for name, lines in lengths.items() if lines > MOST_LINES_OF_A_FILE]
    assert not long, "\n".join([f"Split these where two subjects meet (at most {MOST_LINES_OF_A_FILE}):", *long])


def lines_of_docstring(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many lines of a function are its docstring."""
    first = node.body[0]
    return 0 if ast.get_docstring(node) is None else (first.end_lineno or first.lineno) - first.lineno + 1


def test_functions_are_short() -> None:
    long = []
    for module in MODULES:
        for node in nodes(module):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1 - lines_of_docstring(node)
                if lines > MOST_LINES_OF_A_FUNCTION:
                    long.append(f"{where(module)}:{node.lineno} {node.name}: {lines} lines")
    assert not long, "\n".join([f"Take a step out of these (at most {MOST_LINES_OF_A_FUNCTION} lines):", *long])


def test_dataclasses_of_many_fields_take_most_of_them_by_name() -> None:
    many = {
        node.name: f"{where(module)}:{node.lineno} {node.name}: put `_: KW_ONLY` after its first "
        f"{MOST_FIELDS_OF_A_CALL_BY_PLACE} fields at most"
        for module in MODULES
        for node in nodes(module)
        if isinstance(node, ast.ClassDef) and _has_many_fields_by_place(node)
    }
    assert not many.keys() - FILLED_BY_PLACE, "\n".join(many[name] for name in many.keys() - FILLED_BY_PLACE)
    assert not FILLED_BY_PLACE - many.keys(), "these need no exception: remove them from FILLED_BY_PLACE"


def _has_many_fields_by_place(node: ast.ClassDef) -> bool:
    """Whether it is a dataclass of many fields, of which too many may be given by place."""
    made = [ast.unparse(each) for each in node.decorator_list]
    if not any(each.startswith("dataclass") and "kw_only" not in each for each in made):
        return False
    fields = [each for each in node.body if isinstance(each, ast.AnnAssign) and "ClassVar" not in ast.dump(each)]
    by_name = next((at for at, each in enumerate(fields) if "KW_ONLY" in ast.unparse(each.annotation)), None)
    return len(fields) > MOST_FIELDS_BY_PLACE and (by_name is None or by_name > MOST_FIELDS_OF_A_CALL_BY_PLACE)


def test_names_say_what_is_inside() -> None:
    vague = [where(module) for module in MODULES if VAGUE_NAMES & {*module.with_suffix("").parts[len(SOURCE.parts) :]}]
    assert not vague, f"name these after what they do: {vague}"


def test_every_module_says_what_it_is_for() -> None:
    silent = [where(module) for module in MODULES if not (ast.get_docstring(tree(module)) or "").strip()]
    assert not silent, f"begin these with a sentence: {silent}"


def test_no_docstring_says_only_where_to_look() -> None:
    """A method that overrides another is marked so, which mypy verifies; its docstring is that of the other."""
    only = re.compile(r'"""See [A-Z]\w*(\.\w+)?\."""')
    files = [*MODULES, *TESTS.rglob("*.py")]
    where_to_look = [f"{file}: {match[0]}" for file in files for match in only.finditer(file.read_text("utf-8"))]
    assert not where_to_look, f"inherit from what is named, and write @override in its place: {where_to_look}"
