"""The replica sink: one table for each captured table, of its rows, their history or its changes; formats below."""
