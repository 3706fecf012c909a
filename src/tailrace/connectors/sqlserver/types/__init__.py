"""Types of columns: from what a SELECT returns to values of events."""
