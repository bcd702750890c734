"""A published function as a model of the Open Inference Protocol: values and gradients as bytes (tritonclient)."""

import json
import os
import urllib.request

import numpy as np
import tritonclient.http as triton


def main(url: str) -> None:
    line = {"function": {"text": "error = mean((x @ w - y)**2)"}, "weights": {"w": [1.5, -0.5]}}
    line["inputs"] = {"x": {"shape": ["n", 2]}, "y": {"shape": ["n"]}}
    body, kind = json.dumps(line).encode(), {"Content-Type": "application/json"}
    urllib.request.urlopen(urllib.request.Request(f"{url}/v1/published/line", body, kind, method="PUT"))
    client = triton.InferenceServerClient(url.removeprefix("http://"))
    print(client.is_server_live(), client.is_model_ready("line"))
    print([output["name"] for output in client.get_model_metadata("line")["outputs"]])
    x = np.array([[0.5, 1.5], [2.5, 0.5]], np.float32)
    y = np.array([0.5, 3.5], np.float32)
    inputs = [triton.InferInput("x", [2, 2], "FP32"), triton.InferInput("y", [2], "FP32")]
    inputs[0].set_data_from_numpy(x)
    inputs[1].set_data_from_numpy(y)
    outputs = [triton.InferRequestedOutput(name) for name in ("error", "gradient:x", "gradient:w")]
    result = client.infer("line", inputs, outputs=outputs)
    for name in ("error", "gradient:x", "gradient:w"):
        print(name, result.as_numpy(name).tolist())


if __name__ == "__main__":
    main(os.environ.get("TELETAPE_URL", "http://127.0.0.1:8470"))
