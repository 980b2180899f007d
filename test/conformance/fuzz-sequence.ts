/**
 * Runs one sequence of operations on a lane, and compares every answer and every event.
 *
 * A sequence never asks while a key may be ending: it waits before that, until the key has ended in both stores. When
 * the machine was so slow that an answer came too late for that, the sequence is given up and proves nothing.
 */

import { systemClock } from "../../src/lib/clock.ts";
import { isJsonObject, parseJsonObject } from "../../src/model/json.ts";
import { compareAnswers, type Known } from "./fuzz-compare.ts";
import { Ends } from "./fuzz-ends.ts";
import { type AskedRequest, indexOf, type Lane, type Pair, type TimedAnswer } from "./fuzz-lane.ts";
import type { Operation } from "./fuzz-operations.ts";
import { keyOfPath, pathOfKey } from "./fuzz-paths.ts";
import type { FuzzSummary } from "./fuzz-summary.ts";
import { OpenWatch } from "./fuzz-watches.ts";

export type Outcome =
  | { readonly kind: "same" }
  | { readonly kind: "late" }
  /** `at` is the position of the operation that showed it. */
  | { readonly kind: "different"; readonly at: number; readonly report: string };

type Trouble = "late" | { readonly report: string } | undefined;

const maxWatches = 10;
const operationsPerCheck = 20;

export class Sequence {
  readonly #lane: Lane;
  readonly #summary: FuzzSummary;
  #index = 0;
  #child = "/none";
  readonly #modified = new Map<string, number>();
  readonly #updates = new Set<number>();
  readonly #ends: Ends;
  #slowestMs = 0;
  readonly #watches: OpenWatch[] = [];

  constructor(lane: Lane, summary: FuzzSummary) {
    this.#lane = lane;
    this.#ends = new Ends(lane);
    this.#summary = summary;
  }

  async run(operations: readonly Operation[]): Promise<Outcome> {
    await this.#lane.empty(operations.some(({ kind }) => kind === "watch"));
    this.#index = (await this.#lane.indexes()).etcd;
    try {
      for (const [at, operation] of operations.entries()) {
        const trouble = await this.#tried(operation, at === operations.length - 1 || at % operationsPerCheck === 0);
        if (trouble === "late") return { kind: "late" };
        if (trouble !== undefined) return { kind: "different", at, report: trouble.report };
      }
      return { kind: "same" };
    } finally {
      for (const watch of this.#watches) this.#close(watch);
    }
  }

  get #known(): Known {
    return { updates: this.#updates, slowestMs: this.#slowestMs, clockMs: this.#lane.clockMs };
  }

  /** A server that does not answer is no reason to stop without a word about it. */
  async #tried(operation: Operation, checksWatches: boolean): Promise<Trouble> {
    try {
      return (await this.#step(operation)) ?? (checksWatches ? await this.#checkWatches() : undefined);
    } catch (error) {
      return { report: `No answer to ${JSON.stringify(operation)}: ${error}` };
    }
  }

  async #step(operation: Operation): Promise<Trouble> {
    const trouble = this.#ends.isNear() ? await this.#settle() : undefined;
    if (trouble !== undefined) return trouble;
    this.#summary.operation(operation.kind === "request" ? operation.method : operation.kind);
    switch (operation.kind) {
      case "request":
        return await this.#request(operation);
      case "watch":
        return await this.#watch(operation);
      case "unwatch":
        return await this.#unwatch(this.#watches.length - operation.nth);
      case "settle":
        return await this.#settle();
    }
  }

  async #request({ method, target, form, contentType }: Extract<Operation, { kind: "request" }>): Promise<Trouble> {
    const request: AskedRequest = {
      method,
      target: this.#filled(target),
      ...(form !== undefined && { body: this.#filled(form) }),
      ...(contentType !== undefined && { headers: { "content-type": contentType } }),
    };
    const answers = await this.#lane.ask(request);
    return this.#ends.isLate() ? "late" : await this.#judge(request, answers);
  }

  async #judge(request: AskedRequest, answers: Pair<TimedAnswer>): Promise<Trouble> {
    this.#summary.answer(answers.etcd.status);
    for (const { sentAtMs, answeredAtMs } of [answers.etcd, answers.davit]) {
      this.#slowestMs = Math.max(this.#slowestMs, answeredAtMs - sentAtMs);
    }
    await this.#learn(request, answers.etcd);
    const comparison = compareAnswers(request, answers, this.#known);
    if (comparison.kind === "excused") this.#summary.excuse(comparison.by);
    return comparison.kind === "different" ? { report: differenceOf(request, comparison.what, answers) } : undefined;
  }

  async #learn({ method }: AskedRequest, answer: TimedAnswer): Promise<void> {
    const index = indexOf(answer);
    if (index > 0) this.#index = index;
    const { action, node } = parseJsonObject(answer.body) ?? {};
    if (action === undefined || action === "get") return;
    if (action === "update") this.#updates.add(index);
    if (!isJsonObject(node)) return;
    const key = String(node.key);
    this.#modified.set(key, index);
    if (method === "POST") this.#child = pathOfKey(key);
    await this.#ends.note(key, node.expiration);
  }

  async #watch({ target, path }: Extract<Operation, { kind: "watch" }>): Promise<Trouble> {
    const request = { method: "GET", target: this.#filled(target) };
    const [etcd, davit] = await Promise.all([this.#lane.begin("etcd", request), this.#lane.begin("davit", request)]);
    const isOpen = etcd.response.statusCode === 200 && davit.response.statusCode === 200;
    const headOf = async (begun: typeof etcd): Promise<TimedAnswer> => {
      const nowMs = systemClock.nowMs();
      const answer = begun.response.statusCode === 200 ? begun.head() : await begun.whole();
      return { ...answer, sentAtMs: nowMs, answeredAtMs: nowMs };
    };
    const answers = { etcd: await headOf(etcd), davit: await headOf(davit) };
    const fields = new URLSearchParams(request.target.replace(/^[^?]*\?/, ""));
    const watched = {
      key: keyOfPath(this.#filled(path)),
      recursive: fields.get("recursive") === "true",
      stream: fields.get("stream") === "true",
      waitIndex: Number(fields.get("waitIndex") ?? 0),
      openedIndex: this.#index,
    };
    const responses = { etcd: etcd.response, davit: davit.response };
    const watch = new OpenWatch(request.target, watched, responses);
    if (!isOpen) watch.close();
    else this.#watches.push(watch);
    if (this.#ends.isLate()) return "late";
    const comparison = compareAnswers(request, answers, this.#known);
    if (comparison.kind === "different") return { report: differenceOf(request, comparison.what, answers) };
    return this.#watches.length > maxWatches ? await this.#unwatch(1) : undefined;
  }

  /** The first watch stays: it sees everything. */
  async #unwatch(at: number): Promise<Trouble> {
    const watch = at > 0 ? this.#watches[at] : undefined;
    if (watch === undefined) return undefined;
    const trouble = await this.#checkWatch(watch);
    this.#close(watch);
    this.#watches.splice(at, 1);
    return trouble;
  }

  async #checkWatch(watch: OpenWatch): Promise<Trouble> {
    const verdict = await watch.verdict(this.#known);
    if (verdict.kind === "same") return undefined;
    const { target, told } = verdict;
    const lines = (["etcd", "davit"] as const).flatMap((side) => [
      `${side} told${told[side].hasEnded ? ", and ended" : ""}:`,
      ...told[side].events.slice(-5),
    ]);
    return { report: [`Other events of GET ${target}`, ...lines].join("\n") };
  }

  #close(watch: OpenWatch): void {
    watch.close();
    this.#summary.events += watch.agreedCount;
    for (const name of watch.excuses) this.#summary.excuse(name);
  }

  async #checkWatches(): Promise<Trouble> {
    for (const watch of this.#watches) {
      const trouble = await this.#checkWatch(watch);
      if (trouble !== undefined) return trouble;
    }
    return undefined;
  }

  async #settle(): Promise<Trouble> {
    const { etcd, davit } = await this.#ends.settled();
    this.#index = etcd;
    if (etcd === davit) return undefined;
    return { report: `After keys were to end, the index is ${etcd} in etcd, and ${davit} in davit` };
  }

  #filled(text: string): string {
    return text
      .replaceAll("{child}", this.#child)
      .replaceAll(/\{modified:([^}]*)\}/g, (_, path: string) => String(this.#modified.get(keyOfPath(path)) ?? 1))
      .replaceAll(/\{index([+-]\d+)?\}/g, (_, offset = "0") => String(this.#index + Number(offset)));
  }
}

function differenceOf(
  { method, target, headers, body }: AskedRequest,
  what: string,
  answers: Pair<TimedAnswer>,
): string {
  const shown = ({ status, headers: names, body: text }: TimedAnswer) =>
    [status, ...[...names].filter(([name]) => name !== "date").map(([name, value]) => `${name}: ${value}`), text].join(
      "\n  ",
    );
  const form = body === undefined ? "" : `  with ${headers?.["content-type"]} ${body}`;
  return [
    `Other answers to ${method} ${target}${form}: ${what}`,
    `etcd: ${shown(answers.etcd)}`,
    `davit: ${shown(answers.davit)}`,
  ].join("\n");
}
