"""What the members of a team do on a server, each with a key of its own, and what a stranger does (see team.py)."""

import asyncio
import contextlib
import random
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

from callers import Caller, UnsettledError

WEIGHTS = (0.5, 1.0, 2.0, 3.0, 4.0)  # of keys, in turn
ROOT = "root-key-0123456789"
REFUSED_WITHIN = 1.0  # seconds after which a revoked key may not be accepted


class Member:
    """A key's owner: its number is in all that it computes.

    Attributes:
        key: That its callers use now; others replace it.
        stable: A key that stays.
    """

    def __init__(self, number: int) -> None:
        self.number, self.name, self.group = number, f"k{number}", f"lab{number // len(WEIGHTS)}"
        self.weight = WEIGHTS[number % len(WEIGHTS)]
        self.address = f"127.0.1.{number + 1}"
        self.mine = 1000.0 * (number + 1)
        self.key = self.stable = self.id = ""


class Team:
    """What all parts of the run know.

    Attributes:
        counts: Of operations.
        wrong: What may not be, by kind.
    """

    def __init__(self, port: int, members: int, seed: int) -> None:
        self.port, self.seed = port, seed
        self.members = [Member(number) for number in range(members)]
        self.counts: Counter[str] = Counter()
        self.wrong: Counter[str] = Counter()
        self.end = 0.0
        self.contest: frozenset[str] = frozenset()  # names of members who compute without a pause now
        self.refusals: list[float] = []  # seconds until a revoked key was refused
        self.root = self.caller(lambda: ROOT, "127.0.0.2")

    def caller(self, key: Callable[[], str], address: str) -> Caller:
        """Returns a connection."""
        return Caller(self.port, key, address, self.counts)

    def of(self, member: Member, *, stable: bool = False) -> Caller:
        """Returns a connection of a member."""
        return self.caller(lambda: member.stable if stable else member.key, member.address)

    def note(self, kind: str, text: str) -> None:
        """Counts what may not be, and writes it down."""
        self.wrong[kind] += 1
        print(f"team: {time.strftime('%H:%M:%S')} {kind}: {text[:1500]}", file=sys.stderr, flush=True)

    def compare(self, what: str, expected: Any, actual: Any, where: str) -> None:
        """Counts a value, and whether it is the expected one."""
        self.counts[what] += 1
        if actual != expected:
            self.note("wrong", f"{what} of {where}: {actual}, expected {expected}")

    @property
    def goes_on(self) -> bool:
        """Whether it is not the end yet."""
        return time.time() < self.end

    async def safely(self, part: Callable[[], Coroutine[Any, Any, None]], pause: Callable[[], float]) -> None:
        """Repeats a part of the run with pauses until the end; what it raises is noted."""
        while self.goes_on:
            try:
                await part()
            except UnsettledError as error:
                self.note(f"problem {error.code}", str(error))
            except ConnectionError:
                await asyncio.sleep(0.5)
            except Exception as error:
                self.note("error", f"{type(error).__name__}: {error}")
            await asyncio.sleep(min(pause(), max(0.0, self.end - time.time())))


class Work:
    """A session of a member, and what it has to contain."""

    def __init__(self, team: Team, member: Member, number: int) -> None:
        self._team, self._member, self._number, self._generation = team, member, number, 0
        self._draw = random.Random(f"{team.seed} {member.number} {number}")
        self._caller = team.of(member)
        self.session, self.expected = "", 0

    async def begin(self) -> None:
        """Creates the session; every second one has a name that other members use too."""
        mark = f"{self._member.name}-" if self._number % 2 else ""
        session = f"{mark}s{self._number}-{self._generation}"
        self._generation += 1
        await self._caller.settled("POST", "/sessions", {"id": session, "durability": "journal"})
        self.expected = 1_000_000_000 * (self._member.number + 1) + 1_000_000 * self._number
        body: Any = {"id": "n", "value": {"dtype": "int64", "data": self.expected}}
        await self._caller.settled("POST", f"/sessions/{session}/variables", body)
        body = {"id": "f", "dtype": "float64", "text": f"y = sum(x * x * x) + {self._member.mine}"}
        await self._caller.settled("POST", f"/sessions/{session}/functions", body)
        self.session = session
        self._team.counts["sessions"] += 1

    async def step(self) -> None:
        """Does something in the session, and looks at what it answers."""
        if not self.session:
            await self.begin()
        kinds = {self._add: 8, self._replace: 2, self._differentiate: 5, self._call: 2, self._park: 0.6, self._end: 0.3}
        try:
            await self._draw.choices([*kinds], [*kinds.values()])[0]()
        except UnsettledError as error:
            if error.code in ("unknown_session", "session_ended", "session_damaged"):
                self._team.note("lost", f"{self._member.name}, {self.session}: {error}")
                self.session = ""
                return
            self.session = ""  # what it contains is not known
            raise

    async def _add(self) -> None:
        path = f"/sessions/{self.session}/variables/n"
        for _ in range(self._draw.randint(1, 4)):
            amount, again = self._draw.randint(1, 9), {"Idempotency-Key": uuid.uuid4().hex}
            self.expected += amount
            await self._caller.settled("PUT", path, {"mode": "add", "value": amount}, again)
            self._team.counts["additions"] += 1
            if self._draw.random() < 0.1:
                await self._caller.settled("PUT", path, {"mode": "add", "value": amount}, again)
        await self.check()

    async def check(self) -> None:
        """Compares the variable with the count."""
        answer = await self._caller.settled("GET", f"/sessions/{self.session}/variables/n")
        actual = answer.body["value"]["data"]
        self._team.counts["comparisons"] += 1
        if actual != self.expected:
            place = f"{self._member.name}, {self.session}: {actual}, expected {self.expected}"
            foreign = actual // 1_000_000 != self.expected // 1_000_000
            self._team.note("cross-key" if foreign else "lost" if actual < self.expected else "doubled", place)
            self.session = ""

    async def _replace(self) -> None:
        path = f"/sessions/{self.session}/variables/n"
        tag = (await self._caller.settled("GET", path)).headers["etag"]
        self.expected += 1
        body = {"value": {"dtype": "int64", "data": self.expected}}
        await self._caller.settled("PUT", path, body, {"If-Match": tag})
        answer = await self._caller.settled("PUT", path, body, {"If-Match": tag}, expected=412)
        self._team.compare("conditions", 412, answer.status, self.session)

    async def _differentiate(self) -> None:
        x = [float(self._draw.randint(-9, 9)) for _ in range(5)]
        path = f"/sessions/{self.session}/functions/f/value_and_gradient"
        body = (await self._caller.settled("POST", path, {"inputs": [x]})).body
        gradient = body["derivatives"][0]["value"]["data"]
        expected = (sum(item**3 for item in x) + self._member.mine, [3 * item * item for item in x])
        self._team.compare("gradients", expected, (body["values"]["y"]["data"], gradient), self.session)

    async def _call(self) -> None:
        x = [float(self._draw.randint(-9, 9)) for _ in range(3)]
        path = f"/published/line-{self._member.name}/call"
        body = (await self._caller.settled("POST", path, {"inputs": {"x": x}})).body
        value = body["values"]["y"]["data"]
        self._team.compare("calls", sum(item * item for item in x) + self._member.mine, value, self._member.name)

    async def _park(self) -> None:
        await self._caller.settled("POST", f"/sessions/{self.session}/park", {})
        self._team.counts["parks"] += 1
        await self.check()

    async def _end(self) -> None:
        await self.check()
        session, self.session = self.session, ""
        if session:
            await self._caller.settled("DELETE", f"/sessions/{session}", expected=410)
            answer = await self._caller.settled("GET", f"/sessions/{session}", expected=410)
            self._team.compare("ends", 410, answer.status, session)


# ------------------------------------------------------------------------------------------------------ keys, strangers
async def change_key(team: Team, draw: random.Random) -> None:
    """Gives a member another key, and ends the former one, which may not be used from then on."""
    member = draw.choice(team.members)
    former, id = member.key, member.id
    former_caller = team.caller(lambda: former, member.address)
    rotates = draw.random() < 0.5
    if not rotates:
        new = (await team.root.settled("POST", "/admin/keys", key_of(member))).body
        await _accepted(team, member, new)
        await asyncio.sleep(draw.uniform(0.0, 2.0))
    for _ in range(3):  # the process of the session serves the connection then
        await former_caller.once("GET", "/sessions/sdk/variables")
    if rotates:
        new = (await team.root.settled("POST", f"/admin/keys/{id}/rotate", {"overlap": 0})).body
        ended = time.monotonic()
        member.key, member.id = new["key"], new["id"]
    else:
        await team.root.settled("DELETE", f"/admin/keys/{id}")
        ended = time.monotonic()
    if rotates:
        await _accepted(team, member, new)
    for caller in (former_caller, team.caller(lambda: former, member.address)):
        while True:
            began = time.monotonic()
            try:
                answer = await caller.once("GET", "/sessions/sdk/variables")
            except ConnectionError:
                await asyncio.sleep(0.02)
                continue
            if answer.status in (401, 429):
                break
            if began - ended > REFUSED_WITHIN:
                team.note("late refusal", f"{member.name}: {answer.status} {began - ended:.2f} s after its end")
            if began - ended > 10:
                break
            await asyncio.sleep(0.02)
        team.refusals.append(began - ended)
        caller.close()
    team.counts["keys changed"] += 1


async def _accepted(team: Team, member: Member, new: dict[str, Any]) -> None:
    """Checks that a new key is accepted at once; the member uses it from then on."""
    caller = team.caller(lambda: new["key"], member.address)
    answer = await caller.settled("GET", "/me", expected=401)
    caller.close()
    team.compare("new keys", (200, member.name), (answer.status, answer.body.get("owner")), member.name)
    member.key, member.id = new["key"], new["id"]


def key_of(member: Member) -> dict[str, Any]:
    """The body that creates a key of a member."""
    return {"owner": member.name, "group": member.group, "name": "soak"}


async def reach(team: Team, draw: random.Random) -> None:
    """Tries to reach the session and the key of another member."""
    member, other = draw.sample(team.members, 2)
    caller, session = team.of(member), f"/sessions/{other.name}-s1-0"
    tries: list[tuple[str, str, Any, int]] = [
        ("GET", session, None, 404),
        ("GET", f"{session}/variables/n", None, 404),
        ("PUT", f"{session}/variables/n", {"value": 0}, 404),
        ("POST", f"{session}/park", {}, 404),
        ("DELETE", session, None, 404),
        ("GET", f"/sessions/{other.name}:s0-0", None, 404),
        ("POST", f"/published/line-{other.name}/call", {"inputs": {"x": [1.0]}}, 404),
        ("DELETE", f"/admin/keys/{other.id}", None, 404),
        ("GET", "/admin/audit", None, 403),
        ("GET", "/admin/limits", None, 403),
    ]
    method, path, body, expected = draw.choice(tries)
    answer = await caller.settled(method, path, body, expected=expected)
    team.compare("tries to reach others", expected, answer.status, f"{method} {path}")
    if answer.status != expected:
        team.note("cross-key", f"{member.name}: {method} {path}: {answer.status} {answer.body}")
    listed = (await caller.settled("GET", "/sessions")).body["sessions"]
    owners = {item["owner"] for item in listed} | {member.name}
    if owners != {member.name}:
        team.note("cross-key", f"{member.name} sees sessions of {owners}")
    caller.close()


async def be_a_stranger(team: Team, draw: random.Random) -> None:
    """Sends wrong keys, and requests that stop halfway."""
    halves = []
    for _ in range(30):
        with contextlib.suppress(OSError):
            halves.append(await asyncio.open_connection("127.0.0.1", team.port, local_addr=("127.0.0.9", 0)))
    for _, writer in halves:
        writer.write(b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\nx-filler: ")
    caller = team.caller(lambda: f"tt_{draw.choice(team.members).id}_{uuid.uuid4().hex}", "127.0.0.9")
    for _ in range(25):
        answer = await caller.once("GET", "/sessions")
        team.counts["wrong keys"] += 1
        if answer.status not in (401, 429):
            team.note("stranger", f"a wrong key gets {answer.status} {answer.body}")
    caller.close()
    await asyncio.sleep(draw.uniform(5, 40))
    for _, writer in halves:
        writer.close()
