"""Types of columns: from what the driver returns to values of events."""
