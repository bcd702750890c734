"""A proxy that loses requests, loses answers and sends requests twice, by chance; also a program of its own.

`python reliability/lossy_proxy.py SERVER_PORT` prints its own port and runs until its standard input ends.
"""

import argparse
import asyncio
import contextlib
import random
import sys
from collections import Counter

HEAD_END = b"\r\n\r\n"


class LossyProxy:
    """Passes HTTP requests on to a server of this machine, and does some of them harm.

    Attributes:
        counts: How many requests were passed on, lost, unanswered or doubled.
    """

    def __init__(self, server_port: int, *, lost: float, unanswered: float, doubled: float, seed: int) -> None:
        self._server_port = server_port
        self._chances = {"lost": lost, "unanswered": unanswered, "doubled": doubled}
        self._random = random.Random(seed)
        self.counts: Counter[str] = Counter()

    async def serve_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one connection of a client until something is lost, or the client ends it."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                request = await message(reader)
                event = self._event()
                self.counts[event] += 1
                if event == "lost":
                    break
                answers = [await self._passed_on(request) for _ in range(2 if event == "doubled" else 1)]
                if event == "unanswered":
                    break
                # Which of two answers comes first is chance too; both must be good for a POST or PUT.
                repeatable = request.startswith((b"POST", b"PUT"))
                writer.write(self._random.choice(answers) if repeatable else answers[0])
                await writer.drain()
        writer.close()

    def _event(self) -> str:
        draw = self._random.random()
        for name, chance in self._chances.items():
            if draw < chance:
                return name
            draw -= chance
        return "passed"

    async def _passed_on(self, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._server_port)
        try:
            writer.write(request)
            await writer.drain()
            return await message(reader)
        finally:
            writer.close()


async def message(reader: asyncio.StreamReader) -> bytes:
    """Reads a whole request or answer: a head, and as many bytes as it declares."""
    head = await reader.readuntil(HEAD_END)
    length = 0
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
        if name.lower() == b"transfer-encoding":
            raise ConnectionError("the proxy passes on bodies of a declared length only")
    return head + await reader.readexactly(length)


async def main() -> None:
    """Runs the proxy of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("server_port", type=int)
    parser.add_argument("--lost", type=float, default=0.02, help="share of requests that do not reach the server")
    parser.add_argument("--unanswered", type=float, default=0.02, help="share of requests whose answer is lost")
    parser.add_argument("--doubled", type=float, default=0.1, help="share of requests that reach the server twice")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    proxy = LossyProxy(
        options.server_port,
        lost=options.lost,
        unanswered=options.unanswered,
        doubled=options.doubled,
        seed=options.seed,
    )
    server = await asyncio.start_server(proxy.serve_connection, "127.0.0.1", 0, limit=1 << 26)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.close()
    print(dict(proxy.counts), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
