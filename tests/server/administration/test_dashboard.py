"""The dashboard and the alerts: they parse, and each metric and label that they name is one of the server's."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from serving import KEYS, Server, ok, until
from teletape_server.settings import Settings

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
DASHBOARD: Any = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
RULES: Any = yaml.safe_load((DEPLOY / "prometheus-rules.yml").read_text())
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"]]
TARGETS = [target for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]
NAME = re.compile(r"\b(?:teletape|process)_[a-z_]+\b")
LABEL = re.compile(r"\bby \(([^)]*)\)|(\w+)\s*(?:=~|!=|=)\s*\"")
SCRAPED = {"job", "instance", "le"}  # labels that Prometheus adds, and that of all histograms


@pytest.fixture(scope="module")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The labels of each metric of a server with a session that has been parked and woken."""
    folder = str(tmp_path_factory.mktemp("data"))
    settings = Settings(api_keys=KEYS, admins=frozenset({"bob"}), data_dir=folder, shutdown_grace=0.1)
    with Server(settings).running() as server, server.client("bob") as http:
        ok(http.post("/v1/sessions", json={"id": "demo", "durability": "journal"}))
        ok(http.post("/v1/sessions/demo/park"))
        ok(http.post("/v1/sessions/demo/tensors", json={"id": "x", "value": [1.0] * 50}))
        ok(http.post("/v1/run", json={"commands": [{"do": "op", "op": "exp", "inputs": [0.5], "outputs": ["x"]}]}))
        until(lambda: 'cause="woken"' in http.get("/metrics").text)
        text = ok(http.get("/metrics")).text
    labels: dict[str, set[str]] = {}
    values: dict[tuple[str, ...], float] = {}
    for family in text_string_to_metric_families(text):
        labels[family.name] = set()
        for sample in family.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)
            values[(sample.name, *sample.labels.values())] = sample.value
    assert values["teletape_sessions_parked_total",] == 1
    assert values["teletape_session_start_seconds_count", "created"] == 1
    assert values["teletape_session_start_seconds_count", "woken"] == 1
    assert values["teletape_session_start_seconds_count", "run"] == 1
    assert values["teletape_session_starts_failed_total",] == 0
    assert values["teletape_key_run_wait_seconds_count", "bob"] == 1
    assert values["teletape_key_body_bytes_total", "bob"] > 200
    assert values["teletape_key_answer_bytes_total", "bob"] > 20
    assert values["teletape_key_session_request_seconds_count", "bob"] >= 2
    assert values["teletape_key_queue_seconds_total", "bob"] >= 0
    return labels


@pytest.mark.parametrize("expression", [item["expr"] for item in (*TARGETS, *ALERTS)])
def test_an_expression_names_what_there_is(metrics: dict[str, set[str]], expression: str) -> None:
    names = set(NAME.findall(expression))
    assert names
    # A counter without labels' values has no samples yet, and a histogram none of its own name.
    assert {
        name for name in names if not ({name, re.sub(r"_(total|bucket|count|sum)$", "", name)} & metrics.keys())
    } == set()
    used = {label.strip() for by, selected in LABEL.findall(expression) for label in (by or selected).split(",")}
    known = SCRAPED.union(
        *(labels for name, labels in metrics.items() if name.startswith(tuple(names))), *EMPTY.values()
    )
    assert used - known == set()
    assert expression.count("(") == expression.count(")")


#: Labels of metrics that have no samples on this server.
EMPTY = {"teletape_sessions_ended_total": {"reason"}, "teletape_published_calls_total": {"function"}}


def test_panels_and_alerts_have_names_of_their_own() -> None:
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len({*ids}) == len(ids)
    names = [rule["alert"] for rule in ALERTS]
    assert len({*names}) == len(names)
    for rule in ALERTS:
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert rule["annotations"]["summary"].endswith(".")
    for panel in DASHBOARD["panels"]:
        assert panel["title"]
        assert panel["type"] == "row" or panel["targets"]
