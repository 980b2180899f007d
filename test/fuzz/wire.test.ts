/**
 * What comes to davit by connections and from stores, each with mutants of it: events of an API server, lines of a store
 * to its follower, batches in etcd, documents, reports of machines, requests for keys. No error but the declared ones.
 */

import { expect, it } from "vitest";
import { FollowedCopy } from "../../src/follow/copy.ts";
import { FollowError } from "../../src/follow/follow-error.ts";
import { parseKeysRequest } from "../../src/http/keys/request.ts";
import { keyOf, parseTarget } from "../../src/http/keys/routes.ts";
import { decodeEntry, decodeMeta } from "../../src/installs/ledger/ledger-documents.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { decodeFollowLine, encodeFollowLine } from "../../src/model/follow-line.ts";
import { decodeGroup, decodeProfile, decodeSynced, decodeTombstone } from "../../src/model/objects/documents.ts";
import { ReportError, reportOfFields, reportOfJson } from "../../src/model/permits/machine-report.ts";
import { permitQuestions } from "../../src/model/permits/permit-wire.ts";
import { resources } from "../../src/sources/kubernetes/client/resources.ts";
import { judge } from "../../src/sources/kubernetes/source/judge.ts";
import { readMeta } from "../../src/sources/kubernetes/watch/mirror.ts";
import { SharedConditions } from "../../src/sources/kubernetes/watch/shared-conditions.ts";
import { watchEvents } from "../../src/sources/kubernetes/watch/watch-events.ts";
import { WatchFailure } from "../../src/sources/kubernetes/watch/watch-failure.ts";
import { decodeRecord, encodeRecord } from "../../src/store/command/command-codec.ts";
import { WalError } from "../../src/store/core/log-port.ts";
import { storePath } from "../../src/store/core/node.ts";
import { StoreError } from "../../src/store/core/refusal.ts";
import { decodeBatch, encodeBatch } from "../../src/store/etcd/batches.ts";
import { admission } from "../import-matchbox/trees.ts";
import { type FuzzTarget, fuzz, fuzzTimeoutMs } from "./fuzz.ts";

const mac = "52:54:00:00:00:01";
const metadata = { namespace: "racks", name: "node", uid: "u", resourceVersion: "7", generation: 1 };
const group = {
  ...{ apiVersion: "davit.dev/v1alpha1", kind: "Group", metadata },
  spec: { profileRef: { name: "disk" }, selector: { matchLabels: { mac } } },
  status: { conditions: [{ type: "Ready", status: "True", reason: "Ready", message: "" }] },
};
const eventsText = [
  { type: "ADDED", object: group },
  { type: "MODIFIED", object: { ...group, spec: { ...group.spec, hold: true } } },
  { type: "BOOKMARK", object: { metadata: { resourceVersion: "9" } } },
  { type: "DELETED", object: group },
  { type: "ERROR", object: { code: 410, reason: "Expired" } },
]
  .map((event) => JSON.stringify(event))
  .join("\n");

async function* inPieces(bytes: Buffer): AsyncIterable<Buffer> {
  const size = Math.max(1, Math.ceil(bytes.length / 3));
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function readWatch(input: Buffer): Promise<void> {
  const tools = { admission, conditions: new SharedConditions() };
  const limits = { silenceMs: 60_000, maxDurationMs: 60_000, maxLineBytes: 1_000_000 };
  const client = { watch: async () => inPieces(input) };
  const request = { path: "/", signal: new AbortController().signal } as const;
  try {
    for await (const events of watchEvents({ client, request, clock: systemClock, ...limits, onHeard: () => {} })) {
      for (const event of events) {
        const meta = event.kind === "set" ? readMeta(event.object) : undefined;
        if (event.kind !== "set" || meta === undefined) continue;
        const judged = judge(tools, resources.Group, { object: event.object, meta, before: undefined });
        // What davit does not take, it says why.
        expect(judged.object !== undefined || judged.refusal !== undefined).toBe(true);
      }
    }
  } catch (error) {
    expect(error).toBeInstanceOf(WatchFailure);
  }
}

const place = { index: 3, run: "r" };
const followText = [
  { kind: "dump", cluster: "c", nowMs: 1 },
  { kind: "put", path: "/davit/groups/racks/node", text: "{}" },
  { kind: "commit", ...place },
  { kind: "delete", path: "/davit/groups/racks/node" },
  { kind: "commit", index: 4, run: "r" },
  { kind: "heartbeat", index: 4, run: "r", nowMs: 2, provenMs: 1 },
] as const;

const batch = encodeBatch({
  kind: "records",
  clock: { atMs: 1, term: 2 },
  records: [
    encodeRecord({ atMs: 1, command: { kind: "set", path: storePath("/a"), value: "b" } }),
    encodeRecord({ atMs: 2, command: { kind: "compareAndDelete", path: storePath("/a"), expected: { index: 7n } } }),
  ],
});

const entry = {
  ...{
    id: "0123456789abcdef",
    identities: [`mac/${mac}`],
    state: "Failed",
    grant: { key: "group/a/b", generation: 1 },
  },
  ...{ spent: { "group/a/b": 1 }, claimedAtMs: 1, changedAtMs: 2, timeoutSeconds: 60, group: "a/b", profile: "a/c" },
  addresses: [],
};
const decoders: readonly ((text: string) => unknown)[] = [
  ...[decodeProfile, decodeGroup, decodeTombstone, decodeSynced, decodeMeta, decodeEntry],
  ...Object.values(permitQuestions).flatMap(({ decode, decodeAnswer }) => [decode, decodeAnswer]),
];

/** @throws what is none of these errors. */
function declared(run: () => unknown, ...errors: readonly (new (...values: never) => Error)[]): void {
  try {
    run();
  } catch (error) {
    if (!errors.some((each) => error instanceof each)) throw error;
  }
}

const jsonWords = ["null", "{}", "[]", '"__proto__":', '"constructor":', "-1", "1e400", '"', ",", "\\u0000", "\\ud800"];

const targets: readonly FuzzTarget[] = [
  {
    name: "events of a watch",
    inputs: [eventsText],
    words: [...jsonWords, "\n", '"type":"DELETED"', '"hold":true', '"matchLabels":{', '"metadata":{'],
    run: readWatch,
  },
  {
    name: "lines of a store to its follower",
    inputs: [followText.map(encodeFollowLine).join("")],
    words: [...jsonWords, "\n", '"kind":"commit"', '"kind":"resume"', '"index":0'],
    run: (input) => {
      const copy = new FollowedCopy();
      copy.begin();
      for (const text of input.toString().split("\n")) {
        const line = decodeFollowLine(text);
        if (line !== undefined) declared(() => copy.take(line), FollowError);
        expect(copy.served?.index ?? 0).toBeGreaterThanOrEqual(0);
      }
    },
  },
  {
    name: "batches in etcd",
    inputs: [Buffer.from(batch)],
    words: [...jsonWords, '"kind":"batch"', '"path":"/b"'],
    run: (input) => {
      declared(() => {
        const { records } = decodeBatch(input);
        expect(records.reduce((sum, { length }) => sum + length, 0)).toBeLessThan(input.length);
        for (const record of records) expect(Number.isFinite(decodeRecord(record).atMs)).toBe(true);
      }, WalError);
    },
  },
  {
    name: "documents, and questions of followers",
    inputs: [
      JSON.stringify(entry),
      JSON.stringify({ kind: "granted", entry, reportToken: "t", group: "a/b", profile: "a/c" }),
      JSON.stringify({ rawQuery: "mac=1", purpose: "script", mayClaim: true }),
      JSON.stringify({ kind: "report", token: "t", report: { state: "failed", labels: { a: "b" } } }),
      JSON.stringify({ ...group.spec, labels: { mac }, profile: "a/c", generation: 1 }),
    ],
    words: jsonWords,
    run: (input) => {
      const text = input.toString();
      // A text that is no such document is undefined, and no error.
      for (const decode of decoders) expect(typeof decode(text)).toMatch(/^(?:object|undefined)$/);
    },
  },
  {
    name: "reports of machines",
    inputs: [
      "state=installed&progress=50&message=done&label.rack=a1",
      '{"state":"failed","progress":1,"message":"no disk","labels":{"rack":"a1"}}',
      '{"event_type":"finish","name":"modules-final","result":"SUCCESS","description":"d"}',
    ],
    words: [...jsonWords, "&", "=", "state=", "label.", "%00", "%ff"],
    run: (input) => {
      const text = input.toString();
      const fields = new URLSearchParams(text);
      for (const read of [() => reportOfFields(fields), () => reportOfJson(text, fields)]) {
        declared(() => {
          const { message = "", labels = {} } = read();
          // A message is a line of a log and of a console.
          expect(message).toMatch(/^[^\p{Cc}]{0,256}$/u);
          expect(Object.keys(labels).length).toBeLessThanOrEqual(16);
        }, ReportError);
      }
    },
  },
  {
    name: "requests for keys",
    inputs: [
      "/v2/keys/a/b?recursive=true&wait=true&waitIndex=7",
      "/v2/keys/a?prevValue=x&value=y&ttl=5&prevExist=true",
    ],
    words: ["&", "=", "?", "%2e%2e", "//", "/../", "%", "prevIndex=", "ttl=", "dir=true", "waitIndex="],
    run: (input) => {
      const target = parseTarget(input.toString("latin1"));
      if (target.kind === "redirect") expect(target.location).toMatch(/^\/(?!\/)/);
      const path = target.kind === "path" ? keyOf(target.path) : undefined;
      if (target.kind !== "path" || path === undefined) return;
      for (const method of ["GET", "PUT", "POST", "DELETE"] as const) {
        declared(() => parseKeysRequest({ method, path, query: target.query, form: target.query }), StoreError);
      }
    },
  },
];

it.each(targets)("$name", { timeout: fuzzTimeoutMs }, fuzz);
