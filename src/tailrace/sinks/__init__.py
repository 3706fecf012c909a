"""Where changes go: each sink writes a micro-batch so that writing it twice changes nothing."""
