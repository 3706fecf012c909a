"""One package for each database, all with the same modules, and the code that they share."""
