// Fills the API page. Apart from it, since the page's policy allows no script inside its text.

const dark = matchMedia("(prefers-color-scheme: dark)");
const applyTheme = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", applyTheme);
applyTheme();

/** The headers of the last request: a picture of its answer is asked for with the same key. */
let lastHeaders = {};

/** A row for each status with problems: their codes lead to their pages, in place of the same body nine times. */
function problemRow({ createElement }, code, description) {
  const parts = description.split(/`([a-z_]+)`/);
  const shown = parts.map((part, position) =>
    position % 2 ? createElement("a", { key: part, href: `problems/${part}` }, part) : part,
  );
  return createElement(
    "tr",
    { className: "response problems" },
    createElement("td", { className: "response-col_status" }, code),
    createElement("td", { className: "response-col_description" }, shown),
    createElement("td", null),
  );
}

/** The graph of a tape as a picture, drawn by the server. */
function picture({ createElement, useEffect, useState }) {
  return function Picture({ url }) {
    const [source, setSource] = useState(null);
    const [problem, setProblem] = useState(null);
    useEffect(() => {
      const address = new URL(url);
      address.searchParams.set("format", "svg");
      fetch(address, { headers: { ...lastHeaders, Accept: "image/svg+xml" } })
        .then(async (response) => {
          const text = await response.text();
          if (response.ok) setSource("data:image/svg+xml," + encodeURIComponent(text));
          else setProblem(JSON.parse(text).detail);
        })
        .catch(() => setProblem("The server does not answer."));
    }, [url]);
    if (problem) return createElement("p", null, problem);
    return source && createElement("img", { className: "picture", src: source, alt: "The graph of the tape" });
  };
}

/** Parameters that only a binary body needs are shown by the switch at the top, and by default not. */
const OF_BINARY_BODIES = /^For a (binary body|body of the type)/;

function binaryParameter(React, Original) {
  return function Parameter(props) {
    const description = props.rawParam?.get("description") ?? props.param?.get("description") ?? "";
    const [shown, setShown] = React.useState(binary.checked);
    React.useEffect(() => {
      const follow = () => setShown(binary.checked);
      binary.addEventListener("change", follow);
      return () => binary.removeEventListener("change", follow);
    }, []);
    return OF_BINARY_BODIES.test(description) && !shown ? null : React.createElement(Original, props);
  };
}

const binary = document.getElementById("binary");

/** Keeps the operations whose path, summary, description or tag has all words of the phrase. */
function opsFilter(taggedOps, phrase) {
  const words = phrase.toLowerCase().split(/\s+/).filter(Boolean);
  return taggedOps
    .map((tag, name) =>
      tag.update("operations", (operations) =>
        operations.filter((entry) => {
          const operation = entry.get("operation");
          const text = [name, entry.get("path"), operation.get("summary"), operation.get("description")].join(" ").toLowerCase();
          return words.every((word) => text.includes(word));
        }),
      ),
    )
    .filter((tag) => tag.get("operations").size);
}

/** A part of the document with what its references lead to in their places, but for those that lead into themselves. */
function inlined(document, part, above = []) {
  if (Array.isArray(part)) return part.map((entry) => inlined(document, entry, above));
  if (part === null || typeof part !== "object") return part;
  const { $ref: reference, ...beside } = part;
  if (typeof reference !== "string") {
    return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, inlined(document, value, above)]));
  }
  if (above.includes(reference)) return part;
  const target = reference.slice(2).split("/").reduce((value, key) => value[key], document);
  return inlined(document, { ...target, ...beside }, [...above, reference]);
}

/** What an operation needs, once it is opened. Swagger UI's own function reads the whole document, for two seconds. */
async function resolveSubtree(document, path) {
  return { errors: [], spec: inlined(document, path.reduce((value, key) => value?.[key], document)) };
}

function TeletapePlugin({ React }) {
  const Picture = picture(React);
  return {
    fn: { opsFilter, resolveSubtree },
    wrapComponents: {
      parameterRow: (Original) => binaryParameter(React, Original),
      response: (Original) => (props) =>
        /^2/.test(props.code)
          ? React.createElement(Original, props)
          : problemRow(React, props.code, props.response.get("description") ?? ""),
      responseBody: (Original) => (props) =>
        /\/graph(\?|$)/.test(props.url ?? "") && /json|svg/.test(props.contentType ?? "")
          ? React.createElement(
              "div",
              null,
              React.createElement(Picture, { url: props.url }),
              React.createElement(Original, props),
            )
          : React.createElement(Original, props),
    },
  };
}

window.ui = SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#page",
  deepLinking: true,
  defaultModelsExpandDepth: -1,
  displayRequestDuration: true,
  docExpansion: "list",
  filter: true,
  layout: "BaseLayout",
  onComplete: () => (document.querySelector(".operation-filter-input").placeholder = "Filter by words of paths and descriptions"),
  plugins: [TeletapePlugin],
  requestInterceptor: (request) => {
    if (!request.loadSpec) {
      const { Authorization, "X-API-Key": key } = request.headers;
      lastHeaders = { ...(Authorization && { Authorization }), ...(key && { "X-API-Key": key }) };
    }
    return request;
  },
  syntaxHighlight: { activated: true, theme: "agate" },
  tryItOutEnabled: true,
  validatorUrl: null,
});
