/**
 * The path of most key API requests: it answers a GET of one key, and a PUT or POST of a small form, before Fastify's
 * router runs. Measured: Fastify's own path costs as much processor time as all the rest of a GET.
 *
 * It takes only requests that meet all conditions, before it reads any of their body: a plain target without escapes, a
 * form of known and small length, a key that is a file, credentials that the door admits, a server that is not ending.
 * The routes answer everything else. Both give the same bytes.
 */

import type { IncomingMessage } from "node:http";
import { type StorePath, storePath } from "../../store/core/node.ts";
import { StoreError } from "../../store/core/refusal.ts";
import type { WireResponse } from "../response-headers.ts";
import type { FastPath } from "../server.ts";
import { pathEnd } from "../target.ts";
import { type KeyAnswer, type KeyAnswers, refuseLongKey } from "./answers.ts";
import { corsWireHeaders } from "./reply.ts";
import { parseKeysRequest } from "./request.ts";
import { keysPrefix } from "./target.ts";

export interface KeysFastPathOptions {
  readonly answers: KeyAnswers;
  /** True for a request that may continue. */
  readonly admits: (request: IncomingMessage) => boolean;
}

// Larger forms come in many pieces, and cost more than this path saves.
const maxFormBytes = 16 * 1024;
const formType = "application/x-www-form-urlencoded";

/** Makes the `fastPath` option of `createServer`. */
export function keysFastPath({ answers, admits }: KeysFastPathOptions): FastPath {
  return (request, response, fail) => {
    const target = plainTarget(request);
    if (target === undefined || !admits(request)) return false;
    if (request.method === "GET") return answerGet(answers, target, response);
    const { method } = request;
    if ((method !== "PUT" && method !== "POST") || !hasSmallForm(request)) return false;
    answerWrite(answers, { ...target, method, request, response, fail });
    return true;
  };
}

interface PlainKeysTarget {
  readonly path: StorePath;
  readonly query: string;
}

// Names of characters without a special meaning in the protocol, and not of dots alone.
const plainKey = /^(?:\/(?!\.{1,2}(?:\/|$))[\w.~!$'()*,:@+=&-]+)+$/;
const longestTarget = 2_048;

/** The key and query of a target without escapes; undefined for any other. */
function plainTarget({ url = "", headers, httpVersionMinor }: IncomingMessage): PlainKeysTarget | undefined {
  if (!url.startsWith(`${keysPrefix}/`) || url.length > longestTarget) return undefined;
  if (headers.host === undefined && httpVersionMinor !== 0) return undefined;
  const end = pathEnd(url);
  const key = url.slice(keysPrefix.length, end);
  if (!plainKey.test(key)) return undefined;
  return { path: storePath(key), query: url.slice(end + 1) };
}

function answerGet(answers: KeyAnswers, { path, query }: PlainKeysTarget, response: WireResponse): boolean {
  const answer = isPlainRead(path, query) ? answers.readFile(path) : undefined;
  if (answer === undefined) return false;
  send(response, answer);
  return true;
}

function isPlainRead(path: StorePath, query: string): boolean {
  if (query === "") return true;
  try {
    return parseKeysRequest({ method: "GET", path, query }).kind === "read";
  } catch (error) {
    if (error instanceof StoreError) return false;
    throw error;
  }
}

function hasSmallForm({ headers }: IncomingMessage): boolean {
  return headers["content-type"] === formType && Number(headers["content-length"]) <= maxFormBytes;
}

interface Write extends PlainKeysTarget {
  readonly method: "PUT" | "POST";
  readonly request: IncomingMessage;
  readonly response: WireResponse;
  readonly fail: (thrown: unknown) => void;
}

/** Waits for the form. A client that disconnects early gets no answer; Node cuts one that is too slow. */
function answerWrite(answers: KeyAnswers, write: Write): void {
  let form = "";
  write.request.on("data", (piece: Buffer) => {
    form += piece.toString("latin1");
  });
  write.request.on("end", () => void answerForm(answers, write, form));
}

async function answerForm(answers: KeyAnswers, write: Write, form: string): Promise<void> {
  const { method, path, query, response, fail } = write;
  try {
    send(response, await written(answers, { method, path, query, form }));
  } catch (error) {
    fail(error);
  }
}

async function written(
  answers: KeyAnswers,
  request: Pick<Write, "method" | "path" | "query"> & { readonly form: string },
): Promise<KeyAnswer> {
  try {
    refuseLongKey(request.path);
    const parsed = parseKeysRequest(request);
    if (parsed.kind !== "write") throw new TypeError("A PUT is a write, and so is a POST");
    return await answers.write(parsed);
  } catch (error) {
    if (error instanceof StoreError) return answers.refusal(error);
    throw error;
  }
}

function send(response: WireResponse, { status, headers, body }: KeyAnswer): void {
  const [typeName = "", type = "", ...others] = headers;
  const length = String(Buffer.byteLength(body));
  response.writeOrdered(status, [typeName, type, ...corsWireHeaders, ...others, "Content-Length", length]);
  response.end(body);
}
