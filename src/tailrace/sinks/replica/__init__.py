"""The replica sink: keeps one Delta table for each captured table equal to its source."""
