"""The command `teletape`: `teletape serve` starts the server and prints its address."""

from __future__ import annotations

import contextlib
import gc
import logging
import math
import os
import signal
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from teletape_engine.arrays.cpu import DeviceFacts
from teletape_engine.plans.policy import Policy
from teletape_server import version
from teletape_server.budgets.limits import GROUP
from teletape_server.connections.listener import address_of, listening
from teletape_server.identity.identity import Identity
from teletape_server.identity.keys import Keys, StoreError
from teletape_server.ipc.confinement import LEAST_FREE, hide, machine_memory, scrub
from teletape_server.settings import Settings, SettingsError, unknown_variables

if TYPE_CHECKING:
    from fastapi import FastAPI

    from teletape_server.middleware.tracing import Tracing

_END_SECONDS: Final = 4.0  # after the grace for running requests, in which everything has to end: Docker waits 10 s
_LATE_STATUS: Final = 70
_ADMINISTRATION: Final = ("sessions", "keys", "backup", "restore", "upgrade", "doctor")
_USAGE = (
    "usage: teletape serve [--host ADDRESS] [--port PORT] [--device DEVICE] ...\n"
    "       teletape sessions list|show|park|rescue|end [SESSION] [--data-dir PATH | --url URL] [--out PATH]\n"
    "       teletape keys create OWNER|list|rotate ID|revoke ID|revoke-tokens OWNER|limit ACCOUNT\n"
    "                [--data-dir PATH | --url URL] ...\n"
    "       teletape backup DIR [--data-dir PATH]\n"
    "       teletape restore DIR [SESSION ...] [--data-dir PATH]\n"
    "       teletape upgrade --check DIR\n"
    "       teletape doctor --server [--pid PID] [the settings of serve]\n"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status (2: wrong arguments or settings)."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments[:1] in (["-h"], ["--help"]):
        print(_USAGE + "teletape serve --help lists every setting; teletape --version prints the version.")
        print("python -m teletape doctor, ping and sessions look at an environment and at servers.")
        return 0
    if arguments[:1] in (["-V"], ["--version"]):
        print(f"teletape {version()}")
        return 0
    if arguments[:1] and arguments[0] in _ADMINISTRATION:
        from teletape_server.administration import command_line

        return command_line.main(arguments, os.environ)
    if arguments[:1] != ["serve"]:
        print(
            _USAGE + f"teletape: no such command: {' '.join(arguments[:1]) or '(none)'} "
            "(`python -m teletape` has doctor, ping and sessions)",
            file=sys.stderr,
        )
        return 2
    try:
        settings = Settings.load(arguments[1:], os.environ)
        Policy.of(os.environ.get("TELETAPE_PLANS") or "on")
    except ValueError as error:
        print(f"teletape: {error}", file=sys.stderr)
        return 2
    warnings = unknown_variables(os.environ)
    supervisor = os.environ.get("NOTIFY_SOCKET")
    hide()  # its keys above all; before the first process that could look
    tracing = {name: value for name, value in os.environ.items() if name.startswith("OTEL_")}
    scrub(os.environ)  # before the first thread, and before the first process that inherits it
    return serve(settings, warnings, supervisor, tracing)


def serve(
    settings: Settings,
    warnings: Sequence[str] = (),
    supervisor: str | None = None,
    tracing: Mapping[str, str] = MappingProxyType({}),
) -> int:
    """Logs the warnings, and serves until a signal stops it; returns the exit status.

    Args:
        settings: The server's settings.
        warnings: What the log begins with.
        supervisor: The socket of a supervisor, such as systemd, that wants to know when the server answers.
        tracing: OpenTelemetry's variables of the environment, which say where spans go.
    """
    try:
        # Imported here and not at the top: a worker process runs this file again, and needs none of it.
        from teletape_engine.plans.run.c.loaded import WHY_NOT
        from teletape_server.hosts.processes import forkserver
        from teletape_server.ipc.confinement import adopt

        with contextlib.suppress(OSError):  # the first start of a process says so
            forkserver.begin()
        from teletape_server import app, logs, server, tls  # noqa: F401  # what `_serve` needs
        from teletape_server.hosts.chosen_shares import chosen_shares
        from teletape_server.hosts.processes.forkserver import present_devices
        from teletape_server.hosts.shares import SharesError
        from teletape_server.ipc.rights import Rights
    except ImportError as error:
        print(f"teletape: the server needs further packages: pip install 'teletape[server]' ({error})", file=sys.stderr)
        return 1
    logs.configure(settings.log_level, settings.log_format, logs_requests=settings.logs_requests)
    if WHY_NOT:
        warnings = [*warnings, f"functions run step by step, several times slower than they could: {WHY_NOT}"]
    for warning in warnings:
        logging.getLogger("teletape").warning("%s", warning)
    if settings.worker_user is not None and os.geteuid() != 0:
        print(
            f"teletape: --worker-user {settings.worker_user.uid} needs a server that root has started: it runs as user "
            f"{os.geteuid()}, whose processes cannot change to another. Start it as root, or leave the setting out",
            file=sys.stderr,
        )
        return 2
    if settings.device.startswith("gpu") and (why := _missing_gpu(settings.device, present_devices())):
        print(f"teletape: no device {settings.device}: {why}", file=sys.stderr)
        return 2
    try:
        tls.check(settings)
        identity = app.identity_of(settings)
        settings.check_reach(has_keys=bool(identity.keys))
        shares = chosen_shares(settings.shares, Rights(settings.weights, identity.budgets.group), settings.worker_user)
    except (SettingsError, StoreError, SharesError) as error:
        print(f"teletape: {error}", file=sys.stderr)
        return 2
    place = f"{settings.host} port {settings.port}" if settings.unix is None else settings.unix
    with contextlib.ExitStack() as stack:
        stack.callback(shares.close)
        try:
            listener = stack.enter_context(listening(settings))
        except OSError as error:
            print(f"teletape: cannot listen on {place}: {error.strerror or error}", file=sys.stderr)
            return 1
        if not identity.keys:
            users = "every user of this machine" if settings.unix is None else f"every user who may write to {place}"
            logging.getLogger("teletape").warning("no API keys: %s can use this server and its sessions", users)
        if promise := overcommitment(settings, machine_memory()):
            # A single user who fills the machine harms no other.
            logging.getLogger("teletape").log(logging.WARNING if identity.keys else logging.INFO, "%s", promise)
        for sentence in contradictions(settings):
            logging.getLogger("teletape").warning("%s", sentence)
        for line in allowances(settings, machine_memory(), shares.way):
            logging.getLogger("teletape").info("%s", line)
        with contextlib.suppress(
            OSError
        ):  # then a session that is stopped learns of the server's end by the forkserver
            adopt()
        gc.disable()  # until the server answers nothing is garbage: to look for it took a tenth of the start
        application = app.create_app(settings, identity=identity, shares=shares, tracing=tracing_of(tracing))
        return _serve(application, settings, identity, listener, stack, supervisor)


def overcommitment(settings: Settings, memory: int) -> str:
    """Returns a sentence if sessions, runs and bodies may take more than the memory, in bytes; empty: they may not."""
    most = settings.most_memory
    if most <= memory:
        return ""
    numbers = [f"{number / (1 << 30):.3g} GiB" for number in (settings.memory_limit, settings.bodies, most, memory)]
    limit, bodies, most_text, there = numbers
    return (
        f"{settings.sessions} sessions and {settings.runs} requests without one, of {limit} each, and request bodies "
        f"of {bodies} may take {most_text}, and there are {there}: if many are full at once, idle sessions are parked, "
        "and commands that need more memory are refused. To exclude that, lower --sessions, --runs, --memory-limit or "
        "--bodies"
    )


def contradictions(settings: Settings) -> list[str]:
    """Returns a sentence for each setting that can never be reached, since another is smaller; without defaults."""
    limits, defaults = settings.default_limits, Settings()
    pairs: list[tuple[str, float | None, str, float]] = [
        ("--sessions-per-key", limits.sessions, "--sessions", settings.sessions),
        ("--disk-limit", settings.disk_limit, "--disk-per-key", limits.disk_bytes or math.inf),
        ("--max-body", settings.max_body, "--bodies-per-key", settings.bodies_per_key),
        ("--bodies-per-key", settings.bodies_per_key, "--bodies", settings.bodies),
        ("--memory-limit", settings.memory_limit, "memory_bytes of --key-limits", limits.memory_bytes or math.inf),
    ]
    usual = (defaults.sessions_per_key, defaults.disk_limit, defaults.max_body, defaults.bodies_per_key)
    return [
        f"{name} allows {number:g}, and {other} only {most:g}: nobody reaches the first"
        for name, number, other, most in pairs
        if number is not None and number > most and number not in usual
    ]


def allowances(settings: Settings, memory: int, way: str) -> list[str]:
    """Returns the lines of a table of what a server allows.

    Args:
        settings: The server's.
        memory: Bytes of the machine or its container.
        way: How keys share the CPU, in words.
    """
    limits, gib = settings.default_limits, float(1 << 30)
    more = ", ".join(f"{name} {limit:g}" for name, limit in settings.key_limits.named.items()) or "none"
    weights = ", ".join(
        f"{name} {weight:.0%}" if name.startswith(GROUP) else f"{name} {weight:g}"
        for name, weight in settings.weights.items()
    )
    rows = [
        ("sessions", f"{settings.sessions} in all, {limits.sessions} of a key, {settings.runs} requests without one"),
        (
            "memory",
            f"{memory / gib:.3g} GiB, {settings.memory_limit / gib:.3g} of a session, {LEAST_FREE / gib:.3g} free",
        ),
        ("bodies", f"{settings.bodies / gib:.3g} GiB under way, {settings.bodies_per_key / gib:.3g} of a key"),
        ("disk", f"{settings.disk_limit / gib:.3g} GiB of a session, {(limits.disk_bytes or 0) / gib:.3g} of a key"),
        ("shares", f"{settings.shares}: {way}, weights {weights or '1 each'}"),
        ("further limits of a key", more),
    ]
    return ["this server allows", *(f"  {name:24}{text}" for name, text in rows)]


def _missing_gpu(device: str, all_facts: list[DeviceFacts]) -> str:
    """Returns why the server cannot compute on this GPU; empty: it can."""
    gpus = [facts for facts in all_facts if facts.device != "cpu"]
    wanted = [facts for facts in gpus if device in ("gpu", facts.device)]
    if any(not facts.unusable for facts in wanted):
        return ""
    reasons = [facts.unusable for facts in wanted or gpus if facts.unusable]
    return reasons[0] if reasons else f"this machine has {', '.join(facts.device for facts in gpus)}"


def tracing_of(variables: Mapping[str, str]) -> Tracing | None:
    """Returns what makes spans, if variables of OpenTelemetry name where they go; None: they name nothing."""
    names = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    if variables.get("OTEL_SDK_DISABLED", "").lower() == "true" or not any(map(variables.get, names)):
        return None
    os.environ.update(variables)  # the library reads them; a process that starts later must not
    try:
        from teletape_server.middleware.tracing import Tracing

        return Tracing()
    except ImportError as error:
        log = "nothing is traced, which needs further packages: pip install 'teletape[traces]' (%s)"
        logging.getLogger("teletape").warning(log, error)
        return None
    finally:
        for name in variables:
            del os.environ[name]


def _serve(
    application: FastAPI,
    settings: Settings,
    identity: Identity,
    listener: socket.socket,
    resources: contextlib.ExitStack,
    supervisor: str | None,
) -> int:
    from teletape_server.administration.running_server import note_address
    from teletape_server.server import Server

    class GreetingServer(Server):
        """Prints the address as soon as the server answers, and frees it before the signal ends the process."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            gc.collect()
            if settings.data_dir is not None:
                note_address(settings.data_dir, address_of(settings, listener))
            gc.freeze()  # what lives as long as the server: looking through it took 80 ms at each full collection
            gc.enable()
            print(_greeting(settings, identity.keys, listener), flush=True)
            _notify(supervisor, b"READY=1")

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            _notify(supervisor, b"STOPPING=1")
            limit = threading.Timer(settings.shutdown_grace + _END_SECONDS, _end_at_once, (settings.shutdown_grace,))
            limit.daemon = True
            limit.start()
            await super().shutdown(sockets)
            resources.close()

    server = GreetingServer(application, settings)
    if (
        settings.tls_certificate is not None or signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    ):  # as nohup sets it
        signal.signal(signal.SIGHUP, server.hang_up)
    try:
        server.run(sockets=[listener])
    except KeyboardInterrupt:  # uvicorn shuts down first, and then raises it
        return 130
    finally:
        gc.enable()
    return 0


def _notify(supervisor: str | None, state: bytes) -> None:
    """Sends a supervisor the server's state, as sd_notify(3) does."""
    if supervisor is not None:
        address = f"\0{supervisor[1:]}" if supervisor.startswith("@") else supervisor
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(state, address)


def _end_at_once(grace: float) -> None:
    """Ends the process, and so all sessions' processes, whatever its end still waits for."""
    logging.getLogger("teletape").error("the server has not ended %g s after its grace: it ends now", _END_SECONDS)
    os._exit(_LATE_STATUS)


def _greeting(settings: Settings, keys: Keys, listener: socket.socket) -> str:
    url = address_of(settings, listener)
    page = f"{url}/docs" if settings.unix is None else f"curl --unix-socket {settings.unix} http://localhost/docs"
    whose = f"{keys.all[0].owner}'s key" if keys.all else "your token"
    key = f', api_key="{whose}"' if keys else ""
    return f"""\
Teletape serves at {url} (device {settings.device})
API page:          {page}

    import teletape as tf
    tf.connect("{url}"{key})
    print(tf.constant([1.0, 2.0]) * 2.0)
"""


if __name__ == "__main__":
    sys.exit(main())
