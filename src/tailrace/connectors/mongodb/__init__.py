"""MongoDB: change streams and collections as events."""
