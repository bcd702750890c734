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

/** The request's body with a command in each line. */
export function body({ commands, fetch }, write = spaced, indent = "") {
  const lines = commands.map(({ where, ...command }) => `${indent}    ${write(command)}`);
  return `{\n${indent}  "commands": [\n${lines.join(",\n")}\n${indent}  ],\n${indent}  "fetch": ${write(fetch ?? [])}\n${indent}}`;
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

/** The languages, each with its name and a function from a program to a text. */
export const LANGUAGES = { curl: ["curl", curl], python: ["Python", pythonText], javascript: ["JavaScript", javascript] };
