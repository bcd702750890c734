"""A team on one server: 20 keys, 200 sessions, processes that are killed, keys that change and flood.

`make soak ARGS='--team --minutes 60'`. Every session adds to a variable and compares it with its own count, and asks
for gradients and published functions whose values it knows. All that a key computes has a number of the key's own in
it, and half of the names of sessions are the same for all keys, so a value of another one is seen. A part of the time
one key floods. In turn with that four keys compute without a pause for a minute, and their parts of the CPU are
compared with their weights. A key that was revoked has to be refused within a second; a stranger tries wrong keys and
sends half requests; each key tries to reach the sessions of others. The server is killed too.
"""

import asyncio
import contextlib
import datetime
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import observing
from callers import Answer, Caller, UnsettledError
from members import ROOT, WEIGHTS, Member, Team, Work, be_a_stranger, change_key, key_of, reach

MOST_DEVIATION = 0.10  # of a share of the CPU from the part that the weight gives, relative to that
RIVALS, RIVAL_SESSIONS = 4, 4  # that compute without a pause in a contest, and sessions of each
SIDE, LAYERS = 500, 40  # of the matrix with which they compute, and products of it in a call: some tenths of a second
FLOOD_SECONDS, FLOOD_SESSIONS = 25.0, 8
SHORT_SECONDS = 60.0  # of a run, in which there is no time to compare shares
UPLOAD = 2 << 20  # bytes
GROUP_OF_TERMINAL = Path("/proc/self/autogroup")  # in which the kernel puts the processes of a session of terminals
BYTES = {"Tensor-Dtype": "uint8", "Tensor-Shape": str(UPLOAD)}


# ----------------------------------------------------------------------------------------------------- floods, contests
async def prepare(caller: Caller, session: str, member: Member) -> None:
    """Makes a session whose function computes for long."""
    raw = {"Tensor-Dtype": "float32", "Tensor-Shape": f"{SIDE},{SIDE}"}
    matrix = np.full((SIDE, SIDE), 1 / SIDE, np.float32).tobytes()
    await caller.settled("POST", "/sessions", {"id": session, "durability": "journal"})
    await caller.settled("POST", f"/sessions/{session}/tensors?id=matrix", matrix, raw)
    lines = ["y0 = x", *(f"y{layer + 1} = tanh(y{layer} @ x)" for layer in range(LAYERS))]
    body = {
        "id": "heavy",
        "text": "\n".join([*lines, f"result = sum(y{LAYERS}) + {member.mine}"]),
        "outputs": ["result"],
    }
    await caller.settled("POST", f"/sessions/{session}/functions", body)
    await caller.settled("POST", f"/sessions/{session}/variables?id=bytes", bytes(UPLOAD), BYTES)


def check_heavy(team: Team, member: Member, answer: Answer) -> None:
    """Looks at what such a call answers."""
    item = 1 / SIDE
    for _ in range(LAYERS):
        item = math.tanh(item)
    value, expected = answer.body["values"]["result"]["data"], item * SIDE * SIDE + member.mine
    team.compare("heavy calls", True, abs(value - expected) < 0.5, f"{member.name}: {value} for {expected}")


async def compute(team: Team, member: Member, session: str, until: float) -> None:
    """Computes without a pause."""
    caller = team.of(member, stable=True)
    while time.time() < until:
        body = {"inputs": ["matrix"], "scratch": True}
        check_heavy(team, member, await caller.settled("POST", f"/sessions/{session}/functions/heavy/call", body))
    caller.close()


def kernel_seconds(pid: int) -> dict[int, tuple[str, float]]:
    """The key of each process of a session, and its CPU seconds, as the kernel has them."""
    return {worker: (owner_of(worker), observing.cpu_seconds(worker)) for worker in observing.workers(pid)}


def owner_of(worker: int) -> str:
    """The key whose control group a process is in; empty: none."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{worker}/cgroup").read_text().splitlines():
            _, _, name = line.rpartition("/key-")
            if name and name != line:
                return urllib.parse.unquote(name)
    return ""


def sessions_of(pid: int) -> list[int]:
    """The processes of keys' sessions, whose names have no spaces, and the one that waits for a session."""
    return [worker for worker in observing.workers(pid) if " " not in owner_of(worker)]


async def contest(team: Team, pid: int, draw: random.Random) -> dict[str, Any]:
    """Lets some keys compute without a pause for a minute of the clock; returns what each got, and its right."""
    rivals = []
    for weight in draw.sample(WEIGHTS, RIVALS):
        rivals.append(draw.choice([member for member in team.members if member.weight == weight]))
    team.contest = frozenset(member.name for member in rivals)
    callers = {member: team.of(member, stable=True) for member in rivals}
    for member, caller in callers.items():
        for number in range(RIVAL_SESSIONS):
            await prepare(caller, f"rival-{number}", member)
    began = 60.0 * (time.time() // 60 + 1)
    if began - time.time() < 3:
        await asyncio.sleep(began - time.time() + 0.1)
        began += 60
    await asyncio.sleep(began - 3 - time.time())
    sessions = [(member, f"rival-{number}") for member in rivals for number in range(RIVAL_SESSIONS)]
    computing = asyncio.gather(*[compute(team, *session, began + 62) for session in 2 * sessions])
    await asyncio.sleep(began - time.time())
    before, at = kernel_seconds(pid), time.time()
    await asyncio.sleep(began + 60 - time.time())
    after, seconds = kernel_seconds(pid), time.time() - at
    await computing
    line = (await team.root.settled("GET", "/usage?timeline=minutes")).body["timeline"]
    place = round((began - datetime.datetime.fromisoformat(line["began_at"]).timestamp()) / 60)
    counted = {account["account"]: account["seconds"][place] for account in line["accounts"]}
    for caller in callers.values():
        for number in range(RIVAL_SESSIONS):
            await caller.settled("DELETE", f"/sessions/rival-{number}", expected=410)
        caller.close()
    team.contest = frozenset()
    names = [member.name for member in rivals]
    kernel: Counter[str] = Counter()
    for worker, (owner, now) in after.items():
        kernel[owner] += now - before.get(worker, ("", 0.0))[1]
    kernel = Counter({name: kernel[name] for name in names})
    rights = {member.name: member.weight / sum(rival.weight for rival in rivals) for member in rivals}
    return {
        "at": time.strftime("%H:%M", time.gmtime(began)),
        "weights": {member.name: member.weight for member in rivals},
        "cpu_seconds": {name: round(kernel[name], 1) for name in names},
        "cores": round(sum(kernel.values()) / seconds, 2),
        "deviation": deviation(kernel, rights),
        "deviation_in_usage": deviation({name: counted.get(name, 0.0) for name in names}, rights),
    }


def deviation(seconds: dict[str, float], rights: dict[str, float]) -> float:
    """The largest deviation of a share from the part that is its right, relative to that."""
    whole = sum(seconds.values()) or 1.0
    return round(max(abs(seconds[name] / whole / right - 1) for name, right in rights.items()), 3)


async def flood(port: int, key: str, address: str, kind: str, seconds: float) -> None:
    """Floods as a program of its own: without pauses, from many connections, whatever becomes of it."""
    counts: Counter[str] = Counter()
    requests: dict[str, tuple[str, str, Any, dict[str, str]]] = {
        "heavy batches": ("POST", "/functions/heavy/call", {"inputs": ["matrix"], "scratch": True}, {}),
        "small calls": ("POST", "/functions/heavy/call", {"inputs": [[[0.5, 1.5], [2.5, 3.5]]], "scratch": True}, {}),
        "uploads": ("PUT", "/variables/bytes", bytes(UPLOAD), BYTES),
    }
    method, path, body, headers = requests[kind]
    until = time.time() + seconds

    async def send(number: int) -> None:
        caller = Caller(port, lambda: key, address, counts)
        while time.time() < until:
            try:
                answer = await caller.once(method, f"/sessions/flood-{number}{path}", body, headers)
                counts[str(answer.status)] += 1
                pause = 0.0 if answer.status < 400 else 0.05
            except ConnectionError:
                counts["no answer"] += 1
                pause = 0.05
            if pause:
                await asyncio.sleep(pause)
        caller.close()

    await asyncio.gather(*[send(number) for number in 4 * [*range(FLOOD_SESSIONS)]])
    print(json.dumps(counts))


async def flooded(team: Team, draw: random.Random, kind: str) -> None:
    """Lets one member flood."""
    member = draw.choice(team.members)
    caller = team.of(member, stable=True)
    for number in range(FLOOD_SESSIONS):
        await prepare(caller, f"flood-{number}", member)
    arguments = ["--flood", str(team.port), member.stable, member.address, kind, str(FLOOD_SECONDS)]
    command = ["nice", "-n", "10", sys.executable, __file__, *arguments]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, start_new_session=True)
    output, _ = await process.communicate()
    for status, count in json.loads(output).items():
        team.counts[f"flood, {kind}: {status}"] += count
    for number in range(FLOOD_SESSIONS):
        await caller.settled("DELETE", f"/sessions/flood-{number}", expected=410)
    caller.close()


# ------------------------------------------------------------------------------------------------------- SDK programs
def run_programs(port: int, end: float, keys: dict[str, str]) -> None:
    """Programs of the SDK, a thread and a session for each key: they add, differentiate, and compare."""
    import teletape as tf

    counts: Counter[str] = Counter()

    def program(number: int, owner: str, key: str) -> None:
        mine, draw = 1_000_000_000_000 * (number + 1), random.Random(number)
        try:
            session = tf.connect(
                f"http://127.0.0.1:{port}", session="sdk", durability="journal", api_key=key, default=False
            )
            with session.as_default():
                total, expected = tf.Variable(mine, dtype=tf.int64), mine
                while time.time() < end:
                    for _ in range(draw.randint(1, 20)):
                        total.assign_add(1)
                        expected += 1
                        counts["additions"] += 1
                    x = float(draw.randint(1, 9))
                    with tf.GradientTape() as tape:
                        weight = tf.Variable(x)
                        loss = weight * weight * weight
                    if float(tape.gradient(loss, weight)) != 3 * x * x:
                        counts["wrong: a gradient"] += 1
                    counts["gradients"] += 1
                    if (actual := int(total.numpy())) != expected:
                        kind = "lost" if mine <= actual < expected else "doubled"
                        counts[f"wrong: {kind if actual // mine == 1 else 'cross-key'}"] += 1
                        expected = actual
                    counts["comparisons"] += 1
                    time.sleep(draw.uniform(1, 4))
                session.close()
        except Exception as error:
            counts[f"wrong: {type(error).__name__}"] += 1
            print(f"team: SDK of {owner}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)

    threads = [threading.Thread(target=program, args=(number, *item)) for number, item in enumerate(keys.items())]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(counts))


# ------------------------------------------------------------------------------------------------------------- the run
class Box(observing.KillableServer):
    """A server that can be killed, and whose logs are read."""

    def logs(self) -> list[str]:
        """The lines of all its logs."""
        files = sorted(self._folder.glob("start-*/server.log"))
        return [line for file in files for line in file.read_text(errors="replace").splitlines()]


def come_first() -> None:
    """Lets this process's programs come before the server's control groups: elsewhere they would be on other machines.

    Without it a caller that waits for a processor leaves the sessions idle that are to compute without a pause.
    """
    with contextlib.suppress(OSError):
        GROUP_OF_TERMINAL.write_text("-19")
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -10)


async def conduct(team: Team, box: Box, draw: random.Random, contests: list[dict[str, Any]]) -> None:
    """Lets keys flood, kills the server, and lets keys compete, in turn."""
    kinds, turn = ("heavy batches", "small calls", "uploads"), 0
    while team.end - time.time() > FLOOD_SECONDS + 10:
        if turn % 3 == 1:
            if team.end - time.time() > 150 or not contests:
                contests.append(await contest(team, box.pid, draw))
                print(f"team: {json.dumps(contests[-1])}", file=sys.stderr, flush=True)
        else:
            await flooded(team, draw, kinds[turn % 4 % 3])
        if turn % 12 == 2:
            print(f"team: {time.strftime('%H:%M:%S')} the server is killed", file=sys.stderr, flush=True)
            team.counts["servers killed"] += 1
            await asyncio.to_thread(box.kill)
        turn += 1
        await asyncio.sleep(20)


async def say(team: Team) -> None:
    """Prints what has been counted so far."""
    print(
        f"team: {time.strftime('%H:%M:%S')} {dict(team.counts)}, wrong: {dict(team.wrong)}", file=sys.stderr, flush=True
    )


async def kill_one(team: Team, box: Box, draw: random.Random) -> None:
    """Kills a process that computes for a key, but for those whose shares are measured."""
    workers = [worker for worker in observing.workers(box.pid) if owner_of(worker) not in team.contest]
    if workers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(draw.choice(workers), signal.SIGKILL)
            team.counts["processes killed"] += 1


@contextlib.contextmanager
def programs(team: Team) -> Iterator[None]:
    """A block during which the SDK's programs run; their counts are added."""
    keys = json.dumps({member.name: member.stable for member in team.members})
    command = [sys.executable, __file__, "--programs", str(team.port), str(team.end), keys]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield
        output, _ = process.communicate()
    for name, count in json.loads(output).items():
        kind, _, what = name.partition(": ")
        (team.wrong if kind == "wrong" else team.counts)[f"SDK {what or kind}"] += count


async def run(team: Team, box: Box, seconds: float, sessions: int) -> dict[str, Any]:
    """Runs everything; returns the numbers."""
    draw = random.Random(team.seed)
    come_first()
    for member in team.members:
        for name in ("stable", "key"):
            new = (await team.root.settled("POST", "/admin/keys", key_of(member))).body
            setattr(member, name, new["key"])
        member.id = new["id"]
        body: Any = {
            "function": {"text": "y = sum(x * x) + mine", "dtype": "float64"},
            "inputs": {"x": {"shape": ["n"], "dtype": "float64"}},
            "weights": {"mine": {"dtype": "float64", "data": member.mine}},
        }
        await team.of(member).settled("PUT", f"/published/line-{member.name}", body)
    per_member = sessions // len(team.members) - 1  # the SDK has one
    work = [Work(team, member, number) for member in team.members for number in range(per_member)]
    places = asyncio.Semaphore(4)

    async def begin(part: Work) -> None:
        async with places:
            await part.begin()

    began = time.time()
    await asyncio.gather(*map(begin, work))
    print(f"team: {len(work)} sessions in {time.time() - began:.1f} s", file=sys.stderr, flush=True)
    team.end = time.time() + seconds
    contests: list[dict[str, Any]] = []
    parts: list[tuple[Callable[[], Coroutine[Any, Any, None]], Callable[[], float]]] = [
        *[(part.step, lambda: draw.uniform(1.0, 6.0)) for part in work],
        (lambda: change_key(team, draw), lambda: draw.uniform(2.0, 6.0)),
        (lambda: say(team), lambda: 300.0),
        (lambda: reach(team, draw), lambda: 1.0),
        (lambda: be_a_stranger(team, draw), lambda: 5.0),
        (lambda: kill_one(team, box, draw), lambda: draw.uniform(2.0, 8.0)),
        (lambda: conduct(team, box, draw, contests), lambda: 1.0),
    ]
    memory = observing.memory(box.pid)
    with programs(team), observing.watched_health(box.port, seconds, outages=True) as health:
        await asyncio.gather(*[team.safely(*part) for part in parts])
        for part in work:
            if part.session:
                with contextlib.suppress(UnsettledError):
                    await part.check()
    audit, after = Counter[str](), ""
    while after is not None:
        page = (await team.root.settled("GET", f"/admin/audit?limit=1000{after and f'&after={after}'}")).body
        audit.update(entry["action"] for entry in page["entries"])
        after = page["next"]
    left = await clean(team)
    worst = max((row["deviation"] for row in contests), default=None)
    if (worst is None and seconds > SHORT_SECONDS) or (worst or 0.0) > MOST_DEVIATION:
        team.note("share", f"the worst deviation is {worst}")
    wrong = {name: team.wrong[name] for name in ("wrong", "lost", "doubled", "cross-key")}
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "minutes": round(seconds / 60, 1),
        "keys": len(team.members),
        "sessions": sessions,
        **wrong,
        "others": {name: count for name, count in team.wrong.items() if name not in wrong},
        "counts": dict(sorted(team.counts.items())),
        "refused_s": {
            "count": len(team.refusals),
            "p50": round(sorted(team.refusals)[len(team.refusals) // 2], 3) if team.refusals else None,
            "max": round(max(team.refusals, default=0.0), 3),
        },
        "contests": contests,
        "worst_deviation": worst,
        "worst_deviation_in_usage": max((row["deviation_in_usage"] for row in contests), default=None),
        "sessions_left": left,
        "audit": dict(audit),
        "front_mb": [round(memory), round(observing.memory(box.pid))],
        "health_ms": health,
    }


async def clean(team: Team) -> int:
    """Ends all sessions; returns how many are left."""
    for member in team.members:
        caller = team.of(member)
        for session in (await caller.settled("GET", "/sessions?limit=1000")).body["sessions"]:
            await caller.settled("DELETE", f"/sessions/{session['id']}", expected=410)
        caller.close()
    return len((await team.root.settled("GET", "/sessions?limit=1000")).body["sessions"])


def soak(seconds: float, keys: int, sessions: int, seed: int, shares: str) -> dict[str, Any]:
    """Starts the server, and runs everything; returns the numbers."""
    weights = ",".join(f"{member.name}={member.weight}" for member in Team(0, keys, seed).members)
    settings: dict[str, object] = {"api_keys": f"root:{ROOT}", "admins": "root", "weights": weights, "shares": shares}
    settings |= {"sessions": 2 * sessions, "sessions_per_key": sessions, "connections": 4096, "frames": "on"}
    with tempfile.TemporaryDirectory() as name:
        box = Box(Path(name), **settings)
        try:
            row = asyncio.run(run(Team(box.port, keys, seed), box, seconds, sessions))
            deadline = time.monotonic() + 30
            while len(living := sessions_of(box.pid)) > observing.SPARE and time.monotonic() < deadline:
                time.sleep(0.5)
        finally:
            box.stop()
        row["processes_left"] = len(living) - observing.SPARE
        kinds = Counter(line.split(":", 1)[0][:120] for line in box.logs() if "Traceback" in line or "ERROR" in line)
        row["log"] = dict(kinds.most_common(10))
        if kinds:
            Path(f"/tmp/team-{os.getpid()}.log").write_text("\n".join(box.logs()))
    return row


def is_right(row: dict[str, Any]) -> bool:
    """Whether nothing was wrong."""
    return not any(
        row[name] for name in ("wrong", "lost", "doubled", "cross-key", "others", "sessions_left", "processes_left")
    )


if __name__ == "__main__":
    if sys.argv[1] == "--flood":
        port, key, address, kind, seconds = sys.argv[2:]
        asyncio.run(flood(int(port), key, address, kind, float(seconds)))
    else:
        port, end, keys = sys.argv[2:]
        run_programs(int(port), float(end), json.loads(keys))
