#!/usr/bin/env bash
# A session by curl, from create to delete: a variable, a tape, ops on it, a gradient, a gradient descent step.
# TELETAPE_URL says where the server is, TELETAPE_API_KEY holds its key if it requires one.
set -euo pipefail

url=${TELETAPE_URL:-http://127.0.0.1:8470}/v1
ask() {
    curl --silent --show-error --fail-with-body --header 'Content-Type: application/json' \
        ${TELETAPE_API_KEY:+--header "Authorization: Bearer $TELETAPE_API_KEY"} "$@"
    echo
}

ask "$url/sessions" --data '{"id": "walk", "replace": true}'
ask "$url/sessions/walk/variables" --data '{"id": "w", "value": [1.0, 2.0, 3.0]}'
ask "$url/sessions/walk/tensors" --data '{"id": "x", "value": [4.0, 5.0, 6.0]}'

# loss = sum((w·x)²), recorded
ask "$url/sessions/walk/tapes" --data '{"id": "tape", "persistent": true}'
ask "$url/sessions/walk/tapes/tape/ops" --data '{"ops": [
    {"op": "mul", "inputs": ["w", "x"], "outputs": ["y"]},
    {"op": "square", "inputs": ["y"], "outputs": ["squares"]},
    {"op": "reduce_sum", "inputs": ["squares"], "outputs": ["loss"]}]}'

# the gradient, stored as dw
ask "$url/sessions/walk/tapes/tape/gradient" --data '{"targets": ["loss"], "sources": ["w"], "outputs": ["dw"]}'

# w -= dw / 100
ask "$url/sessions/walk/ops" --data '{"ops": [{"op": "mul", "inputs": ["dw", 0.01], "outputs": ["step"]}]}'
ask "$url/sessions/walk/variables/w" --request PUT --data '{"value": "step", "mode": "sub"}'
ask "$url/sessions/walk/variables/w"

# a tensor's bytes in, and out again
printf '\000\000\200?\000\000\000@' | curl --silent --fail --data-binary @- "$url/sessions/walk/tensors?id=raw" \
    ${TELETAPE_API_KEY:+--header "Authorization: Bearer $TELETAPE_API_KEY"} \
    --header 'Content-Type: application/octet-stream' --header 'Tensor-Dtype: float32' --header 'Tensor-Shape: 2'
echo
ask "$url/sessions/walk/tensors/raw" --header 'Accept: application/octet-stream' --dump-header - --output /dev/null

ask "$url/sessions/walk" --request DELETE
