"""What an operator asks for outside a pipeline: checks, overview, drop, comparison."""
