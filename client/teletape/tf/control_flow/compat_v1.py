"""`tf.compat.v1`: control flow with the signatures and the loose packing of TensorFlow 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from teletape.core.tensors import nest
from teletape.tf.control_flow import eager
from teletape.tf.control_flow.folds import foldl, foldr, scan
from teletape.tf.control_flow.maps import map_fn

__all__ = ["case", "cond", "foldl", "foldr", "map_fn", "scan", "switch_case", "while_loop"]

case, switch_case = eager.case, eager.switch_case


def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Callable[[], Any] | None = None,
    fn2: Callable[[], Any] | None = None,
) -> Any:
    """Like `tf.cond`; unless `strict`, a list or tuple of one result becomes that result. `fn1`, `fn2` are older names.

    Raises:
        TypeError: A function is missing, given under both names, or cannot be called.
    """
    for new, old, names in ((true_fn, fn1, "'true_fn' and 'fn1'"), (false_fn, fn2, "'false_fn' and 'fn2'")):
        if new is not None and old is not None:
            raise TypeError(f"cond(): {names} may not be set simultaneously.")
    result = eager.cond(pred, fn1 if true_fn is None else true_fn, fn2 if false_fn is None else false_fn)
    return result[0] if not strict and isinstance(result, list | tuple) and len(result) == 1 else result


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any:
    """Like `tf.while_loop`; the body of a single loop variable may return it without a list, as the result then is.

    Raises:
        TypeError, ValueError: As `tf.while_loop`.
    """
    alone = nest.is_nested(loop_vars) and len(loop_vars) == 1 and not return_same_structure and callable(body)
    bare = alone and maximum_iterations is not None

    def packed(*values: Any) -> Any:
        nonlocal bare
        result = body(*values)
        if bare or not isinstance(result, list | tuple):
            bare = True
            return [result] if isinstance(loop_vars, list) else (result,)
        return result

    results = eager.while_loop(
        cond,
        packed if alone else body,
        loop_vars,
        shape_invariants,
        parallel_iterations,
        back_prop,
        swap_memory,
        maximum_iterations,
    )
    return results[0] if bare else results
