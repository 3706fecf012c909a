"""Three ways to make Spark's start and its micro-batches cheaper, which change no result; one switch turns all off.

| module | decision | what it does |
|---|---|---|
| class_archive | 33 | Java loads Spark's classes from an archive |
| worker_python | 34 | Python workers import the installed PySpark, which is compiled |
| local_files | 37 | local files are written without a checksum file, and get their permissions without a program |

Measured on two virtual cores that were busy with other work: a start and 40 micro-batches of one row, without one of
the three and with all, in turn; CPU-seconds of all processes, medians. Without class_archive 18.5, with it 13.8.
Without worker_python 16.2, with it 12.9. Without local_files 13.8, with it 13.5, no more than the
runs differ; but Hadoop creates a file in 13.6 ms without and in 1.2 ms with it, two files a micro-batch.
"""

SWITCH = "spark.tailrace.quickStart"
"""A Spark property: `false` starts Spark without all three."""
