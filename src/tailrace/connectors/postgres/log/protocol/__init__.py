"""PostgreSQL's wire formats, bytes in and columns out: no sockets, no files, no server in here."""
