"""Values as text: Arrow columns as JSON, numbers, bytes and escaped strings."""
