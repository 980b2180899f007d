/** Sends the questions and the reports of a boot thread to the first thread. */

import type { MessagePort } from "node:worker_threads";
import { BootError } from "../../boot/core/boot-error.ts";
import { sentJob } from "../../boot/making/render-thread.ts";
import type { SlowWorkOptions } from "../../boot/making/slow-work.ts";
import type { RequestSink } from "../../http/boot/access-log.ts";
import type { BootSigner } from "../../http/boot/signatures.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log, LogLevel } from "../../lib/log.ts";
import type { AskWriter } from "../../model/permits/permit-wire.ts";
import { SigningError } from "../../trust/sign/signing-error.ts";
import type {
  FromThread,
  SentRefusal,
  SignerName,
  ThreadAnswer,
  ThreadEvent,
  ThreadQuestion,
  ThreadQuestions,
} from "./wire.ts";

/** The longest wait for an answer of the desk, as in `Writers`. */
const deskLimitMs = 1_000;

export class FirstThread {
  readonly #port: Pick<MessagePort, "postMessage">;
  readonly #clock: Clock;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  #events: ThreadEvent[] = [];
  #lastId = 0;
  /** How many requests have begun and not ended. */
  #following = 0;
  #allEnded: (() => void) | undefined;

  constructor(port: Pick<MessagePort, "postMessage">, clock: Clock) {
    this.#port = port;
    this.#clock = clock;
  }

  post(message: FromThread): void {
    this.#port.postMessage(message);
  }

  /** Reports an event, with all others of this turn in one message. */
  report(event: ThreadEvent): void {
    if (this.#events.length === 0) setImmediate(() => this.#flush());
    this.#events.push(event);
  }

  /** Resolves when all requests are reported: a server may close before the requests that it cut have ended. */
  async allReported(): Promise<void> {
    if (this.#following > 0) await new Promise<void>((resolve) => (this.#allEnded = resolve));
    this.#flush();
  }

  /** Sends the events that wait. */
  #flush(): void {
    if (this.#events.length === 0) return;
    const events = this.#events;
    this.#events = [];
    this.post({ kind: "events", events });
  }

  /** Reports a request, when it begins and when it ends. */
  readonly follow: RequestSink = (request) => {
    const id = ++this.#lastId;
    this.#following += 1;
    this.report({ on: "begun", id, request });
    return ({ machine, ...ended }) => {
      const { labels: _, ...sent } = machine ?? { labels: undefined };
      this.report({ on: "ended", id, request: ended, machine: machine && { ...sent, rawQuery: machine.rawQuery } });
      this.#following -= 1;
      if (this.#following === 0) this.#allEnded?.();
    };
  };

  /** @throws {BootError | SigningError} as the first thread; {Error} after a fault of davit. */
  async ask<Name extends keyof ThreadQuestions>(
    name: Name,
    asked: ThreadQuestions[Name]["asked"],
  ): Promise<ThreadQuestions[Name]["answer"]> {
    const id = ++this.#lastId;
    const waiting = Promise.withResolvers<unknown>();
    this.#waiting.set(id, waiting);
    // The parameters ensure that name and content match, which the union type cannot express.
    this.post({ kind: "question", id, name, asked } as ThreadQuestion);
    return (await waiting.promise) as ThreadQuestions[Name]["answer"];
  }

  answered(message: ThreadAnswer): void {
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if (message.kind === "answer") waiting?.resolve(message.answer);
    else waiting?.reject(errorOf(message.refusal));
  }

  /** Asks for the desk of this thread, as a follower asks the ledger's writer. */
  readonly askWriter: AskWriter = async (name, asked) => {
    const given = new AbortController();
    const late = this.#clock.sleep(deskLimitMs, given.signal).then(() => undefined);
    const answer = await Promise.race([this.ask(name, asked).catch(() => undefined), late]);
    given.abort();
    return answer;
  };

  /** Makes slow configs. */
  readonly renderThread: SlowWorkOptions["thread"] = {
    run: async (job, customer) => await this.ask("render", { sent: sentJob(job), customer }),
  };

  /**
   * Hashes an open file in the first thread.
   * @throws {Error} if the file cannot be read, with its code.
   */
  readonly hash = async (descriptor: number): Promise<string> => {
    const answer = await this.ask("hash", { descriptor });
    if ("sha256" in answer) return answer.sha256;
    throw Object.assign(new Error("A file cannot be hashed"), { code: answer.code });
  };

  /** Signs with a key of the first thread. */
  signer(by: SignerName, publicKey: string): BootSigner {
    return {
      publicKey,
      sign: async (body, asker) => {
        const { isShared, client } = asker ?? { isShared: false, client: () => undefined };
        return await this.ask("sign", { by, body, isShared, client: client() });
      },
      withhold: () => {
        this.ask("sign", { by, body: undefined, isShared: false, client: undefined }).catch(() => undefined);
        throw new SigningError("withheld");
      },
    };
  }

  /** A log whose lines the first thread writes. */
  log(part: string): Log {
    const at = (level: Exclude<LogLevel, "silent">) => (data: object, message: string) => {
      const line = { kind: "log", level, part, message } as const;
      try {
        this.post({ ...line, data });
      } catch {
        // An error may have members that cannot be cloned. Without them, the line still says what failed.
        this.post({ ...line, data: {} });
      }
    };
    const child: Log["child"] = (data) => this.log(data.part);
    return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error"), child };
  }
}

function errorOf(refusal: SentRefusal | undefined): Error {
  if (refusal === undefined) return new Error("The first thread has failed to answer");
  return "boot" in refusal ? new BootError(refusal.boot) : new SigningError(refusal.signing);
}
