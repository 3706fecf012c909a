"""MongoDB: converts change streams and collections to events."""
