"""What is said about derivatives in place of their elements: checks, statistics, estimates."""
