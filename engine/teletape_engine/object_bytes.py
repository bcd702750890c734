"""Bytes of the Python objects that a session keeps besides its arrays' elements: what each thing is counted with.

Each is what one more of it took on CPython 3.11 (tracemalloc, thousands of them in a session), rounded up to a multiple
of 32; `tests/engine/recording/test_object_bytes.py` measures them again. Text is counted by `sys.getsizeof` in
addition.
"""

from __future__ import annotations

from typing import Final

ARRAY: Final = 192  #: A value and its array object, without the elements: a NumPy array alone takes 112.
NAMED: Final = 224  #: An id and its place in the tables.
VARIABLE: Final = 288  #: A variable, without its value.
TAPE: Final = 1312  #: A tape that has recorded nothing.
TURN: Final = 160  #: A tape's opening, pause or reset.
NODE: Final = 320  #: A call on a tape, without what it keeps.
CONSUMED_NODE: Final = 192  #: What stays of it after a tape that is not persistent has answered.
WATCHED: Final = 192  #: A value that a tape watches, or that an accumulator follows.
CONTEXT: Final = 1760  #: A context in which nothing has run.
RECORD: Final = 192  #: A record of a provenance log.
INDEXED: Final = 224  #: A record's place in the index of its log, if something was explained by it.
FUNCTION: Final = 1504  #: A function without steps.
STEP: Final = 832  #: A step of a function.
SIGNATURE: Final = 512  #: What a function remembers of calls with inputs of certain specs, without its edges.
INSTRUCTION: Final = 896  #: An instruction of a function's plan.
CLIENT: Final = 224  #: A client without an answer.
RESULT: Final = 192  #: A result of a kept answer, without its arrays and facts.

OP: Final = ARRAY + NAMED + RECORD  #: What an op may leave if no tape is active.
#: Bytes of objects that a session has free: what every small session keeps.
FREE: Final = 1 << 20
