"""The properties that do not depend on the database: each is an object, by which a Config gives its value."""
