"""Three ways to make Spark's start and its micro-batches cheaper, which change no result; one switch turns all off.

| module | decision | what it does |
|---|---|---|
| class_archive | 33 | Java loads Spark's classes from an archive |
| worker_python | 34 | Python workers import the installed PySpark, which is compiled |
| local_files | 37 | local files are written without a checksum file, and get their permissions without a program |

FIGURES
"""

SWITCH = "spark.tailrace.quickStart"
"""A Spark property: `false` starts Spark without all three."""
