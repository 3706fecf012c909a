"""Catalogues in which the Delta tables of a replica appear by name: Hive metastores, AWS Glue and Unity Catalog."""
