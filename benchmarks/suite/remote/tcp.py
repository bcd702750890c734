"""Bytes over TCP, at most 64 MB: `u` and a length takes that many and answers with one; `d` sends that many."""

import socket
import sys

ROOM = memoryview(bytearray(64 << 20))


def serve(connection):
    """One client, until it leaves."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while head := connection.recv(9, socket.MSG_WAITALL):
        length = int.from_bytes(head[1:], "little")
        if head[:1] == b"d":
            connection.sendall(ROOM[:length])
            continue
        while length:
            length -= connection.recv_into(ROOM[:length])
        connection.sendall(b"k")


if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    while True:
        serve(listener.accept()[0])
