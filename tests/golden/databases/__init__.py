"""The databases that scenarios run on, one module each."""
