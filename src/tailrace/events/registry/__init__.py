"""Schema registries: clients of Confluent's API and of Apicurio's, and records that name their schemas by ids."""
