"""What Spark sees of a database: snapshot and log combined, over the protocols of connectors/."""
