"""A connector over tables that its database gives whole, as of a position: it reads them, all else is done here.

`connector.py` has what a database implements; it may replace any part later by queries of its own.
"""
