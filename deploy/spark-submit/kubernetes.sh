#!/bin/sh
# Submits changes.py to Kubernetes. MASTER is k8s://https://HOST:PORT; IMAGE has Spark and tailrace for driver and executors
# (deploy/spark-submit/Dockerfile). The Secret `tailrace` has DATABASE_PASSWORD; TARGET and CHECKPOINT are URLs of an
# object store, or folders of the claim CLAIM, which is mounted at /var/lib/tailrace.
#
# Run: shellcheck. Not run: on a cluster.
set -eu
: "${MASTER:?}" "${IMAGE:?}" "${CLAIM:?}" "${TARGET:?}" "${CHECKPOINT:?}"
: "${DATABASE_HOST:?}" "${DATABASE_USER:?}" "${DATABASE_NAME:?}"
here=$(cd "$(dirname "$0")" && pwd)
volume=persistentVolumeClaim.state
exec spark-submit --master "$MASTER" --deploy-mode cluster --name tailrace-shop \
  --properties-file "$here/common.conf" \
  --conf spark.kubernetes.container.image="$IMAGE" \
  --conf spark.kubernetes.namespace="${NAMESPACE:-default}" \
  --conf spark.kubernetes.authenticate.driver.serviceAccountName="${SERVICE_ACCOUNT:-spark}" \
  --conf spark.kubernetes.driver.secretKeyRef.DATABASE_PASSWORD=tailrace:DATABASE_PASSWORD \
  --conf spark.kubernetes.driverEnv.DATABASE_HOST="$DATABASE_HOST" \
  --conf spark.kubernetes.driverEnv.DATABASE_USER="$DATABASE_USER" \
  --conf spark.kubernetes.driverEnv.DATABASE_NAME="$DATABASE_NAME" \
  --conf "spark.kubernetes.driver.volumes.$volume.options.claimName=$CLAIM" \
  --conf "spark.kubernetes.driver.volumes.$volume.mount.path=/var/lib/tailrace" \
  --conf "spark.kubernetes.executor.volumes.$volume.options.claimName=$CLAIM" \
  --conf "spark.kubernetes.executor.volumes.$volume.mount.path=/var/lib/tailrace" \
  --conf spark.executor.instances=1 \
  "local:///opt/tailrace/changes.py" "$TARGET" "$CHECKPOINT" "$@"
