"""Kafka as a target: records are encoded and sent by tasks, each split of a micro-batch in a transaction of its own."""
