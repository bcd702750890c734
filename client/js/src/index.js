/**
 * A client for Teletape servers, in Node and in browsers, without dependencies.
 *
 * The types of requests and answers in `api.d.ts` are generated from the server's OpenAPI document.
 */

export { Teletape } from "./client.js";
export { ProblemError } from "./problem.js";
export { PublishedFunction } from "./published.js";
export { SavedFunction, Session, Tape } from "./session.js";
export { Tensor } from "./tensor.js";
