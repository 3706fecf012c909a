"""The properties of the folder: each is an object, by which a Config gives its value."""

from __future__ import annotations

from tailrace.config import shared
from tailrace.config.kinds import TEXT, optional
from tailrace.config.option import Option, OptionTable

FOLDER = (
    Option("connector.class", optional(TEXT), None, "Class of the connector."),
    FOLDER_PATH := Option("folder.path", TEXT, None, "The folder.", required=True),
    FOLDER_USER := Option("folder.user", TEXT, None, "A user of users.json.", required=True),
    FOLDER_PASSWORD := Option("folder.password", TEXT, None, "The password.", required=True, secret=True),
)
READ, SHOWN = ("FILTERS", "SNAPSHOT", "SIGNALS", "RUNTIME", "SPARK"), ("VALUES", "MASKS", "OUT_OF_RANGE", "TOPICS")
SHARED = (*READ, *SHOWN, "CONVERTERS")
OPTIONS = OptionTable({"Folder": FOLDER, **{group.title(): getattr(shared, group) for group in SHARED}})
