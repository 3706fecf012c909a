"""The replica sink: per captured table a Delta table that is kept equal to its source."""
