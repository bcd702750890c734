"""Where sessions compute: `GET /v1/devices`, and sessions on GPUs, of processes with the substitute for CuPy.

On a machine with a GPU other tests start the same server with it.
"""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from gpu_servers import SERVE, SQUARES, environment, serving_on_gpus
from rest_client import op

import prepared
from serving import ok, problem
from teletape_engine.arrays.gpu import driver_version


@pytest.fixture(scope="module")
def gpus() -> Iterator[httpx.Client]:
    """A server with two GPUs."""
    with serving_on_gpus(2) as http:
        yield http


def test_a_server_lists_its_gpus_and_places_sessions_on_those_with_the_fewest(gpus: httpx.Client) -> None:
    sessions = [ok(gpus.post("/v1/sessions", json={"id": f"any-{n}"})).json() for n in range(3)]
    sessions.append(ok(gpus.post("/v1/sessions", json={"id": "second", "device": "gpu:1"})).json())
    sessions.append(ok(gpus.post("/v1/sessions", json={"id": "host", "device": "cpu"})).json())
    assert [session["device"] for session in sessions] == ["gpu:0", "gpu:1", "gpu:0", "gpu:1", "cpu"]

    cpu, *devices = ok(gpus.get("/v1/devices")).json()["devices"]
    assert cpu["sessions"] == 1
    assert [(facts["device"], facts["sessions"], facts["usable"]) for facts in devices] == [
        ("gpu:0", 2, True),
        ("gpu:1", 2, True),
    ]
    assert devices[0] | {"device": "", "sessions": 0} == {
        "device": "",
        "usable": True,
        "reason": "",
        "interpreted": "",
        "name": "Substitute",
        "memory_bytes": 4 << 30,
        "free_bytes": 3 << 30,
        "driver": driver_version(),
        "cuda": "13.1",
        "compute_capability": "9.0",
        "sessions": 0,
    }
    for session in sessions:
        answer = ok(gpus.post(f"/v1/sessions/{session['id']}/run", json=SQUARES)).json()
        assert answer["values"]["dx"]["data"] == [3.0, -4.0]
        ok(gpus.delete(f"/v1/sessions/{session['id']}"))


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n"
            "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n",
            "535.104.05",
        ),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65  Release Build  (dvs-builder)\n", "580.65"),
        ("GCC version:  gcc version 12.2.0\n", None),
    ],
)
def test_the_version_of_the_driver_is_what_it_writes_of_itself(tmp_path: Path, text: str, version: str | None) -> None:
    path = tmp_path / "version"
    path.write_text(text)
    assert driver_version(str(path)) == version
    assert driver_version(str(tmp_path / "none")) is None


def test_the_same_request_finds_the_session_again(gpus: httpx.Client) -> None:
    for device in (None, "auto", "gpu", "gpu:0"):
        session = ok(gpus.post("/v1/sessions", json={"id": "again", "device": device})).json()
        assert session["device"] == "gpu:0"
    assert (
        "gpu:0"
        in problem(gpus.post("/v1/sessions", json={"id": "again", "device": "gpu:1"}), 409, "id_in_use")["detail"]
    )
    ok(gpus.delete("/v1/sessions/again"))


def test_an_index_that_there_is_not_is_refused(gpus: httpx.Client) -> None:
    refusal = problem(gpus.post("/v1/sessions", json={"device": "gpu:2"}), 422, "unknown_device")
    assert refusal["detail"] == "this server has no device 'gpu:2': it has cpu, gpu:0, gpu:1"
    assert refusal["details"]["devices"] == ["cpu", "gpu:0", "gpu:1"]


@pytest.mark.parametrize(
    ("device", "text"),
    [
        ("tpu", 'must be cpu, gpu, gpu:N or auto; found "tpu"'),
        ("gpu:-1", 'must be cpu, gpu, gpu:N or auto; found "gpu:-1"'),
        ("gpu:", 'must be cpu, gpu, gpu:N or auto; found "gpu:"'),
        (5, "must be a string; found 5"),
    ],
)
def test_what_names_no_device_is_refused_in_words(gpus: httpx.Client, device: object, text: str) -> None:
    refusal = problem(gpus.post("/v1/sessions", json={"device": device}), 422, "invalid_request")
    assert refusal["detail"] == f"device: {text}"


def test_an_op_that_cupy_lacks_is_refused_by_name(gpus: httpx.Client) -> None:
    session = ok(gpus.post("/v1/sessions", json={})).json()["id"]
    call = {"do": "op", **op("dawsn", 1.0, to="y")}
    body = {"commands": [call], "fetch": ["y"]}
    refusal = problem(gpus.post(f"/v1/sessions/{session}/run", json=body), 422, "unimplemented")
    assert "op 'dawsn' is not offered on a GPU: CuPy has no such function. Instead: " in refusal["detail"]


def test_a_server_whose_default_is_missing_says_what_is_missing() -> None:
    process = prepared.run([*SERVE, "--device", "gpu"], env=environment(CUPY_SUBSTITUTE_GPUS="0"))
    assert process.returncode == 2
    assert "teletape: no device gpu: CuPy finds no GPU (there is none): it needs NVIDIA's driver" in process.stderr
