"""The public names: a table of where each is, and modules that import a name when it is first used."""
