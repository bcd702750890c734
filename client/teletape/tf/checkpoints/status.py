"""The result of `Checkpoint.restore`: assertions that the checkpoint and the program's objects fit."""

from __future__ import annotations

import logging
from typing import Any, Final, Self

from teletape.core.variables.trackable import children
from teletape.tf.checkpoints.restoring import Restoration

_LISTED: Final = 10
_logger = logging.getLogger("teletape")


class CheckpointLoadStatus:
    """The status of a restored checkpoint. Without assertions, mismatches are ignored."""

    def __init__(self, restoration: Restoration) -> None:
        self._restoration = restoration

    def assert_consumed(self) -> Self:
        """Checks that each saved value was restored and each variable of the program got one; AssertionError if not."""
        self._restoration.match_again()
        missing = self._restoration.unmatched_values()
        if missing:
            raise AssertionError(f"Unresolved object in checkpoint {missing[0]}{_and_others(missing)}")
        return self._assert_objects_matched()

    def assert_existing_objects_matched(self) -> Self:
        """Checks that each variable of the program got a value; AssertionError if not."""
        self._restoration.match_again()
        return self._assert_objects_matched()

    def assert_nontrivial_match(self) -> Self:
        """Checks that something but the root was restored; AssertionError if not."""
        if len(self._restoration.objects) < 2 and children(self._restoration.root):
            raise AssertionError(
                f"Nothing except the root object matched a checkpointed value. The checkpoint "
                f"{self._restoration.prefix} has {', '.join(self._restoration.graph.nodes[0].edges) or 'nothing'}; "
                f"the program {', '.join(children(self._restoration.root))}."
            )
        return self

    def expect_partial(self) -> Self:
        """Accepts that some values are not restored."""
        return self

    def initialize_or_restore(self, session: Any = None) -> None:
        """Does nothing: values are restored when `restore` returns."""

    run_restore_ops = initialize_or_restore

    def _assert_objects_matched(self) -> Self:
        unmatched = self._restoration.unmatched_objects()
        if unmatched:
            shown = unmatched[:_LISTED]
            raise AssertionError(
                f"Found {len(unmatched)} Python objects that were not bound to checkpointed values, likely due to "
                f"changes in the Python program. Showing {len(shown)} of {len(unmatched)} unmatched objects: {shown}"
            )
        return self


class InitializationOnlyStatus:
    """The result of `restore(None)`: there is no checkpoint, and the variables keep their initial values."""

    def assert_consumed(self) -> Self:
        """Raises AssertionError: nothing was restored."""
        raise AssertionError("No checkpoint specified (save_path=None); nothing is being restored.")

    assert_existing_objects_matched = assert_nontrivial_match = assert_consumed

    def expect_partial(self) -> Self:
        """Accepts that nothing is restored."""
        return self

    def initialize_or_restore(self, session: Any = None) -> None:
        """Does nothing: a variable has its value as soon as it is made."""

    run_restore_ops = initialize_or_restore


def _and_others(names: list[str]) -> str:
    others = names[1:_LISTED]
    return f", and {len(names) - 1} others: {', '.join(others)}" if others else ""
