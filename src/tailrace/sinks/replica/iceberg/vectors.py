"""Deletion vectors of Iceberg: the positions of deleted rows of a data file, as a bitmap in a Puffin file."""

from __future__ import annotations

import json
import uuid
import zlib
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import Table
from pyiceberg.typedef import Record
from pyroaring import BitMap

from tailrace.sinks.replica.form import VECTORS
from tailrace.sinks.replica.iceberg.manifests import added_field

Positions = npt.NDArray[np.int64]

# As the specifications of Puffin and of the vector have them; the field is that of a row's position.
_PUFFIN, _VECTOR, _KIND, _POSITION = b"PFA1", b"\xd1\xd3\x39\x64", "deletion-vector-v1", 2147483645
_LENGTH, _CHECK, _COUNT, _KEY = 4, 4, 8, 4


def is_vector(file: DataFile) -> bool:
    """Whether a delete file is a deletion vector."""
    return file.file_format == FileFormat.PUFFIN


def referenced(file: DataFile) -> str:
    """The data file whose rows a vector deletes."""
    return str(added_field(file, "referenced_data_file"))


def write_vectors(table: Table, dead: Mapping[str, Positions]) -> list[DataFile]:
    """Write the deleted rows of data files into one Puffin file, which has a vector for each."""
    location = table.location_provider().new_data_location(f"{uuid.uuid4()}.puffin")
    blobs, places, offset = [], [], len(_PUFFIN)
    for path, positions in dead.items():
        blobs.append(_blob(positions))
        places.append((path, len(positions), offset, len(blobs[-1])))
        offset += len(blobs[-1])
    footer = json.dumps({"blobs": [_described(*place) for place in places], "properties": {}}).encode()
    end = _PUFFIN + footer + len(footer).to_bytes(4, "little") + bytes(4) + _PUFFIN
    with table.io.new_output(location).create() as stream:
        for piece in (_PUFFIN, *blobs, end):
            stream.write(piece)
    return [_file(table, location, offset + len(end), *place) for place in places]


def read_vector(table: Table, file: DataFile) -> Positions:
    """The deleted rows, ascending."""
    with table.io.new_input(file.file_path).open() as stream:
        stream.seek(added_field(file, "content_offset"))
        blob = stream.read(added_field(file, "content_size_in_bytes"))
    positions = [np.empty(0, np.int64), *_bitmaps(blob[_LENGTH + len(_VECTOR) : -_CHECK])]
    return np.concatenate(positions)


def _bitmaps(data: bytes) -> Iterator[Positions]:
    """The positions in the bitmaps of 32 bits that make one of 64 bits, by their upper halves."""
    count, at = int.from_bytes(data[:_COUNT], "little"), _COUNT
    for _ in range(count):
        upper = int.from_bytes(data[at : at + _KEY], "little")
        bitmap = BitMap.deserialize(data[at + _KEY :])
        at += _KEY + len(bitmap.serialize())
        yield np.array(bitmap.to_array(), np.int64) + (upper << 32)


def _blob(positions: Positions) -> bytes:
    """Positions, ascending, as a vector with its length and check sum."""
    uppers = np.unique(positions >> 32)
    pieces = [_VECTOR, len(uppers).to_bytes(_COUNT, "little")]
    for upper in uppers.tolist():
        some = (positions[positions >> 32 == upper] & 0xFFFFFFFF).astype(np.uint32)
        bitmap = BitMap(some)
        bitmap.run_optimize()
        pieces += [upper.to_bytes(_KEY, "little"), bitmap.serialize()]
    vector = b"".join(pieces)
    return len(vector).to_bytes(_LENGTH, "big") + vector + zlib.crc32(vector).to_bytes(_CHECK, "big")


def _described(path: str, count: int, offset: int, length: int) -> dict[str, object]:
    """What the footer says of a vector. It belongs to no snapshot, as the specification wants it."""
    return {
        "type": _KIND,
        "fields": [_POSITION],
        "snapshot-id": -1,
        "sequence-number": -1,
        "offset": offset,
        "length": length,
        "properties": {"referenced-data-file": path, "cardinality": str(count)},
    }


def _file(table: Table, location: str, size: int, path: str, count: int, offset: int, length: int) -> DataFile:
    return DataFile.from_args(
        _table_format_version=VECTORS,
        content=DataFileContent.POSITION_DELETES,
        file_path=location,
        file_format=FileFormat.PUFFIN,
        partition=Record(),
        record_count=count,
        file_size_in_bytes=size,
        spec_id=table.metadata.default_spec_id,
        referenced_data_file=path,
        content_offset=offset,
        content_size_in_bytes=length,
    )
