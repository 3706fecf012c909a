"""Calls IBM's CLI library, which the package ibm_db ships: it fills buffers of many rows by columns."""
