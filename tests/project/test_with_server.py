"""scripts/with_server.py: the command gets a server that answers, its status comes back, and no server outlives it."""

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "with_server.py"

ASK = """
import os, sys, urllib.request
url = os.environ["TELETAPE_URL"]
print(url, urllib.request.urlopen(url + "/v1/health").status, "TELETAPE_API_KEY" in os.environ)
sys.exit(7)
"""


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/v1/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except urllib.error.URLError:
        return False


def test_the_command_reaches_a_server_of_its_own() -> None:
    environment = {**os.environ, "TELETAPE_API_KEY": "another server's", "TELETAPE_API_KEYS": "me:secret"}
    command = [sys.executable, SCRIPT, sys.executable, "-c", ASK]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 7, done.stderr
    url, status, key = done.stdout.split()
    assert (status, key) == ("200", "False")
    assert not answers(url)


#: Takes the place of `teletape serve` where only its process counts, because it starts at once.
HEALTHY = f"""#!{sys.executable} -IS
import http.server, sys

class Healthy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

assert sys.argv[1:5] == ["serve", "--host", "127.0.0.1", "--port"]
http.server.HTTPServer(("127.0.0.1", int(sys.argv[5])), Healthy).serve_forever()
"""


def python_next_to(teletape: str, folder: Path) -> Path:
    """An interpreter in a folder, whose neighbour `teletape` is this script."""
    python = folder / "python"
    python.symlink_to(sys.executable)
    (folder / "teletape").write_text(teletape)
    (folder / "teletape").chmod(0o755)
    return python


def test_a_stopped_script_stops_its_server(tmp_path: Path) -> None:
    wait = "import os, time; print(os.environ['TELETAPE_URL'], flush=True); time.sleep(60)"
    command = [python_next_to(HEALTHY, tmp_path), SCRIPT, sys.executable, "-c", wait]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as script:
        assert script.stdout
        url = script.stdout.readline().strip()
        assert answers(url)
        script.send_signal(signal.SIGTERM)
        assert script.wait(30) == 128 + signal.SIGTERM
    assert not answers(url)


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    python = python_next_to("#!/bin/sh\necho 'no device gpu:9 here' >&2\nexit 3\n", tmp_path)
    done = subprocess.run([python, SCRIPT, "touch", "started"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert "ended with status 3" in done.stderr
    assert "no device gpu:9 here" in done.stderr
    assert not (tmp_path / "started").exists()
