"""PostgreSQL: logical replication through pgoutput, and parallel snapshots."""
