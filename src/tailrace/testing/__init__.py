"""Real servers for demo and tests: without containers or system packages, removed when they are stopped."""
