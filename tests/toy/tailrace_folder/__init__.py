"""A connector for change files in a folder: the smallest database that Tailrace can read."""

from tailrace.connectors.registry import ConnectorEntry

ENTRY = ConnectorEntry(
    name="folder",
    product="Folder",
    format="folder-cdc",
    package="tailrace_folder.package:FolderPackage",
    classes=("io.debezium.connector.folder.FolderConnector",),
    schemes=("folder://",),
    url="folder:///path?user=me",
)
