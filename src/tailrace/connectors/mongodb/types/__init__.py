"""Parses BSON by columns: many documents at a time, without a Python object for each field.

`layout` says where values lie in a buffer, `walk` finds the elements of documents, `json` writes values as the JSON
text of MongoDB's Java driver, `columns` gives fields their Arrow types, `edit` removes and renames fields.
"""
