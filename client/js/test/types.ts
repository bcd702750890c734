// Compiled, never run: what the types accept, and what they refuse.

import { Teletape, Tensor } from "@teletape/client";

const server = new Teletape("http://127.0.0.1:8470");

export async function programs(): Promise<number[]> {
  const answer = await server.run({
    commands: [
      { do: "variable", id: "x", value: new Tensor([2.5]) },
      { do: "tape.open", id: "t" },
      { do: "op", op: "square", inputs: ["x"], outputs: ["y"] },
      { do: "gradient", tape: "t", targets: ["y"], sources: ["x"], outputs: ["dx"] },
    ],
    fetch: ["dx"],
  });
  const dx: Tensor | null | undefined = answer.values["dx"];

  const session = await server.session(
    { replace: true },
    {
      timeout: 5000,
      whenLost: async (lost, problem) => {
        if (problem.retryAfter === null) await lost.variable("w", new Tensor([1]));
      },
    },
  );
  const { losses } = await session.existingFunction("loss").train({
    inputs: { w: "w" },
    optimizer: { name: "sgd", learning_rate: 0.1 },
    steps: 3,
  });
  const curve: Tensor = losses;
  const square = await session.function({
    inputs: ["x"],
    steps: [{ op: "square", inputs: ["x"], outputs: ["y"] }],
    outputs: ["y"],
  });
  const { derivatives } = await square.gradient({ inputs: [[1.5, 2.5]], sources: ["x"] });
  const shape: number[] | undefined = derivatives[0]?.value?.shape;

  const published = await server.published("square@latest").valueAndGradient({ inputs: { x: [1.5, 2.5] } });
  const output: Tensor | undefined = published.values["y"];

  // @ts-expect-error: a command that does not exist
  await server.run({ commands: [{ do: "gradint", tape: "t", targets: ["y"], sources: ["x"], outputs: ["dx"] }] });
  // @ts-expect-error: a member that does not exist
  await square.gradient({ inputs: [1.5], source: ["x"] });
  // @ts-expect-error: a dtype that does not exist
  new Tensor([1], { dtype: "float31" });

  return dx && output && shape ? shape : curve.shape;
}
