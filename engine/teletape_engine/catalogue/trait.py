"""Traits: what the rest of the engine and the SDK need to know of an op in addition to its rules.

No other module tests an op's name or type: it tests for a trait. Laws hold each trait (tests/engine/test_traits.py).
"""

from __future__ import annotations

import enum


class Trait(enum.Enum):
    """One fact about an op."""

    ALIASES = "aliases"  #: The result is the input itself: a cotangent, sparse or not, is that of the input.
    ASSERTS = "asserts"  #: Run for the error that it may raise, even if nothing uses its result.
    COMPARES = "compares"  #: Selects by comparing its two inputs; on a tie the gradient goes to the first.
    CONVERTS = "converts"  #: Changes the dtype; an integer input gives numbers, and no index or condition.
    CONVERTS_APART = "converts_apart"  #: An argument that does not fit the other's dtype is converted on its own.
    EDGES = "edges"  #: Returns its first input; the others have no effect but their place in the graph.
    JOINS = "joins"  #: Puts its inputs side by side in the result.
    MULTIPLIES = "multiplies"  #: The gradient of one input is a product with the others.
    RANDOM = "random"  #: Draws numbers from a seed and a counter, which are inputs.
    SATURATES = "saturates"  #: Its derivative is zero, or rounds to zero, on a part of its domain.
    SELECTS = "selects"  #: The result holds some elements of an input and not the others.
    SHAPE_ONLY = "shape_only"  #: The result depends on the shape of its input, not on the elements.
    STOPS_GRADIENT = "stops_gradient"  #: Tapes take the result for a constant.
