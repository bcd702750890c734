"""Requests that are retried, and requests that run at the same time."""

import threading

from rest_client import Rest, op

from serving import ok, problem


def test_the_same_key_does_a_thing_once(rest: Rest) -> None:
    rest.create("variables", {"id": "w", "value": 1.5})
    body = {"value": 1.0 + 0.5, "mode": "add"}
    first = ok(rest.put("variables/w", body, **{"Idempotency-Key": "k"}))
    assert ok(rest.put("variables/w", body, **{"Idempotency-Key": "k"})).content == first.content
    assert rest.data("variables/w") == 3.0
    problem(rest.put("variables/w", body | {"mode": "sub"}, **{"Idempotency-Key": "k"}), 422, "idempotency_conflict")
    created = ok(rest.post("tensors", {"value": 1.5}, **{"Idempotency-Key": "l"}))
    again = ok(rest.post("tensors", {"value": 1.5}, **{"Idempotency-Key": "l"}))
    assert (again.json()["id"], again.headers["location"]) == (created.json()["id"], created.headers["location"])


def test_requests_at_the_same_time_do_not_record_for_each_other(rest: Rest) -> None:
    rest.create("variables", {"id": "w", "value": 1.5})
    tapes = [f"t{i}" for i in range(4)]
    for tape in tapes:
        rest.create("tapes", {"id": tape})

    def record(tape: str) -> None:
        for i in range(5):
            rest.done(f"tapes/{tape}/ops", {"ops": [op("square", "w", to=f"{tape}-{i}")]})

    threads = [threading.Thread(target=record, args=(tape,)) for tape in tapes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts = {tape["id"]: tape["ops"] for tape in ok(rest.get("tapes")).json()["tapes"]}
    assert counts == dict.fromkeys(tapes, 10)  # a read and a square each time
