/** Types of the client: those of the OpenAPI document, with tensors in place of {dtype, shape, data}. */

import type { components } from "./api.js";
import type { ProblemError } from "./problem.js";
import type { Session } from "./session.js";
import type { Tensor } from "./tensor.js";

export type Schemas = components["schemas"];

/** An answer, in which each tensor is a `Tensor`. */
export type WithTensors<T> = unknown extends T
  ? T
  : T extends { dtype: string; shape: number[] }
    ? "data" extends keyof T
      ? Tensor
      : T
    : T extends readonly (infer Member)[]
      ? WithTensors<Member>[]
      : T extends object
        ? { [Name in keyof T]: WithTensors<T[Name]> }
        : T;

/** The answer of an operation, by the name of its schema. */
export type Answer<Name extends keyof Schemas> = Promise<WithTensors<Schemas[Name]>>;

export interface Options {
  /** Ends the wait. */
  signal?: AbortSignal;
  /** Milliseconds after which the request fails; without it those of the client. */
  timeout?: number;
  /** Gets the progress of a request that computes. */
  onProgress?: (progress: Schemas["Progress"]) => void;
  /** Makes a retry safe: the same key gets the first answer again. */
  idempotencyKey?: string;
}

/** Makes again what a program needs in a session that was lost; `session` is new and empty. */
export type WhenLost = (session: Session, problem: ProblemError) => void | Promise<void>;
