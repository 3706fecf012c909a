"""Roots of replicas: a path or URL is one of Delta tables, and `iceberg://namespace` one of Iceberg tables."""

from __future__ import annotations

ICEBERG = "iceberg://"
