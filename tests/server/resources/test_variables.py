"""/variables: created, read, assigned to, deleted."""

from rest_client import Rest, op

from serving import ok, problem

ONE_TO_THREE = {"dtype": "float32", "data": [1, 2, 3]}


def test_a_variable_is_made_read_assigned_and_ended(rest: Rest) -> None:
    created = rest.create("variables", {"id": "w", "value": ONE_TO_THREE, "trainable": False, "name": "weights"})
    assert created == {
        "id": "w",
        "kind": "variable",
        "dtype": "float32",
        "shape": [3],
        "bytes": 12,
        "trainable": False,
        "version": 0,
        "name": "weights",
    }
    for mode, operand, then in (
        ("add", [1, 1, 1], [2, 3, 4]),
        ("sub", [0, 1, 2], [2, 2, 2]),
        ("set", [7, 8, 9], [7, 8, 9]),
    ):
        body = {"value": {"dtype": "float32", "data": operand}, "mode": mode}
        ok(rest.put("variables/w", body))
        assert rest.data("variables/w") == then
    assert ok(rest.get("variables/w")).json()["version"] == 3
    assert [variable["id"] for variable in ok(rest.get("variables")).json()["variables"]] == ["w"]
    assert rest.delete("variables/w").status_code == 204
    problem(rest.get("variables/w"), 410, "released_id")
    problem(rest.post("variables", {"id": "w", "value": 1.5}), 409, "id_in_use")


def test_a_value_stands_wherever_a_variable_does_and_the_other_way_round(rest: Rest) -> None:
    rest.create("tensors", {"id": "x", "value": ONE_TO_THREE})
    rest.create("variables", {"id": "w", "value": "x"})
    rest.done("ops", {"ops": [op("mul", "w", "x", to="y")]})
    ok(rest.put("variables/w", {"value": "y"}))
    assert rest.data("variables/w") == [1, 4, 9]


def test_an_assignment_keeps_shape_and_dtype(rest: Rest) -> None:
    rest.create("variables", {"id": "w", "value": ONE_TO_THREE})
    for wrong in ([1.5, 2.5], {"dtype": "float64", "data": [1, 2, 3]}):
        refusal = problem(rest.put("variables/w", {"value": wrong}), 422, "invalid_argument")["detail"]
        assert "float32[3]" in refusal
    assert rest.data("variables/w") == [1, 2, 3]
    assert ok(rest.get("variables/w")).json()["version"] == 0


def test_generated_ids_begin_with_the_reserved_sign(rest: Rest) -> None:
    assert rest.create("variables", {"value": 1.5})["id"].startswith("_")
    assert rest.create("tensors", {"value": 1.5})["id"].startswith("_")
    assert rest.create("tapes", {})["id"].startswith("_")
    for wrong in ("_mine", "12", "a/b", "", "a b"):
        refusal = problem(rest.post("variables", {"id": wrong, "value": 1.5}), 422, "invalid_request")
        assert refusal["details"]["fields"][0]["field"] == "id"
