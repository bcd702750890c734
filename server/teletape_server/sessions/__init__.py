"""The sessions of a server: whose they are, what they may use, when they end; where they run is `hosts`."""
