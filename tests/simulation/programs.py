"""The clients of a simulated server: each works through the public protocol, and keeps its own account."""

import random
from collections.abc import Callable
from typing import Any, Final, NoReturn

import httpx
import numpy as np

import teletape_wire as wire
from simulation.ledger import FACTOR, MODULUS, Account, Violation
from simulation.network import Network
from simulation.world import Process, World
from teletape.core.errors import ConnectionFailed, SessionEndedError, TeletapeError
from teletape.core.network.http import Connection
from teletape.core.network.options import ConnectOptions
from teletape_engine.commands import Assign, Batch, Call, Command, Fetch, MakeVariable
from teletape_engine.recording.values import Literal

URL: Final = "http://127.0.0.1:8470"
_ONE: Final = np.array(1, np.int64)
#: Codes that a client waits after, and then sends the same again.
_WAITED_FOR: Final = frozenset("recovering shutting_down overloaded busy session_damaged resource_exhausted".split())
#: Codes of what a power cut has taken.
_GONE: Final = frozenset("unknown_id released_id out_of_turn sequence_conflict unknown_session".split())
#: Codes of a session that was lost with its folder.
LOST: Final = frozenset("unknown_session session_ended".split())


class Lost(Exception):
    """Raised when the server says that there is no such session."""


class Plan:
    """What the programs of a simulation share.

    Attributes:
        damaged: Calls when a session is said to be damaged.
        is_final: Whether the work is over, and everything is compared once more.
        is_lost: Whether the folder for data was lost.
    """

    def __init__(self, world: World, network: Network) -> None:
        self.world, self.network = world, network
        self.damaged = 0
        self.is_final = self.is_lost = False
        self.acknowledged = self.repeated = 0


class Program:
    """One client of one session.

    Args:
        plan: What all share.
        name: Its name.
        session: Of its session.
        level: The session's durability.
        operations: How many additions it makes.
    """

    def __init__(self, plan: Plan, name: str, session: str, level: str, operations: int) -> None:
        self.plan, self.world, self.name, self.level = plan, plan.world, name, level
        self.session, self.path = session, f"/v1/sessions/{session}"
        self.operations = operations
        self.rng = random.Random(plan.world.rng.random())
        self.has_worked = self.has_compared = self.is_lost = False
        transport = plan.network.transport(name, lasts=level == "journal-sync")
        self.http = httpx.Client(transport=transport, base_url=URL, trust_env=False)
        self.accounts: list[Account] = []
        self.process = Process(plan.world, name)
        self.process.start(self._run)

    def account(self, what: str) -> Account:
        """Returns a new account."""
        account = Account(f"{self.name}, {what} ({self.level})", is_synced=self.level == "journal-sync")
        self.accounts.append(account)
        return account

    def _run(self) -> None:
        try:
            self.begin()
            for _ in range(self.operations):
                self.operate(self.rng.randrange(1, MODULUS))
                if self.rng.random() < 0.3:
                    self.compare()
                self.world.wait(self.rng.choice([0.0, 0.0, 0.0, 0.02, 0.3, 2.0]))
            self.has_worked = True
            self.world.wait(holds=lambda: self.plan.is_final)
            self.compare()
        except Lost as error:
            if not self.plan.is_lost:
                raise Violation(f"{self.name}: its session is gone: {error}") from error
            self.world.note(f"{self.name} learns that its session is lost")
            self.is_lost = True
        self.has_worked = self.has_compared = True

    def begin(self) -> None:
        """Makes the session and its variables, if they are not there."""

    def operate(self, value: int) -> None:
        """Makes an addition."""

    def compare(self) -> None:
        """Compares the accounts with what is there."""

    def wait_after(self, code: str, text: str) -> None:
        """Waits before the same is sent again, after a code that says so.

        Raises:
            Lost: The session is not there.
        """
        self.plan.repeated += 1
        if code in LOST and (self.plan.is_lost or not self.is_doubtful):
            raise Lost(f"{code}: {text}")
        if code not in _WAITED_FOR:
            self.refuse(code, text)
        if code == "session_damaged":
            self.world.note(f"{self.name}: {text}")
            self.plan.damaged += 1
        self.world.wait(self.rng.uniform(0.2, 1.0))

    @property
    def is_doubtful(self) -> bool:
        """Whether a power cut may have taken something of it."""
        return any(account.is_doubtful for account in self.accounts)

    def refuse(self, code: str, text: str) -> NoReturn:
        """Raises: this answer may not come, unless the session was lost."""
        if self.plan.is_lost:
            raise Lost(f"{code}: {text}")
        raise Violation(f"{self.name} gets {code}: {text}")


class Frames(Program):
    """Sends batches as frames with the SDK's own connection, which sends again what is not answered.

    An addition is one batch: the number of additions, and the fold of all their values.
    """

    def begin(self) -> None:
        """As `Program.begin`."""
        options = ConnectOptions(url=URL, http_client=self.http)
        self.connection = Connection(options)
        self.connection.requests = 1  # it does not begin with the question whether a server is there
        self.count, self.fold = f"count {self.name}", f"fold {self.name}"
        self.own = self.account("additions")
        self._make()

    def _make(self) -> None:
        """Makes the session, a place in it and the variables."""
        zero = np.array(0, np.int64)
        while True:
            try:
                self._create()
                self._batch(MakeVariable(self.count, zero), MakeVariable(self.fold, zero))
                return
            except _GoneError as error:  # a power cut has taken the session, or the place
                if self.plan.is_lost or not self.is_doubtful:
                    self.refuse(error.code, error.text)

    def operate(self, value: int) -> None:
        """As `Program.operate`."""
        id = f"{self.name} {self.client} {self.seq}"
        folded = (f"{id} a", f"{id} b", f"{id} c")
        commands: tuple[Command, ...] = (
            Assign(self.count, _ONE, "add"),
            Call("mul", (self.fold, Literal(FACTOR)), folded[:1]),
            Call("add", (folded[0], np.array(value, np.int64)), folded[1:2]),
            Call("floormod", (folded[1], Literal(MODULUS)), folded[2:]),
            Assign(self.fold, folded[2]),
            Fetch(self.count),
            Fetch(self.fold),
        )
        while True:
            cuts = self.own.cuts
            try:
                state = self._batch(*commands, temporaries=folded)
            except _GoneError as error:
                self._go_on_after(error)
            else:
                self.own.acknowledge(value, self.world.now, cuts, state)
                self.plan.acknowledged += 1
                return

    def compare(self) -> None:
        """As `Program.compare`."""
        while True:
            cuts = self.own.cuts
            try:
                state = self._batch(Fetch(self.count), Fetch(self.fold))
            except _GoneError as error:
                self._go_on_after(error)
            else:
                self.own.find(state, cuts)
                return

    def _go_on_after(self, error: "_GoneError") -> None:
        """Attaches anew, after a power cut has taken the client's last batches, or all of it."""
        while True:
            if not self.own.is_doubtful or self.plan.is_lost:
                self.refuse(error.code, error.text)
            cuts = self.own.cuts
            try:
                self._create()
                state = self._batch(Fetch(self.count), Fetch(self.fold))
            except _GoneError as again:
                if again.code != "unknown_id" or "client" in again.text:
                    error = again
                    continue
                self.own.find((0, 0), cuts)
                self._make()
            else:
                self.own.find(state, cuts)
            return

    def _create(self) -> None:
        """Makes the session, if it is not there, and attaches to it."""
        body = {"id": self.session, "durability": self.level}
        self._repeated(lambda: self.connection.create("/v1/sessions", body))
        place = self._repeated(lambda: self.connection.create(f"{self.path}/attach"))
        self.client, self.seq = place["client"], place["seq"]

    def _batch(self, *commands: Command, temporaries: tuple[str, ...] = ()) -> Any:
        nonce = self.rng.randbytes(16)
        frame = wire.encode_batch(Batch(commands, (), self.client, self.seq, nonce, temporaries))
        buffers = [bytes(buffer) for buffer in frame.buffers]
        response = self._repeated(
            lambda: self.connection.frame(f"{self.path}/batch", buffers, sum(map(len, buffers)), wire.FRAME_TYPE)
        )
        self.seq += 1
        answer, _ = wire.decode_answer(bytes(response.body))
        if answer.failure is not None:
            if answer.failure.code in _GONE:
                raise _GoneError(answer.failure.code, answer.failure.message)
            self.refuse(answer.failure.code, answer.failure.message)
        numbers = [int(np.asarray(result.array)) for result in answer.results if hasattr(result, "array")]
        return tuple(numbers)

    def _repeated(self, send: Callable[[], Any]) -> Any:
        """Does the same again until it is answered."""
        while True:
            try:
                return send()
            except ConnectionFailed as error:
                self.wait_after("overloaded", str(error))
            except SessionEndedError as error:
                if self.is_doubtful and not self.plan.is_lost:
                    raise _GoneError("unknown_session", str(error)) from error
                raise Lost(str(error)) from error
            except TeletapeError as error:
                code = getattr(error, "code", "") or type(error).__name__
                if code in _GONE:
                    raise _GoneError(code, str(error)) from error
                self.wait_after(code, str(error))


class _GoneError(Exception):
    """Raised for an answer that says that something is not there any more."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text


class Rest(Program):
    """Sends requests in JSON, each under a key of its own until it is answered.

    It adds to a variable, and makes tensors: as many are there in the end as creations were answered.
    """

    def begin(self) -> None:
        """As `Program.begin`."""
        self.added, self.tensors = self.account("additions"), self.account("tensors")
        self._make()

    def _make(self) -> None:
        while True:
            self._send("POST", "/v1/sessions", {"id": self.session, "durability": self.level})
            body = {"id": f"n{self.name}", "value": {"dtype": "int64", "data": 0}}
            if self._send("POST", f"{self.path}/variables", body) is not None:
                return

    def operate(self, value: int) -> None:
        """As `Program.operate`."""
        while True:
            cuts = self.added.cuts
            if value % 4:
                account = self.added
                body = {"mode": "add", "value": 1}
                answer = self._send("PUT", f"{self.path}/variables/n{self.name}", body)
            else:
                account = self.tensors
                answer = self._send("POST", f"{self.path}/tensors", {"value": [1.0, 2.0]})
            if answer is not None:
                account.acknowledge(value, self.world.now, cuts)
                self.plan.acknowledged += 1
                return
            self._go_on(cuts)

    def _go_on(self, cuts: int) -> None:
        """Begins anew, after a power cut has taken the variable; newer tensors may be there without it."""
        tensors = self._count_tensors()
        self.added.find((0, None), cuts)
        self.tensors.find((tensors or 0, None), cuts)
        self._make()

    def _count_tensors(self) -> int | None:
        """Returns how many tensors it has; None: there is no session."""
        answer = self._send("GET", f"{self.path}/tensors?limit=1000")
        return None if answer is None else sum(tensor["shape"] == [2] for tensor in answer["tensors"])

    def compare(self) -> None:
        """As `Program.compare`."""
        while True:
            cuts = self.added.cuts
            variable = self._send("GET", f"{self.path}/variables/n{self.name}")
            tensors = None if variable is None else self._count_tensors()
            if variable is not None and tensors is not None:
                self.added.find((variable["value"]["data"], None), cuts)
                self.tensors.find((tensors, None), cuts)
                return
            self._go_on(cuts)

    def _send(self, method: str, path: str, body: Any = None) -> Any:
        """Sends a request until it is answered; returns None if what it is for is not there, after a power cut."""
        headers = {} if method == "GET" else {"Idempotency-Key": self.rng.randbytes(8).hex()}
        while True:
            try:
                response = self.http.request(method, path, json=body, headers=headers, timeout=5.0)
            except httpx.TransportError as error:
                self.wait_after("overloaded", str(error))
                continue
            if response.status_code == 202:
                self.wait_after("busy", "it runs")
                continue
            if response.is_success:
                return response.json()
            problem = response.json()
            if problem["code"] in ("unknown_id", "unknown_session") and self.is_doubtful and not self.plan.is_lost:
                return None
            self.wait_after(problem["code"], problem["detail"])


class Reader(Program):
    """Reads what another client adds: it never sees less than before, nor than was acknowledged before it read."""

    def __init__(self, plan: Plan, name: str, of: Rest, operations: int) -> None:
        self.of = of
        super().__init__(plan, name, of.session, of.level, operations)

    def operate(self, value: int) -> None:
        """Reads once."""
        if not self.of.accounts:
            return
        account = self.of.accounts[0]
        least, cuts = max(account.least, account.seen), account.cuts
        try:
            response = self.http.get(f"{self.path}/variables/n{self.of.name}", timeout=5.0)
        except httpx.TransportError:
            return
        if response.is_success and account.cuts == cuts:
            account.see((response.json()["value"]["data"], None), may_be_more=True, least=least)
