//! Logistic regression by a Teletape server, and a null that is explained.
//!
//! Needs the crates ureq 2 (feature json) and serde_json 1; Cargo.toml beside this file names them:
//! `cargo run --manifest-path examples/clients/Cargo.toml`. TELETAPE_URL says where the server is, TELETAPE_API_KEY
//! holds its key if it asks for one.

use serde_json::{json, Value};

/// A server of Teletape.
struct Server {
    url: String,
    key: Option<String>,
}

impl Server {
    /// Sends a request and returns the answer's JSON.
    fn call(&self, method: &str, path: &str, body: Value) -> Result<Value, String> {
        let mut request = ureq::request(method, &format!("{}{}", self.url, path));
        if let Some(key) = &self.key {
            request = request.set("Authorization", &format!("Bearer {key}"));
        }
        match request.send_json(body) {
            Ok(answer) if answer.status() == 204 => Ok(Value::Null),
            Ok(answer) => answer.into_json().map_err(|error| error.to_string()),
            Err(ureq::Error::Status(_, refusal)) => {
                let problem: Value = refusal.into_json().map_err(|error| error.to_string())?;
                Err(format!("{}: {}", problem["code"], problem["detail"]))
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

fn main() -> Result<(), String> {
    let server = Server {
        url: std::env::var("TELETAPE_URL").unwrap_or_else(|_| "http://127.0.0.1:8470".into()),
        key: std::env::var("TELETAPE_API_KEY").ok(),
    };
    let session = "/v1/sessions/rust";
    server.call("POST", "/v1/sessions", json!({"id": "rust", "replace": true}))?;
    server.call("POST", &format!("{session}/functions"), json!({
        "id": "loss",
        "inputs": ["w", "x", "y"],
        "steps": [
            {"op": "matmul", "inputs": ["x", "w"], "outputs": ["logits"]},
            {"op": "sigmoid_cross_entropy", "inputs": ["y", "logits"], "outputs": ["losses"]},
            {"op": "reduce_mean", "inputs": ["losses"], "outputs": ["loss"]}
        ],
        "outputs": ["loss"]
    }))?;

    let x = json!([[1.0, -2.0], [1.0, -1.0], [1.0, 1.0], [1.0, 2.0]]);
    let y = json!([[0.0], [0.0], [1.0], [1.0]]);
    let mut w = [0.0, 0.0];
    let mut loss = 0.0;
    for _ in 0..50 {
        let answer = server.call("POST", &format!("{session}/functions/loss/value_and_gradient"), json!({
            "inputs": {"w": [[w[0]], [w[1]]], "x": x, "y": y},
            "sources": ["w"]
        }))?;
        let gradient = &answer["derivatives"][0]["value"]["data"];
        for i in 0..2 {
            w[i] -= gradient[i][0].as_f64().ok_or("no number")?;
        }
        loss = answer["values"]["loss"]["data"].as_f64().ok_or("no number")?;
    }
    println!("loss after 50 steps: {loss:.3}");

    server.call("POST", &format!("{session}/functions"), json!({
        "id": "steps", "inputs": ["x"], "outputs": ["y"],
        "steps": [{"op": "round", "inputs": ["x"], "outputs": ["y"]}]
    }))?;
    let answer = server.call("POST", &format!("{session}/functions/steps/gradient"), json!({"inputs": [2.7]}))?;
    let why = &answer["derivatives"][0]["why"];
    println!(
        "the gradient of round is null: {} ({})",
        why["code"].as_str().unwrap_or("?"),
        why["op"].as_str().unwrap_or("?")
    );

    server.call("DELETE", session, Value::Null)?;
    Ok(())
}
