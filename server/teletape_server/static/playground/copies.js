// What was just done, as curl, Python and JavaScript: texts that run as they are.

import { apiKey } from "../shared/api.js";

const URL_OF_RUN = () => new URL("v1/run", document.baseURI).href;

/** JSON in one line, with spaces after commas and colons. */
function spaced(value) {
  if (Array.isArray(value)) return `[${value.map(spaced).join(", ")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${spaced(item)}`).join(", ")}}`;
}

function python(value) {
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${python(item)}`).join(", ")}}`;
}

/** A program, or the body of a batch, with a command in each line. */
export function body({ commands, fetch }, write = spaced, indent = "") {
  const lines = commands.map(({ where, ...command }) => `${indent}    ${write(command)}`);
  return `{\n${indent}  "commands": [\n${lines.join(",\n")}\n${indent}  ]${fetch ? `,\n${indent}  "fetch": ${write(fetch)}` : ""}\n${indent}}`;
}

function curl(program) {
  const key = apiKey() ? ` \\\n  -H "Authorization: Bearer $TELETAPE_API_KEY"` : "";
  const text = body(program, spaced, "").replaceAll("'", "'\\''");
  return `curl -s ${URL_OF_RUN()} -H 'Content-Type: application/json'${key} -d '${text}'`;
}

function pythonText(program) {
  const key = apiKey() ? `, "Authorization": "Bearer " + os.environ["TELETAPE_API_KEY"]` : "";
  return `import json
${apiKey() ? "import os\n" : ""}import urllib.request

program = ${body(program, python, "")}
request = urllib.request.Request(
    ${JSON.stringify(URL_OF_RUN())},
    data=json.dumps(program).encode(),
    headers={"Content-Type": "application/json"${key}},
)
print(json.load(urllib.request.urlopen(request))["values"])`;
}

function javascript(program) {
  const key = apiKey() ? `, Authorization: \`Bearer \${process.env.TELETAPE_API_KEY}\`` : "";
  return `const response = await fetch(${JSON.stringify(URL_OF_RUN())}, {
  method: "POST",
  headers: { "Content-Type": "application/json"${key} },
  body: JSON.stringify(${body(program, spaced, "  ")}),
});
console.log((await response.json()).values);`;
}

const URL_OF_SESSIONS = () => new URL("v1/sessions", document.baseURI).href;

const written = (content, write) => (content.commands ? body(content, write) : write(content));

/** Several requests below /v1/sessions; the answer of the one before the last is shown. */
function curlOfAll(requests) {
  const key = apiKey() ? ` -H "Authorization: Bearer $TELETAPE_API_KEY"` : "";
  const lines = requests.map(({ method, path, body: content }) =>
    content
      ? `curl -s "$S${path}" -H "$J"${key} -d '${written(content, spaced).replaceAll("'", "'\\''")}'`
      : `curl -s -X ${method} "$S${path}"${key}`,
  );
  return `S=${URL_OF_SESSIONS()}\nJ='Content-Type: application/json'\n${lines.join("\n")}`;
}

function pythonOfAll(requests) {
  const key = apiKey() ? `, "Authorization": "Bearer " + os.environ["TELETAPE_API_KEY"]` : "";
  const calls = requests.map(({ method, path, body: content }, i) => {
    const call = `send(${JSON.stringify(method)}, ${JSON.stringify(path)}${content ? `, ${written(content, python)}` : ""})`;
    return i === requests.length - 2 ? `answer = ${call}\nprint(answer["loss"], answer["values"])` : call;
  });
  return `import json
${apiKey() ? "import os\n" : ""}import urllib.request


def send(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"${key}}
    request = urllib.request.Request(${JSON.stringify(URL_OF_SESSIONS())} + path, data, headers, method=method)
    return json.loads(urllib.request.urlopen(request).read() or "null")


${calls.join("\n")}`;
}

function javascriptOfAll(requests) {
  const key = apiKey() ? `, Authorization: \`Bearer \${process.env.TELETAPE_API_KEY}\`` : "";
  const calls = requests.map(({ method, path, body: content }, i) => {
    const call = `await send(${JSON.stringify(method)}, ${JSON.stringify(path)}${content ? `, ${written(content, spaced)}` : ""});`;
    return i === requests.length - 2 ? `const answer = ${call}\nconsole.log(answer.loss, answer.values);` : call;
  });
  return `async function send(method, path, body) {
  const headers = { "Content-Type": "application/json"${key} };
  const response = await fetch(${JSON.stringify(URL_OF_SESSIONS())} + path, { method, headers, body: body && JSON.stringify(body) });
  return response.status === 204 ? null : response.json();
}

${calls.join("\n")}`;
}

/** The languages, each with its name and functions from a program and from a list of requests to a text. */
export const LANGUAGES = {
  curl: ["curl", curl, curlOfAll],
  python: ["Python", pythonText, pythonOfAll],
  javascript: ["JavaScript", javascript, javascriptOfAll],
};
