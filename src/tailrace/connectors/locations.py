"""Opens the file system of a path or URL without Spark, by Arrow: local, or an object store."""

from __future__ import annotations

from pathlib import Path

from pyarrow import fs

# Names that Hadoop has for S3; Arrow takes its keys, region and endpoint from AWS's own variables and files.
_S3 = ("s3a://", "s3n://")


def located(location: str) -> tuple[fs.FileSystem, str]:
    """The file system of a path or URL, and the path there. Raises OSError and ArrowException."""
    if "://" not in location:
        return fs.LocalFileSystem(), str(Path(location).absolute())
    for scheme in _S3:
        if location.startswith(scheme):
            location = f"s3://{location.removeprefix(scheme)}"
    system, path = fs.FileSystem.from_uri(location)
    return system, path
