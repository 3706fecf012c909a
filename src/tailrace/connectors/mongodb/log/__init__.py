"""Reads MongoDB's log: change streams and the oplog, as columns."""
