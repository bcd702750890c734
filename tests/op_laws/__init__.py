"""The laws that every op must obey, and what checks them: for the tests and `make laws`."""
