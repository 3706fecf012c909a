"""Converts columns of changes to Debezium's records: names, envelopes, keys, headers, transactions."""
