"""What the kernel and the files of a box say of it: limits, the clock, the end of a certificate."""

from __future__ import annotations

import ctypes
import re
import ssl
import time
from pathlib import Path
from typing import Final

_UNSYNCHRONISED: Final = 0x40  # STA_UNSYNC of adjtimex(2)
_TIMEX_WORDS: Final = 64  # more than the kernel's struct timex has
_DAY: Final = 86_400.0


def most_files(process: Path) -> int:
    """Returns how many files a process may open: its hard limit, to which the server raises its own.

    Args:
        process: Its folder in /proc.

    Raises:
        OSError: There is no such process.
    """
    match = re.search(r"^Max open files\s+\S+\s+(\d+)", (process / "limits").read_text(), re.M)
    return int(match[1]) if match else 1 << 30  # unlimited


def synchronised() -> tuple[bool, float] | None:
    """Returns whether a time server sets the clock, and by how many seconds it is wrong at most; None: not known."""
    timex = (ctypes.c_long * _TIMEX_WORDS)()  # modes 0: it is read; of struct timex all words but two ints are longs
    try:
        if ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(timex)) < 0:
            return None
    except (AttributeError, OSError):
        return None
    max_error, status = timex[3], timex[5] & 0xFFFFFFFF
    return not status & _UNSYNCHRONISED, max_error / 1e6


def days_left(certificate: str, key: str | None) -> float:
    """Returns the days for which a server's certificate is valid; 0: it has ended, or is not valid yet.

    A client that trusts this certificate alone connects to a server that has it, in memory.

    Args:
        certificate: Its file, in PEM.
        key: The file of its key; None: the same.

    Raises:
        OSError: The files cannot be used.
    """
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    server.load_cert_chain(certificate, key, password="")
    client.load_verify_locations(certificate)
    client.check_hostname, client.verify_flags = False, client.verify_flags | ssl.VERIFY_X509_PARTIAL_CHAIN
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(to_client, to_server), server.wrap_bio(to_server, to_client, server_side=True)]
    waiting = [*ends]
    while waiting:
        for end in [*waiting]:
            try:
                end.do_handshake()
                waiting.remove(end)
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError as error:
                if error.verify_code in (9, 10):  # X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_CERT_HAS_EXPIRED
                    return 0.0
                raise
    facts = ends[0].getpeercert()
    assert facts is not None, "the handshake is done"
    return (ssl.cert_time_to_seconds(str(facts["notAfter"])) - time.time()) / _DAY
