"""`tailrace verify`: asks a server of a user's own what the connector relies on, and writes a report of it."""
