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
  const next = answers.shift() ?? [500, {}, { code: "no_answer_left", status: 500 }];
  if (next === silence) return request.socket.destroy();
  const [status, headers, answer] = next;
  response.writeHead(status, headers);
  if (headers["Content-Length"] && answer) return response.write(answer, () => request.socket.destroy());
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

const silence = "the connection breaks off";
const gone = [502, {}, "<html>bad gateway</html>"];
const running = [202, { "Retry-After": "0" }, PROGRESS];
const busy = [429, { "Retry-After": "0" }, { code: "busy", detail: "too many", status: 429 }];
const later = [202, { "Retry-After": "0", Location: "/v1/requests/kD3_x-9" }, PROGRESS];
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

test("a busy server is asked again after its own time, as seconds of the error say", async () => {
  answers = [[507, { "Retry-After": "0" }, { code: "resource_exhausted", status: 507 }], [200, {}, { values: 2 }]];
  assert.deepEqual(await new Teletape(address).request("POST", "/v1/x"), { values: 2 });
  answers = [[503, { "Retry-After": "3600" }, { code: "overloaded", status: 503 }]];
  const client = new Teletape(address, { retries: 0 });
  await assert.rejects(client.request("POST", "/v1/x"), { code: "overloaded", retryAfter: 3600 });
});

test("what is refused without a time is not sent again", async () => {
  answers = [[503, {}, "<html>down</html>"]];
  await assert.rejects(new Teletape(address).request("POST", "/v1/x"), { status: 503, retryAfter: null });
  answers = [[409, { "Retry-After": "0" }, { code: "conflict", status: 409 }]];
  await assert.rejects(new Teletape(address).request("GET", "/v1/x"), { code: "conflict" });
  assert.equal(requests.length, 2);
});

test("a request that is safe to repeat is sent again if nothing answers", async () => {
  const client = new Teletape(address);
  answers = [[200, {}, {}]];
  await client.info();
  for (const [method, idempotencyKey] of [["GET", undefined], ["POST", "k"]]) {
    requests = [];
    answers = [silence, gone, [200, {}, { values: 3 }]];
    assert.deepEqual(await client.request(method, "/v1/x", undefined, { idempotencyKey }), { values: 3 });
    assert.equal(requests.length, 3);
  }
  for (const [failure, expected] of [[silence, { code: "no_answer", status: 0 }], [gone, { status: 502 }]]) {
    requests = [];
    answers = [failure];
    await assert.rejects(client.request("POST", "/v1/x"), expected);
    assert.equal(requests.length, 1);
  }
});

test("nothing is sent again to a server that has never answered", async () => {
  for (const failure of [silence, gone]) {
    requests = [];
    answers = [failure];
    await assert.rejects(new Teletape(address).info());
    assert.equal(requests.length, 1);
  }
});

test("a server that goes away while it computes is asked for the answer until patience ends", async () => {
  answers = [later, silence, gone, silence, [200, {}, { values: 1 }]];
  assert.deepEqual(await new Teletape(address, { retries: 0 }).request("POST", "/v1/run", {}), { values: 1 });
  assert.deepEqual(new Set(requests.map(([method]) => method)), new Set(["POST", "GET"]));
  assert.equal(requests[0][0], "POST");
  answers = [later, ...Array(99).fill(silence)];
  const impatient = new Teletape(address, { patience: 300 });
  await assert.rejects(impatient.request("POST", "/v1/run", {}), { code: "no_answer", status: 0 });
  assert.ok(requests.length < 99);
});

test("an answer that breaks off is none", async () => {
  const part = [200, { "Content-Length": "100" }, "{"];
  const client = new Teletape(address);
  answers = [part];
  await assert.rejects(client.request("POST", "/v1/x"), { code: "no_answer" });
  answers = [part, [200, {}, { values: 4 }]];
  assert.deepEqual(await client.request("GET", "/v1/x"), { values: 4 });
});

test("a time limit ends waits, requests without an answer, and answers without an end", async () => {
  const busyForLong = [503, { "Retry-After": "3600" }, {}];
  const withoutEnd = [200, { "Content-Length": "100" }];
  for (const answer of [busyForLong, [202, { "Retry-After": "nan" }, PROGRESS], withoutEnd]) {
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

const ended = [410, {}, { code: "session_ended", status: 410 }];
const forgotten = [404, {}, { code: "unknown_session", status: 404 }];
const paths = () => requests.map(([method, url]) => `${method} ${url}`);

test("a session that was lost is made again, once for all requests that meet the loss", async () => {
  const calls = [];
  const whenLost = async (session, problem) => {
    calls.push([session.id, problem.code]);
    await session.variable("w", 1);
  };
  answers = [[201, {}, { id: "s1" }]];
  const session = await new Teletape(address).session({ device: "cpu", replace: true }, { whenLost });
  answers = [ended, ended, [201, {}, { id: "s2" }], [201, {}, { id: "w" }], ...Array(3).fill([200, {}, { values: 5 }])];
  const both = [session.ops({ ops: [] }), session.existingFunction("f").call({ inputs: {} })];
  assert.deepEqual(await Promise.all(both), [{ values: 5 }, { values: 5 }]);
  assert.deepEqual(calls, [["s2", "session_ended"]]);
  assert.deepEqual(JSON.parse(requests[3][3]), { device: "cpu" });
  assert.equal(paths()[4], "POST /v1/sessions/s2/variables");
  assert.deepEqual(new Set(paths().slice(5)), new Set(["POST /v1/sessions/s2/ops?full=true", "POST /v1/sessions/s2/functions/f/call?full=true"]));
  assert.equal(session.id, "s2");
});

test("a session that another program has made again is used as it is", async () => {
  const session = new Teletape(address).existingSession("work", { whenLost: assert.fail });
  answers = [forgotten, [200, {}, { id: "work" }], [200, {}, { values: 6 }]];
  assert.deepEqual(await session.run({ commands: [] }), { values: 6 });
  assert.deepEqual(JSON.parse(requests[1][3]), { id: "work" });
});

test("a loss that cannot be mended is an error, and the next request tries again", async () => {
  let calls = 0;
  const whenLost = () => {
    calls += 1;
    if (calls === 1) throw new RangeError("no data");
  };
  const session = new Teletape(address).existingSession("work", { whenLost });
  answers = [forgotten, [201, {}, { id: "work" }], [204, {}, ""]];
  await assert.rejects(session.run({ commands: [] }), RangeError);
  assert.equal(paths().at(-1), "DELETE /v1/sessions/work");
  answers = [ended, [201, {}, { id: "work" }], ended];
  await assert.rejects(session.run({ commands: [] }), { code: "session_ended" });
  assert.equal(calls, 2);
});

test("a session that the program has ended is not made again, nor one without whenLost, nor a tape", async () => {
  const client = new Teletape(address);
  const session = client.existingSession("work", { whenLost: assert.fail });
  answers = [[201, {}, { id: "t" }]];
  const tape = await session.tape();
  answers = [ended];
  await assert.rejects(tape.gradient({ targets: ["y"], sources: ["x"] }), { code: "session_ended" });
  answers = [[204, {}, ""]];
  await session.end();
  for (const over of [session, client.existingSession("work")]) {
    answers = [ended];
    await assert.rejects(over.run({ commands: [] }), { code: "session_ended" });
  }
});

test("a time limit ends the wait for a session that is made again", async () => {
  const session = new Teletape(address).existingSession("work", { whenLost: () => new Promise(() => {}) });
  answers = [forgotten, [201, {}, { id: "work" }]];
  await assert.rejects(session.run({ commands: [] }, { timeout: 50 }), { code: "timeout" });
});
