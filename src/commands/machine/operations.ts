/** Asks the operations listener of a davit. Messages never have the token. */

import { request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { readCredentials } from "../../follow/credentials.ts";
import { codeOf } from "../../lib/errors.ts";
import { StartError } from "../../lib/start-error.ts";
import { visible } from "../../lib/text/visible.ts";
import { type JsonObject, parseJsonObject } from "../../model/json.ts";

export interface OperationsOptions {
  readonly opsUrl: URL;
  readonly opsTokenFile: string | undefined;
}

interface Question {
  readonly path: string;
  /** Advice if the listener has no such path. */
  readonly missing?: string;
  /** The type of the answer; JSON unless given. */
  readonly accept?: string;
  /** Undefined for a GET. */
  readonly body?: object;
}

const timeoutMs = 30_000;
/** A list of 65,536 machines has about 40 MiB. */
const maxAnswerBytes = 256 * 1024 * 1024;

const noLedger = "it shows no ledger: --ops-url must name the operations listener of a davit of this version";

const asksForToken = "it asks for a token: give --ops-token-file";

/** Advice for the operator, by the text of a refusal. */
const cures: Readonly<Record<string, string>> = {
  "401 a token of --ops-token-file is needed": asksForToken,
  "401 a token of --ops-admin-token-file is needed":
    "it asks for an admin token: give --ops-token-file with a token of its --ops-admin-token-file",
};

/** Reads from the listener. @throws {StartError} */
export async function readOperations(options: OperationsOptions, path: string): Promise<JsonObject> {
  return await ask(options, { path });
}

/** Reads a text for a person from the listener. @throws {StartError} */
export async function readOperationsText(options: OperationsOptions, path: string): Promise<string> {
  const { status, text, hasToken, fail } = await answerOf(options, { path, accept: "text/plain" });
  if (status !== 200) throw fail(refusalText(status, text, { hasToken }));
  return text;
}

/** Posts to the listener. @param missing advice if it has no such path. @throws {StartError} */
export async function postOperations(
  options: OperationsOptions,
  path: string,
  body: object,
  missing?: string,
): Promise<JsonObject> {
  return await ask(options, { path, body, ...(missing !== undefined && { missing }) });
}

async function ask(options: OperationsOptions, question: Question): Promise<JsonObject> {
  const { status, text, hasToken, fail } = await answerOf(options, question);
  if (status !== 200) throw fail(refusalText(status, text, { hasToken, missing: question.missing }));
  const value = parseJsonObject(text);
  if (value === undefined) throw fail("its answer is not JSON: --ops-url must name davit's operations listener");
  return value;
}

async function answerOf({ opsUrl: url, opsTokenFile: tokenFile }: OperationsOptions, question: Question) {
  const { token } = await readCredentials({ tokenFile });
  const fail = (why: string, cause?: unknown) => new StartError(`Asking "${url.origin}": ${why}`, { cause });
  try {
    return { ...(await send(url, question, token)), hasToken: token !== undefined, fail };
  } catch (error) {
    throw fail(whyOf(error), error);
  }
}

function whyOf(error: unknown): string {
  const code = codeOf(error);
  if (code === "ECONNREFUSED") {
    return "nothing listens there: start davit serve, or give --ops-url, such as of kubectl port-forward";
  }
  const why = code === undefined ? "it does not answer" : `it cannot be reached (${code})`;
  return `${why}: correct --ops-url, or check the network`;
}

/** The texts of davit's refusals are for people. Another server's answer is not shown. */
function refusalText(
  status: number | undefined,
  text: string,
  { hasToken, missing = noLedger }: { readonly hasToken: boolean; readonly missing?: string | undefined },
): string {
  const line = text.trimEnd();
  const cure = line === "404 not found" ? missing : cures[line];
  if (cure === asksForToken && hasToken) return "it refuses the token of --ops-token-file: correct the file";
  if (cure !== undefined) return cure;
  const isOurs = line.startsWith(`${status} `) && line.length < 200 && !line.includes("\n");
  return isOurs ? visible(line.slice(4)) : `it answers ${status}: --ops-url must name davit's operations listener`;
}

async function send(url: URL, question: Question, token: string | undefined) {
  const { path, accept = "application/json" } = question;
  const body = question.body && JSON.stringify(question.body);
  const options: RequestOptions = {
    method: body === undefined ? "GET" : "POST",
    timeout: timeoutMs,
    agent: false,
    headers: {
      accept,
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && {
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body),
        // The listener asks for it, because no web page can send it unnoticed.
        "x-davit-action": path.slice(path.lastIndexOf("/") + 1),
      }),
    },
  };
  const target = new URL(path, url);
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = url.protocol === "https:" ? httpsRequest(target, options) : httpRequest(target, options);
    sent.on("error", reject);
    sent.on("timeout", () => sent.destroy(new Error("No answer in time")));
    sent.on("response", resolve);
    sent.end(body);
  });
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer) {
    const piece = Buffer.from(chunk);
    bytes += piece.length;
    if (bytes > maxAnswerBytes) throw new Error("Too long an answer");
    chunks.push(piece);
  }
  return { status: answer.statusCode, text: Buffer.concat(chunks).toString("utf8") };
}
