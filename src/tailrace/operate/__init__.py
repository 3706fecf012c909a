"""Serves the operators of a pipeline: status, health, metrics, a REST interface and a console."""
