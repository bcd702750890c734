"""The way to a server: exchanges, which know no network, and the drivers that perform them."""
