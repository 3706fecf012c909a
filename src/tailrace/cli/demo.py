"""`tailrace demo`."""


def command() -> None:
    """x"""
