"""A pipeline: its file, its Spark session, and running it."""
