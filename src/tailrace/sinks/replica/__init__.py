"""The replica sink: one Delta or Iceberg table for each captured table, of its rows, their history or its changes."""
