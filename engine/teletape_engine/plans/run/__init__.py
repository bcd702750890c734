"""From instructions to results: plans and loops, the machines that run them, from Python or in C."""
