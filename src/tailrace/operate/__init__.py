"""What operators of a pipeline ask: its status, its health, metrics, a REST interface and a console."""
