"""The PostgreSQL server: connections, replication slot, publication, and whether its log is still there."""
