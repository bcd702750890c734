"""The public names: a table of their modules, and public modules that import a name when it is first used."""
