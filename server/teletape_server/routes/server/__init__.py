"""What the server says of itself: its limits and devices, its metrics; and expressions, which it parses."""
