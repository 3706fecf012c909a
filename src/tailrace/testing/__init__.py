"""Real servers for the demo and the tests: no containers, nothing installed system-wide, gone when they are stopped."""
