"""From changes in columns to Debezium's records: names, envelopes, keys, headers, transactions; it knows no database."""
