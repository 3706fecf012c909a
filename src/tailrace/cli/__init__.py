"""The command `tailrace`, one file for each subcommand."""
