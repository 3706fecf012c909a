#!/bin/sh
# The driver's Python in a container of YARN: the packed environment, with the variables of secrets.env.
set -eu
set -a
# shellcheck disable=SC1091  # the file is there in the container alone
. ./secrets.env
exec ./environment/bin/python "$@"
