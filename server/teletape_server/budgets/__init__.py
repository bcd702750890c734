"""What keys and groups may use, and what they have used: limits, hours of use, and the refusals that say both."""
