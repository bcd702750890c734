"""Makes a certificate for this machine, as tests and benchmarks need one; it takes openssl."""

import subprocess
from pathlib import Path


def make_certificate(folder: Path, *, password: str = "") -> tuple[Path, Path]:
    """Files in a folder with a certificate of two days for localhost, and its key.

    Args:
        folder: Where they are written.
        password: Of the key; empty: it has none.
    """
    certificate, key = folder / "cert.pem", folder / "key.pem"
    kind = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -days 2 -subj /CN=localhost".split()
    kind += ["-passout", f"pass:{password}"] if password else ["-nodes"]
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run(["openssl", *kind, *names, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return certificate, key
