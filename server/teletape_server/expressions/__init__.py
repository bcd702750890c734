"""Expressions: a small language of formulas, parsed by lark into the inputs, steps and outputs of a function."""
