"""Transforms of documents; pyproject.toml lists them as entry points `tailrace.transforms`."""
