"""Excluded fields where updates bring no whole documents."""

from tests.compare.mongodb.cases import it_fields

PROPERTIES = {**it_fields.PROPERTIES, "capture.mode": "change_streams", "tombstones.on.delete": "false"}
setup, run = it_fields.setup, it_fields.run
