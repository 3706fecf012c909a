"""Tables of Delta, written by delta-rs without a JVM."""
