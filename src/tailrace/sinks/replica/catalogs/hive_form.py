"""The form in which Spark stores a Delta table in a Hive metastore, which Glue has as well."""

from __future__ import annotations

# Hive has one type for both.
NAMES = {"timestamp_ntz": "timestamp"}
# No engine reads the files by these: each looks for the provider first.
INPUT = "org.apache.hadoop.mapred.SequenceFileInputFormat"
OUTPUT = "org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat"
SERDE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
EXTERNAL = {"EXTERNAL": "TRUE", "spark.sql.sources.provider": "delta"}
