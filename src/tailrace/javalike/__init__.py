"""Does what Java and its libraries do: patterns, hashes, dates, escapes of text."""
