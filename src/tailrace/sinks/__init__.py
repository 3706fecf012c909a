"""Sinks: each writes a micro-batch so that writing it twice changes nothing."""
