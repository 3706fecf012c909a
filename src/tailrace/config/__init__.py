"""Configuration: every property declared once, read from three dialects, and checked as a whole."""

from tailrace.config.resolve import Config

__all__ = ["Config"]
