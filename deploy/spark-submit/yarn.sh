#!/bin/sh
# Submits changes.py to YARN. ENVIRONMENT is a packed environment with tailrace and without PySpark:
#
#     python3 -m venv environment && environment/bin/pip install 'tailrace[postgres]' venv-pack
#     environment/bin/venv-pack -p environment -o environment.tar.gz
#
# TARGET and CHECKPOINT are URLs (hdfs://...). SECRETS is a file with DATABASE_PASSWORD=..., which is sent to the driver's
# container and sourced there by the driver's Python, see python.sh; it is not in a list of processes.
#
# Run: shellcheck. Not run: on YARN.
set -eu
: "${ENVIRONMENT:?}" "${TARGET:?}" "${CHECKPOINT:?}" "${SECRETS:?}"
: "${DATABASE_HOST:?}" "${DATABASE_USER:?}" "${DATABASE_NAME:?}"
here=$(cd "$(dirname "$0")" && pwd)
exec spark-submit --master yarn --deploy-mode cluster --name tailrace-shop \
  --properties-file "$here/common.conf" \
  --archives "$ENVIRONMENT#environment" \
  --files "$SECRETS#secrets.env,$here/python.sh#python.sh" \
  --conf spark.yarn.appMasterEnv.PYSPARK_DRIVER_PYTHON=./python.sh \
  --conf spark.yarn.appMasterEnv.PYSPARK_PYTHON=./environment/bin/python \
  --conf spark.yarn.appMasterEnv.DATABASE_HOST="$DATABASE_HOST" \
  --conf spark.yarn.appMasterEnv.DATABASE_USER="$DATABASE_USER" \
  --conf spark.yarn.appMasterEnv.DATABASE_NAME="$DATABASE_NAME" \
  --conf spark.executorEnv.PYSPARK_PYTHON=./environment/bin/python \
  --conf spark.yarn.maxAppAttempts=1 \
  --num-executors 1 --executor-cores 2 \
  "$here/changes.py" "$TARGET" "$CHECKPOINT" "$@"
