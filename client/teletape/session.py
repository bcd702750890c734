"""Where the SDK's values live: the seam between the TensorFlow-shaped surface and the engine, and its in-process side.

A session gives each thread a recorder: the engine's own (`Executor`) when it is in this process, one without arrays
(`teletape.remote.Follower`) when it is on a server. Everything above is the same for both.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self, TypeAlias

from teletape.convert import HostArray
from teletape_engine.backward import declare_no_gradient
from teletape_engine.executor import Executor, Value
from teletape_engine.gradient import gradient
from teletape_engine.graph import Literal, Tape, Variable, new_uid
from teletape_engine.op import CATALOGUE
from teletape_engine.session import Session as EngineSession
from teletape_engine.spec import Spec
from teletape_engine.tape import Recorder, SlicesValue

Recorded: TypeAlias = Any  # engine Value, remote Handle


class Session(ABC):
    """Values, variables and tapes of one program.

    Attributes:
        local: Whether it is in this process, where every op runs at once.
        closed: Why it can no longer be used, or None.
    """

    local: bool
    closed: str | None = None

    def __init__(self) -> None:
        self.no_gradient: set[str] = set()

    @abstractmethod
    def recorder(self) -> Recorder:
        """The calling thread's recorder: each thread is a context of its own."""

    @abstractmethod
    def constant(self, array: HostArray) -> Recorded:
        """A host array, given up by the caller, as a value."""

    @abstractmethod
    def variable(self, value: Recorded, *, trainable: bool, name: str) -> Variable:
        """A variable that holds `value`."""

    @abstractmethod
    def assign(self, variable: Variable, value: Recorded | Literal, mode: str) -> None:
        """Its next version; `mode` is set, add or sub. Shapes and dtypes are checked by the caller."""

    @abstractmethod
    def fetch(self, value: Recorded) -> HostArray:
        """The numbers, not to be written into."""

    def part(self, slices: SlicesValue, which: str) -> Recorded:
        """The `values` or `indices` of slices that a tape answered with."""
        return slices.values if which == "values" else slices.indices

    @abstractmethod
    def open_tape(self, tape: Tape) -> None:
        """Makes a new tape active in this thread."""

    @abstractmethod
    def tape_event(self, event: str, tape: Tape, values: Sequence[Any] = ()) -> None:
        """`watch`, `pause`, `resume` or `reset`."""

    def gradient(
        self, tape: Tape, targets: Sequence[Any], sources: Sequence[Any], seeds: Sequence[Any] | None, zeros: bool
    ) -> list[Any]:
        """See `teletape_engine.gradient`."""
        declared = frozenset(self.no_gradient)
        return gradient(self.recorder(), tape, targets, sources, seeds=seeds, zeros=zeros, no_gradient=declared)

    def declare_no_gradient(self, op_type: str) -> None:
        """Ops of that type have no gradient from now on, for every tape asked from now on."""
        declare_no_gradient(self.no_gradient, op_type, CATALOGUE)

    @property
    def requests(self) -> int:
        """Answers had from a server so far."""
        return 0

    def summary(self) -> str:
        """What this session has asked of a server, and which lines read values."""
        return "a session inside this process: no requests"

    def sync(self) -> None:  # noqa: B027  # inside this process there is nothing to wait for
        """Returns when everything recorded so far has happened; raises what failed meanwhile."""

    def close(self) -> None:  # noqa: B027  # nor anything to end
        """Ends the session."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class LocalSession(Session):
    """A session inside this process: the engine's own recorders and arrays."""

    local = True

    def __init__(self, device: str | None = None) -> None:
        super().__init__()
        self._engine = EngineSession(device or "cpu")
        self._thread = threading.local()

    def recorder(self) -> Recorder:
        try:
            return self._thread.recorder  # type: ignore[no-any-return]  # thread locals are untyped
        except AttributeError:
            self._thread.recorder = recorder = Executor(self._engine.backend, self._engine.memory)
            return recorder

    def constant(self, array: HostArray) -> Value:
        if array.dtype == object:  # strings are no arrays of the engine; they only pass through
            return Value(array, Spec.of(array.shape, array.dtype), new_uid())
        return self._engine.context(0).constant(array)

    def variable(self, value: Recorded, *, trainable: bool, name: str) -> Variable:
        return Variable(value.alias(new_uid()), trainable=trainable, name=name)

    def assign(self, variable: Variable, value: Recorded | Literal, mode: str) -> None:
        recorder = self._engine.context(0)
        if mode == "set":
            if isinstance(value, Literal):
                value = recorder.number(value, variable.spec.dtype)
            variable.assign(value.alias(new_uid()))
        else:
            bound = CATALOGUE[mode].call((variable.spec, value.spec))
            variable.assign(recorder.run(bound, (variable.value, value)))

    def fetch(self, value: Recorded) -> HostArray:
        if value.spec.dtype == object:
            return value.array  # type: ignore[no-any-return]  # strings stay on the host
        return self._engine.backend.get(value.array)

    def open_tape(self, tape: Tape) -> None:
        self.recorder().open(tape)

    def tape_event(self, event: str, tape: Tape, values: Sequence[Any] = ()) -> None:
        recorder = self.recorder()
        if event == "watch":
            recorder.watch(tape, values)
        else:
            {"pause": recorder.pause, "resume": recorder.open, "reset": recorder.reset}[event](tape)


_current: Session | None = None
_lock = threading.Lock()


def current() -> Session:
    """The program's session; the first use makes it from the environment: TELETAPE_URL, or this process."""
    session = _current
    return session if session is not None else _first()


def _first() -> Session:
    with _lock:
        if _current is None:
            url = os.environ.get("TELETAPE_URL")
            if url:
                connect(url)
            else:
                use(LocalSession(os.environ.get("TELETAPE_DEVICE")))
    assert _current is not None
    return _current


def use(session: Session) -> Session:
    """Makes `session` the program's."""
    global _current
    _current = session
    return session


def connect(
    url: str | None = None,
    api_key: str | None = None,
    device: str | None = None,
    lazy: bool | None = None,
    local: bool = False,
) -> Session:
    """Chooses where the program's tensors live from now on. Tensors made before stay with their session.

    Args:
        url: A server's address, as `https://gpu-box:8470`. None: TELETAPE_URL, and without it this process.
        api_key: The server's key for you. None: TELETAPE_API_KEY.
        device: cpu, gpu or gpu:N; None: the server's default. Within this process: cpu or gpu.
        lazy: Whether commands wait until a value is read. None: yes, unless TELETAPE_LAZY is 0. Within this process
            every op runs at once.
        local: Within this process, whatever TELETAPE_URL says.

    Returns:
        The session, which `with` closes.

    Raises:
        teletape.errors.ConnectionFailed: No server answers there.
        teletape.errors.AuthenticationError: The key is missing or wrong.
    """
    url = None if local else url or os.environ.get("TELETAPE_URL")
    if not url:
        return use(LocalSession(device))
    from teletape.remote import RemoteSession

    if lazy is None:
        lazy = os.environ.get("TELETAPE_LAZY", "1") not in ("0", "false", "no")
    return use(RemoteSession(url, api_key or os.environ.get("TELETAPE_API_KEY"), device=device, lazy=lazy))
