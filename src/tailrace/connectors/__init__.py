"""One package a database, all with the same rooms."""
