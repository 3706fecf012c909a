"""Single message transforms of documents, found by the entry points `tailrace.transforms` of pyproject.toml."""
