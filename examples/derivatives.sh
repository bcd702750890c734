#!/usr/bin/env bash
# What else a tape and a function answer, by curl: a Jacobian, a Hessian-vector product, why a gradient is null, a check
# against differences, a picture; a function's gradient, and a loop over it in one request.
# TELETAPE_URL says where the server is, TELETAPE_API_KEY holds its key if it asks for one.
set -euo pipefail

url=${TELETAPE_URL:-http://127.0.0.1:8470}/v1
session=$url/sessions/derivatives
ask() {
    curl --silent --show-error --fail-with-body --header 'Content-Type: application/json' \
        ${TELETAPE_API_KEY:+--header "Authorization: Bearer $TELETAPE_API_KEY"} "$@"
    echo
}

ask "$url/sessions" --data '{"id": "derivatives", "replace": true}'
ask "$session/variables" --data '{"id": "w", "value": [1.0, 2.0, 3.0]}'

# cubes = w³ and their sum; steps = round(w), through which no gradient passes
ask "$session/tapes" --data '{"id": "tape", "persistent": true, "replayable": true}'
ask "$session/tapes/tape/ops" --data '{"ops": [
    {"op": "pow", "inputs": ["w", 3.0], "outputs": ["cubes"]},
    {"op": "reduce_sum", "inputs": ["cubes"], "outputs": ["loss"]},
    {"op": "round", "inputs": ["w"], "outputs": ["steps"], "where": "derivatives.sh:23"}]}'

# [d cubes / d w] and the Hessian of the loss times a vector: two questions, one request
ask "$session/tapes/tape/questions" --data '{"questions": [
    {"do": "jacobian", "targets": ["cubes"], "sources": ["w"]},
    {"do": "hvp", "targets": ["loss"], "sources": ["w"], "vectors": [[0.5, 0.5, 0.5]]}]}'

# null: why, and at which line of the caller's
ask "$session/tapes/tape/gradient" --data '{"targets": ["steps"], "sources": ["w"]}'
ask "$session/tapes/tape/explain" --data '{"targets": ["steps"], "sources": ["w"]}'

# are the gradients right? what does the tape look like?
ask "$session/tapes/tape/check_gradients" --data '{"targets": ["loss"], "sources": ["w"]}'
ask "$session/tapes/tape/graph?targets=steps&sources=w&format=dot"

# Newton's step for the square root of a: results and gradients in one request, then the loop, which a tape records
ask "$session/functions" --data '{"id": "newton", "inputs": ["x", "a"], "outputs": ["next"], "steps": [
    {"op": "div", "inputs": ["a", "x"], "outputs": ["quotient"]},
    {"op": "add", "inputs": ["x", "quotient"], "outputs": ["sum"]},
    {"op": "mul", "inputs": ["sum", 0.5], "outputs": ["next"]}]}'
ask "$session/functions/newton/value_and_gradient" --data '{"inputs": [4.5, 2.5], "sources": ["a"]}'
ask "$session/variables" --data '{"id": "a", "value": 2.25}'
ask "$session/tapes" --data '{"id": "loop"}'
ask "$session/functions/newton/scan" --data '{
    "inputs": [4.5, "a"], "carried": 1, "captured": 1, "length": 8, "tape": "loop", "outputs": ["root"]}'
ask "$session/tapes/loop/gradient" --data '{"targets": ["root"], "sources": ["a"]}'

# a gradient of the caller's own: the pass stops at the call, and goes on with what the caller gives
ask "$url/run" --data '{"commands": [
    {"do": "variable", "id": "x", "value": [3.5, 4.5]},
    {"do": "tape.open", "id": "t"},
    {"do": "op", "op": "identity", "inputs": ["x"], "outputs": ["y"]},
    {"do": "custom", "inputs": ["x"], "outputs": ["y"], "tag": "clipped"},
    {"do": "op", "op": "square", "inputs": ["y"], "outputs": ["loss"]},
    {"do": "backward.begin", "id": "b", "tape": "t", "targets": ["loss"], "sources": ["x"]},
    {"do": "backward.cotangents", "id": "b", "outputs": ["dy"], "tag": "clipped"},
    {"do": "op", "op": "clip_by_value", "inputs": ["dy", -7.5, 7.5], "outputs": ["dx"]},
    {"do": "backward.resume", "id": "b", "cotangents": ["dx"]},
    {"do": "backward.end", "id": "b", "outputs": ["gradient"]}],
    "fetch": ["gradient"]}'

ask "$session" --request DELETE
