"""The connection to a server: exchanges, which use no network themselves, and the drivers that perform them."""
