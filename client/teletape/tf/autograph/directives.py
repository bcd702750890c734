"""`tf.autograph.experimental.set_loop_options`, and how the conversion recognizes it."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from teletape.core.program.tracebacks import unwrapped

UNSPECIFIED: Final = object()


def set_loop_options(
    parallel_iterations: Any = UNSPECIFIED,
    swap_memory: Any = UNSPECIFIED,
    maximum_iterations: Any = UNSPECIFIED,
    shape_invariants: Any = UNSPECIFIED,
) -> None:
    """Sets options of the loop whose body it begins; outside a loop on tensors it does nothing.

    Args:
        parallel_iterations: Accepted, without effect.
        swap_memory: Accepted, without effect.
        maximum_iterations: The largest number of iterations.
        shape_invariants: (tensor, TensorShape) pairs: loop variables whose shape may change.
    """


@cache
def transformer() -> Any:
    """Returns malt's transformer of directives, extended by the function above."""
    from malt.converters import directives as convert
    from malt.lang import directives
    from malt.pyct import anno

    class Transformer(convert.DirectivesTransformer):  # type: ignore[misc]  # malt has no types
        def visit_Name(self, node: Any) -> Any:
            return _known(super().visit_Name(node))

        def visit_Attribute(self, node: Any) -> Any:
            return _known(super().visit_Attribute(node))

        @staticmethod
        def transform(node: Any, context: Any) -> Any:
            return Transformer(context).visit(node)

    def _known(node: Any) -> Any:
        if unwrapped(anno.getanno(node, convert.STATIC_VALUE, default=None)) is set_loop_options:
            anno.setanno(node, convert.STATIC_VALUE, directives.set_loop_options)
        return node

    return Transformer
