"""The table of `session.pending()`: the commands that wait to be sent, by op and by line, and the effect of a read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, overload

from teletape.core.profiling.tables import html_table, text_table

_HEAD = ("count", "command", "bytes", "recorded at")
_NUMBERS = (0, 2)  #: Columns that are aligned at their right ends.


class Waiting(NamedTuple):
    """Commands of one kind that one line has recorded, or values that a read would fetch.

    Attributes:
        number: The number of commands or values.
        command: The op, or the command's own name.
        nbytes: Bytes of the tensors in the commands, or of the values that a read would fetch.
        where: The line of the program; for a value the reason why it comes.
    """

    number: int
    command: str
    nbytes: int
    where: str


class Pending(Sequence[Waiting]):
    """The waiting commands, in the order of the first of each kind; it prints as a table.

    Attributes:
        commands: The number of commands.
        nbytes: The bytes of their tensors.
        releases: The number of tensors and variables that the program has dropped, and the server still holds.
        computes: Whether an earlier batch is under way.
        reads: The values that a read would fetch.
    """

    def __init__(
        self,
        waiting: Iterable[tuple[str, str, int]] = (),
        *,
        releases: int = 0,
        computes: bool = False,
        reads: Sequence[Waiting] = (),
    ) -> None:
        counts: dict[tuple[str, str], tuple[int, int]] = {}
        for command, where, nbytes in waiting:
            count, total = counts.get((command, where), (0, 0))
            counts[command, where] = count + 1, total + nbytes
        self._lines = [Waiting(count, name, total, where) for (name, where), (count, total) in counts.items()]
        self.commands = sum(line.number for line in self._lines)
        self.nbytes = sum(line.nbytes for line in self._lines)
        self.releases, self.computes, self.reads = releases, computes, tuple(reads)

    @overload
    def __getitem__(self, index: int) -> Waiting: ...

    @overload
    def __getitem__(self, index: slice) -> list[Waiting]: ...

    def __getitem__(self, index: int | slice) -> Waiting | list[Waiting]:
        return self._lines[index]

    def __len__(self) -> int:
        return len(self._lines)

    def _head(self) -> str:
        if not self.commands:
            text = "nothing waits to be sent"
        else:
            commands = _counted(self.commands, "command waits", "commands wait")
            text = f"{commands} to be sent, with {self.nbytes:,} bytes of tensors: a read sends all"
        dropped = _counted(self.releases, "dropped value is", "dropped values are")
        more = [f"{dropped} released then"] if self.releases else []
        more += ["an earlier batch is under way, which it waits for"] if self.computes else []
        return "; ".join([text, *more])

    def _rows(self) -> list[tuple[str, ...]]:
        lines = [*self._lines, *self.reads]
        return [_HEAD, *((f"{line.number:,}", line.command, f"{line.nbytes:,}", line.where) for line in lines)]

    def __repr__(self) -> str:
        rows = self._rows()
        return "\n".join([self._head(), *(text_table(rows, _NUMBERS) if len(rows) > 1 else [])])

    def _repr_html_(self) -> str:
        rows = self._rows()
        return f"<p>{self._head()}</p>" + (html_table(rows) if len(rows) > 1 else "")


def _counted(count: int, singular: str, plural: str) -> str:
    return f"{count:,} {singular if count == 1 else plural}"
