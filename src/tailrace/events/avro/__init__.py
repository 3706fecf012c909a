"""Avro: schemas of Connect schemas, and datums of Arrow columns."""
