"""The command `tailrace`, one file a subcommand."""
