"""Commands about the session as a whole: its clients, its contexts, and what it knows about op types."""

from __future__ import annotations

from teletape_engine.commands.base import Command, Id
from teletape_engine.records import record


@record(frozen=True, slots=True)
class ClientAttach(Command):
    """Adds a client to the session, and answers its number, its first sequence number and its first free id.

    Without `client` the session chooses the number, which is odd. A caller that cannot wait for the answer names an
    even one, greater than those that were named before: a server does so for each client that joins.
    """

    verb = "client.attach"
    client: int = 0


@record(frozen=True, slots=True)
class ClientDetach(Command):
    """Ends a client: the answer that is kept for it goes, its number is not used again. What it made stays."""

    verb = "client.detach"
    client: int


@record(frozen=True, slots=True)
class ContextSwitch(Command):
    """The commands that follow belong to this context: a thread, an asynchronous task, a request.

    They also belong to a strand: commands of which one relies on those before it, so that a failure skips the rest. In
    a batch whose `on_failure` is `strand` the others go on. Without `strand` it is that of the context.
    """

    verb = "context.switch"
    structural = True
    context: Id
    strand: Id | None = None


@record(frozen=True, slots=True)
class ContextEnd(Command):
    """Ends a context whose thread or task has ended: tapes and accumulators in it stop, its provenance log goes.

    The commands that follow belong to context 0 if it was the current one. Context 0 cannot end. A context that does
    not exist has ended already: sessions also end contexts that nothing uses, if there are very many.
    """

    verb = "context.end"
    structural = True
    context: Id


@record(frozen=True, slots=True)
class Declare(Command):
    """Declares for the session that an op type of TensorFlow has no gradient, or a gradient function of the caller's.

    Exactly one of the two fields is set. Gradients through ops of a `registered` type need `backward.begin`.
    """

    verb = "declare"
    structural = True
    no_gradient: str | None = None
    registered: str | None = None


@record(frozen=True, slots=True)
class Profile(Command):
    """Answers how many seconds each later command of the batch has taken, and each step of the functions that they run.

    `seconds` are those of the commands, `in_steps` how many of these were spent in steps of functions. Each of `steps`
    has the id of its `function` (null: it has none), its number in it (`step`), its `op` or command, its `calls`, and
    the `seconds` that were its own and not those of a function that it calls. Such a batch runs step by step, never as
    a plan.
    """

    verb = "profile"
