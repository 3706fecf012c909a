#!/bin/sh
# Submits changes.py to a standalone cluster. MASTER is spark://HOST:7077; TARGET and CHECKPOINT are folders that all hosts
# mount, or URLs. PYSPARK_PYTHON is a Python with tailrace, at the same path on every host.
#
# Run: shellcheck, and as it is with one master and one worker on one machine. Not run: on several machines.
set -eu
: "${MASTER:?}" "${TARGET:?}" "${CHECKPOINT:?}" "${PYSPARK_PYTHON:?}" "${DATABASE_PASSWORD:?}"
export PYSPARK_PYTHON
here=$(cd "$(dirname "$0")" && pwd)
exec spark-submit --master "$MASTER" --name tailrace-shop \
  --properties-file "$here/common.conf" \
  --total-executor-cores "${CORES:-2}" \
  "$here/changes.py" "$TARGET" "$CHECKPOINT" "$@"
