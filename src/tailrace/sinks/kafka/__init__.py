"""Writes to Kafka: tasks encode and send records, each split of a micro-batch in its own transaction."""
