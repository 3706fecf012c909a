"""The planner's side of a source: combines snapshot and log, over the protocols of connectors/."""
