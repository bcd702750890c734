// Against a server that answers each request with the next item of a list.

import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import test, { after, before, beforeEach } from "node:test";

import { Teletape } from "../src/index.js";

const PROGRESS = { status: "running", done: 1, total: 3 };
let address;
let answers = [];
let requests = [];

const listening = http.createServer(async (request, response) => {
  let body = "";
  for await (const part of request) body += part;
  requests.push([request.method, request.url, request.headers["idempotency-key"], body]);
  const [status, headers, answer] = answers.shift();
  response.writeHead(status, headers);
  if (answer !== undefined) response.end(typeof answer === "string" ? answer : JSON.stringify(answer));
});

before(async () => {
  await new Promise((resolve) => listening.listen(0, "127.0.0.1", resolve));
  address = `http://127.0.0.1:${listening.address().port}`;
});
after(() => {
  listening.closeAllConnections();
  listening.close();
});
beforeEach(() => {
  requests = [];
});

const running = [202, { "Retry-After": "0" }, PROGRESS];
const busy = [429, { "Retry-After": "0" }, { code: "busy", detail: "too many", status: 429 }];
const ending = [503, { "Retry-After": "0" }, { code: "shutting_down", detail: "it ends", status: 503 }];

test("a request that the server still computes is sent again until its answer is there", async () => {
  answers = [...Array(9).fill(running), [200, {}, { values: 1 }]];
  const answer = await new Teletape(address).request("POST", "/v1/run", { commands: [] }, { idempotencyKey: "k" });
  assert.deepEqual(answer, { values: 1 });
  assert.equal(requests.length, 10);
  assert.equal(new Set(requests.map(String)).size, 1);
  assert.deepEqual(requests[0], ["POST", "/v1/run", "k", '{"commands":[]}']);
});

test("the answer to a request with an address is waited for there, and its body is sent once", async () => {
  const later = [202, { "Retry-After": "0", Location: "https://gate.example/v1/requests/kD3_x-9" }, PROGRESS];
  answers = [later, later, busy, later, [200, {}, { values: 1 }]];
  const client = new Teletape(address, { apiKey: "secret" });
  const answer = await client.request("POST", "/v1/run", { commands: [] }, { idempotencyKey: "k" });
  assert.deepEqual(answer, { values: 1 });
  assert.deepEqual(requests[0], ["POST", "/v1/run", "k", '{"commands":[]}']);
  assert.deepEqual(new Set(requests.slice(1).map(String)), new Set(["GET,/v1/requests/kD3_x-9,,"]));
  assert.equal(requests.length, 5);
});

test("a request whose address is forgotten is sent again", async () => {
  const later = [202, { "Retry-After": "0", Location: "/v1/requests/kD3_x-9" }, PROGRESS];
  answers = [later, [404, {}, { code: "request_not_found", status: 404 }], later, [200, {}, { values: 2 }]];
  const answer = await new Teletape(address).request("POST", "/v1/run", { commands: [] }, { idempotencyKey: "k" });
  assert.deepEqual(answer, { values: 2 });
  assert.deepEqual(requests.map(([method]) => method), ["POST", "GET", "POST", "GET"]);
});

test("so is one of bytes, at a server that names no address", async () => {
  answers = [running, [200, {}, "bytes"]];
  const response = await new Teletape(address).response("GET", "/v1/x");
  assert.equal(await response.text(), "bytes");
});

test("a status 202 that asks for nothing is an answer", async () => {
  answers = [[202, {}, { id: "s" }]];
  assert.deepEqual(await new Teletape(address).request("POST", "/v1/sessions/s/cancel"), { id: "s" });
});

test("what a busy server refuses is sent again, so often", async () => {
  answers = [busy, ending, [200, {}, { values: 2 }]];
  assert.deepEqual(await new Teletape(address).request("GET", "/v1/x"), { values: 2 });
  for (const [retries, code] of [[undefined, "busy"], [0, "busy"], [1, "busy"]]) {
    requests = [];
    answers = Array(9).fill(busy);
    await assert.rejects(new Teletape(address, { retries }).request("GET", "/v1/x"), { code, status: 429 });
    assert.equal(requests.length, 1 + (retries ?? 3));
  }
});

test("what is refused without a time is not sent again", async () => {
  answers = [[503, {}, "<html>down</html>"]];
  await assert.rejects(new Teletape(address).request("GET", "/v1/x"), { status: 503 });
  answers = [[409, { "Retry-After": "0" }, { code: "conflict", status: 409 }]];
  await assert.rejects(new Teletape(address).request("GET", "/v1/x"), { code: "conflict" });
  assert.equal(requests.length, 2);
});

test("a time limit ends waits, requests without an answer, and answers without an end", async () => {
  const later = [503, { "Retry-After": "3600" }, {}];
  const withoutEnd = [200, { "Content-Length": "100" }];
  for (const answer of [later, [202, { "Retry-After": "nan" }, PROGRESS], withoutEnd]) {
    answers = [answer];
    await assert.rejects(new Teletape(address, { timeout: 50 }).request("GET", "/v1/x"), { code: "timeout", status: 0 });
    answers = [answer];
    await assert.rejects(new Teletape(address).request("GET", "/v1/x", undefined, { timeout: 50 }), { code: "timeout" });
  }
});

test("a signal ends a wait with its own reason", async () => {
  const controller = new AbortController();
  answers = [[503, { "Retry-After": "5" }, {}]];
  const request = new Teletape(address).request("GET", "/v1/x", undefined, { signal: controller.signal, timeout: 60000 });
  await once(listening, "request");
  controller.abort(new RangeError("the caller's"));
  await assert.rejects(request, RangeError);
});

test("an error of the program's own passes as it is", async () => {
  answers = [[200, { "Content-Type": "text/event-stream" }, 'event: progress\ndata: {"done": 1}\n\n']];
  const onProgress = () => {
    throw new RangeError("the program's");
  };
  await assert.rejects(new Teletape(address).request("GET", "/v1/x", undefined, { onProgress }), RangeError);
});
