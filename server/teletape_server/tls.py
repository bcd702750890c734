"""The server's own certificate: checked at the start, read again at SIGHUP and when a renewal has changed its files."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from contextlib import suppress
from typing import Final

from teletape_server.settings import Settings, SettingsError

_LOOK_SECONDS: Final = 60.0  # between two looks at the files

log = logging.getLogger("teletape")


def check(settings: Settings) -> None:
    """Checks that the certificate and its key can be used, if the settings name one.

    Raises:
        SettingsError: A file cannot be read, has no certificate or key, or the two do not belong together.
    """
    if settings.tls_certificate is None:
        return
    certificate, key = settings.tls_certificate, settings.tls_key
    files = _files(settings)
    for file in files:
        try:
            open(file, "rb").close()
        except OSError as error:
            raise SettingsError(f"cannot read the TLS file {file}: {error.strerror or error}") from None
    try:
        # Without a password OpenSSL would ask the terminal for one.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except (ssl.SSLError, ValueError) as error:
        raise SettingsError(
            f"cannot use the TLS files {' and '.join(files)}: expected a certificate in PEM, with those of its "
            f"authorities after it, and its key in PEM without a password ({error})"
        ) from None


async def keep_current(context: ssl.SSLContext, settings: Settings, hangup: asyncio.Event) -> None:
    """Reads the files again when they have changed, as it sees at regular times, or when SIGHUP comes; it has no end.

    New connections have the new certificate, open ones the one that they began with. While the files do not belong
    together, as between the two writes of a renewal, or cannot be used, the last ones stay.

    Args:
        context: Of the server's connections.
        settings: The server's settings.
        hangup: Set at SIGHUP.
    """
    assert settings.tls_certificate is not None, "the context is of a certificate"
    stamp = _stamp(settings)
    while True:
        with suppress(TimeoutError):
            await asyncio.wait_for(hangup.wait(), _LOOK_SECONDS)
        is_signal = hangup.is_set()
        hangup.clear()
        try:
            now = _stamp(settings)
            if now == stamp and not is_signal:
                continue
            check(settings)  # in a context of its own: one that fails half-way has lost its former certificate
            context.load_cert_chain(settings.tls_certificate, settings.tls_key, password="")
        except (OSError, SettingsError) as error:
            log.error("the TLS certificate is not renewed, the last one stays: %s", error)
        else:
            stamp, why = now, "as SIGHUP asks" if is_signal else "its files have changed"
            log.info("the TLS certificate was read again: %s", why)


def _files(settings: Settings) -> tuple[str, ...]:
    """Returns the file of the certificate, and that of its key if it is another one."""
    return tuple(file for file in (settings.tls_certificate, settings.tls_key) if file is not None)


def _stamp(settings: Settings) -> list[tuple[int, int]]:
    return [(status.st_ino, status.st_mtime_ns) for status in map(os.stat, _files(settings))]
