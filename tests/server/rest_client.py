"""The resources of one session over HTTP, as tests use them."""

from typing import Any

import httpx

from serving import ok

RAW = "application/octet-stream"


class Rest:
    """A session's resources."""

    def __init__(self, http: httpx.Client, session: str) -> None:
        self.http, self.session, self.path = http, session, f"/v1/sessions/{session}"

    def post(self, place: str, body: Any, **headers: str) -> httpx.Response:
        return self.http.post(f"{self.path}/{place}", json=body, headers=headers)

    def put(self, place: str, body: Any, **headers: str) -> httpx.Response:
        return self.http.put(f"{self.path}/{place}", json=body, headers=headers)

    def get(self, place: str, **headers: str) -> httpx.Response:
        return self.http.get(f"{self.path}/{place}", headers=headers)

    def delete(self, place: str) -> httpx.Response:
        return self.http.delete(f"{self.path}/{place}")

    def create(self, place: str, body: Any) -> Any:
        response = self.post(place, body)
        assert response.status_code == 201, response.text
        assert response.headers["location"] == f"{self.path}/{place}/{response.json()['id']}"
        return response.json()

    def done(self, place: str, body: Any = None) -> Any:
        return ok(self.post(place, body)).json()

    def data(self, place: str) -> Any:
        return ok(self.get(place)).json()["value"]["data"]


def op(name: str, *inputs: Any, to: str | None = None, **attrs: Any) -> dict[str, Any]:
    return {"op": name, "inputs": list(inputs), "attrs": attrs} | ({} if to is None else {"outputs": [to]})
