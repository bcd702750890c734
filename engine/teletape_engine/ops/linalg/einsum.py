"""Einstein's summation: products of arrays whose axes carry labels, as transposes, sums and matrix products."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, TypeAlias

from teletape_engine.catalogue.define import sample
from teletape_engine.catalogue.families import composite
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.signature import Conversion, function
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.linalg.diagonal import diag_part
from teletape_engine.ops.linalg.products import matmul
from teletape_engine.ops.reduce import reduce_sum
from teletape_engine.ops.shapes.shape import reshape, transpose
from teletape_engine.spec import shape_text

Label: TypeAlias = str | int  # a letter; an axis of the ellipsis, counted from its end: -1, -2, …
Labels: TypeAlias = tuple[Label, ...]

_EQUATION = re.compile(
    r"(?:[a-zA-Z]*(?:\.\.\.)?[a-zA-Z]*)(?:,[a-zA-Z]*(?:\.\.\.)?[a-zA-Z]*)*(?:->[a-zA-Z]*(?:\.\.\.)?[a-zA-Z]*)?"
)


def terms(equation: str, count: int) -> tuple[list[str], str]:
    """The labels of each input and of the result; without an arrow those that occur once, in alphabetical order.

    Raises:
        InvalidArgumentError: The equation is malformed; the message is TensorFlow's.
    """
    text = equation.replace(" ", "")
    if not _EQUATION.fullmatch(text):
        raise InvalidArgumentError(f"Subscripts have incorrect format: {text}")
    left, arrow, result = text.partition("->")
    inputs = left.split(",")
    if len(inputs) != count:
        raise InvalidArgumentError(f'Got {count} inputs for equation "{text}", expecting {len(inputs)}')
    letters = left.replace(".", "").replace(",", "")
    if not arrow:
        once = sorted({letter for letter in letters if letters.count(letter) == 1})
        result = "".join(once)
    labels = result.replace(".", "")
    for letter in labels:
        if letter not in letters:
            raise InvalidArgumentError(
                f"Output subscripts contain the label {letter} not present in the input subscripts."
            )
    if len(set(labels)) < len(labels):
        raise InvalidArgumentError(f"Output subscripts contain a label appearing more than once: {text}")
    return inputs, result


def _labels(term: str, rank: int, i: int) -> Labels:
    """One label an axis."""
    before, dots, after = term.partition("...")
    more = rank - len(before) - len(after)
    if more < 0 or (more and not dots):
        at_least = "at least " if dots else ""
        raise InvalidArgumentError(
            f"Expected input {i} to have rank {at_least}{len(before) + len(after)} but got: {rank}"
        )
    return (*before, *range(-more, 0), *after)


def _check_lengths(xs: Sequence[Operand], labels: Sequence[Labels]) -> None:
    lengths: dict[Label, int] = {}
    for x, own in zip(xs, labels, strict=True):
        for axis, (label, length) in enumerate(zip(own, x.shape, strict=True)):
            expected = lengths.setdefault(label, length)
            if isinstance(label, int):  # those of the ellipsis broadcast
                lengths[label] = max(expected, length)
            if length != expected and not (isinstance(label, int) and 1 in (length, expected)):
                raise InvalidArgumentError(
                    f"Expected dimension {expected} at axis {axis} of the input shaped {shape_text(tuple(x.shape))} "
                    f"but got dimension {length}"
                )


def _single(x: Operand, labels: Labels, keep: set[Label]) -> tuple[Any, Labels]:
    """Takes the diagonal of a label that occurs twice, and sums over labels that are not in `keep`."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            others = [i for i in range(len(labels)) if i not in (first, second)]
            x = diag_part(transpose(x, perm=(*others, first, second)))
            labels = (*(labels[i] for i in others), label)
    gone = tuple(i for i, label in enumerate(labels) if label not in keep)
    if gone:
        x, labels = reduce_sum(x, axis=gone), tuple(label for label in labels if label in keep)
    return x, labels


def _arranged(x: Operand, labels: Labels, order: Labels) -> Operand:
    perm = tuple(labels.index(label) for label in order)
    return x if perm == tuple(range(len(perm))) else transpose(x, perm=perm)


def _product(a: Operand, la: Labels, b: Operand, lb: Labels, keep: set[Label]) -> tuple[Any, Labels]:
    """Two arrays as stacks of matrices: a label of both is a stacking axis if it is in `keep`, and summed otherwise."""
    a, la = _single(a, la, keep | set(lb))
    b, lb = _single(b, lb, keep | set(la))
    stack = tuple(label for label in la if label in lb and label in keep)
    summed = tuple(label for label in la if label in lb and label not in keep)
    rows, columns = (tuple(label for label in own if label not in (*stack, *summed)) for own in (la, lb))
    a, b = _arranged(a, la, (*stack, *rows, *summed)), _arranged(b, lb, (*stack, *summed, *columns))
    lead, n = len(stack), len(summed)
    outer_a, outer_b, k = a.shape[lead : len(a.shape) - n], b.shape[lead + n :], math.prod(b.shape[lead : lead + n])
    product = matmul(
        reshape(a, shape=(*a.shape[:lead], math.prod(outer_a), k)),
        reshape(b, shape=(*b.shape[:lead], k, math.prod(outer_b))),
    )
    return reshape(product, shape=(*product.shape[:-2], *outer_a, *outer_b)), (*stack, *rows, *columns)


@composite(
    samples=[
        sample((2, 3), (3, 4), equation="ij,jk->ik"),
        sample((2, 3, 4), (2, 5, 4), equation="bqd,bkd->bqk"),
        sample((3, 3), equation="ii->i"),
        sample((2, 3, 3), equation="bii"),
        sample((2, 3), equation="ij->ji"),
        sample((2, 3), (3,), (2,), equation="ij,j,i->"),
        sample((3, 2, 2), (2, 4), equation="...ij,jk->...ik"),
        sample((2,), (3,), equation="i,j->ij", seed=1),
        sample((2, 1, 3), (4, 3), equation="...i,...i->...", seed=2),
        sample((2, 3, 4), equation="ijk->"),
    ],
    tf=(
        function(
            "einsum linalg.einsum",
            Conversion.AS_IS("equation"),
            Conversion.EACH("inputs"),
            Conversion.IGNORED("optimize", None),
            check="equation",
        ),
    ),
)
def einsum(*xs: Operand, equation: str) -> Operand:
    """Sums products over labelled axes: "ij,jk->ik" is the matrix product, "ii->i" the diagonal, "ij->" the sum.

    Labels are letters; "..." means any leading axes, which broadcast. Several inputs are multiplied from left to right.
    """
    inputs, result = terms(equation, len(xs))
    labels = [_labels(term, len(x.shape), i) for i, (term, x) in enumerate(zip(inputs, xs, strict=True))]
    _check_lengths(xs, labels)
    most = max((-label for own in labels for label in own if isinstance(label, int)), default=0)
    before, dots, after = result.partition("...")
    if most and not dots:
        raise InvalidArgumentError(
            f"Output contains {most} broadcasting dimension(s) but no ellipsis (...) was found in the output "
            "subscripts."
        )
    outputs: Labels = (*before, *range(-most, 0), *after)
    x, own = xs[0], labels[0]
    for i in range(1, len(xs)):
        later = {label for other in labels[i + 1 :] for label in other}
        x, own = _product(x, own, xs[i], labels[i], later | set(outputs))
    x, own = _single(x, own, set(outputs))
    return _arranged(x, own, outputs)
