"""The version that packages, events (`source.version`) and offsets carry."""

__version__ = "0.1.0"
