#!/bin/sh
# Starts Python for Spark, which puts its zip files first in PYTHONPATH. What they hold is installed as well, compiled:
# from a zip file Python compiles it again for every process, half a second for each.
set -f
IFS=:
path=
for entry in $PYTHONPATH; do
    case $entry in
        */python/lib/*.zip) ;;
        *) path=$path:$entry ;;
    esac
done
PYTHONPATH=${path#:} exec "$TAILRACE_PYTHON" "$@"
