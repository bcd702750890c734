// The gradient of sin(x)·x at 2, from JavaScript with nothing installed: node examples/gradient.mjs
// TELETAPE_URL says where the server is, TELETAPE_API_KEY holds its key if it asks for one.

const url = process.env.TELETAPE_URL ?? "http://127.0.0.1:8470";
const key = process.env.TELETAPE_API_KEY;

const answer = await fetch(`${url}/v1/run`, {
  method: "POST",
  headers: { "Content-Type": "application/json", ...(key && { Authorization: `Bearer ${key}` }) },
  body: JSON.stringify({
    commands: [
      { do: "variable", id: "x", value: 2.0 },
      { do: "tape.open", id: "t" },
      { do: "op", op: "sin", inputs: ["x"], outputs: ["s"] },
      { do: "op", op: "mul", inputs: ["s", "x"], outputs: ["y"] },
      { do: "gradient", tape: "t", targets: ["y"], sources: ["x"], outputs: ["dx"] },
    ],
    fetch: ["y", "dx"],
  }),
});
const body = await answer.json();
if (!answer.ok) {
  throw new Error(`${body.title}: ${body.detail}`);
}
console.log(`y  = ${body.values.y.data}`);
console.log(`dx = ${body.values.dx.data}`);
