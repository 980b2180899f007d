/**
 * Who may do what at each guarded listener: every credential at every route. The answers are in two files beside
 * this one. A change of them is a change of who is admitted.
 */

import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { expect, it } from "vitest";
import { SignInNeeded, type Visitor, Visitors } from "../../../src/http/console/state/visitors.ts";
import { RequestError, requestRefusals } from "../../../src/http/errors.ts";
import type { OpsGuard } from "../../../src/http/guard/ops-guard.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import type { ClusterCallers } from "../../../src/model/cluster-callers.ts";
import { historyPath } from "../../../src/model/history-batch.ts";
import { permitQuestions } from "../../../src/model/permits/permit-wire.ts";
import { StoreError } from "../../../src/store/core/refusal.ts";
import { type GivenOps, type GivenStore, opsUnderTest, storeUnderTest } from "./guards-under-test.ts";

/** What a client sends besides the request line. */
interface Sent {
  readonly headers?: Readonly<Record<string, string>>;
  /** Of its certificate, in days from now; absent: it has none. */
  readonly certificateDays?: number;
}

interface Asked {
  readonly method: string;
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const basic = (token: string) => ({ authorization: `Basic ${Buffer.from(`me:${token}`).toString("base64")}` });
const tokens = {
  reader: "reader-token-0123456789",
  admin: "admin-token-0123456789",
  local: "local-token-0123456789",
  account: "writing.account.token",
  readingAccount: "reading.account.token",
};

const credentials: Readonly<Record<string, Sent>> = {
  nothing: {},
  "a reader's token": { headers: bearer(tokens.reader) },
  "a reader's token by Basic": { headers: basic(tokens.reader) },
  "an admin's token": { headers: bearer(tokens.admin) },
  "an admin's token by Basic": { headers: basic(tokens.admin) },
  "the local token": { headers: bearer(tokens.local) },
  "a wrong token": { headers: bearer(`${tokens.reader}x`) },
  "a reader's token by Digest": { headers: { authorization: `Digest ${tokens.reader}` } },
  "a writing account": { headers: bearer(tokens.account) },
  "a reading account": { headers: bearer(tokens.readingAccount) },
  "a certificate": { certificateDays: 1 },
  "an expired certificate": { certificateDays: -1 },
  "a certificate and a reader's token": { headers: bearer(tokens.reader), certificateDays: 1 },
  "an expired certificate and a reader's token": { headers: bearer(tokens.reader), certificateDays: -1 },
  "a foreign host": { headers: { host: "rebound.example" } },
  "an allowed host": { headers: { host: "Davit.Example:8081" } },
  "a further allowed host": { headers: { host: "store.lab" } },
  "no host": { headers: { host: "" } },
  "a proxy": { headers: { "x-forwarded-for": "192.0.2.9" } },
  "a proxy with a reader's token": { headers: { via: "1.1 proxy", ...bearer(tokens.reader) } },
  "a proxy with an admin's token": { headers: { forwarded: "for=192.0.2.9", ...bearer(tokens.admin) } },
  "a foreign host with an admin's token": { headers: { host: "rebound.example", ...bearer(tokens.admin) } },
  "a foreign host with the local token": { headers: { host: "rebound.example", ...bearer(tokens.local) } },
};

const { permit, report } = permitQuestions;
const adopt = { method: "POST", url: "/machines/adopt" };
const action = { "x-davit-action": "adopt" };
const opsRoutes: Readonly<Record<string, Asked>> = {
  read: { method: "GET", url: "/machines?x=1" },
  change: { ...adopt, headers: action },
  "change with a query": { ...adopt, url: "/machines/adopt?a=/b", headers: action },
  "change without action": adopt,
  "change with another action": { ...adopt, headers: { "x-davit-action": "forget" } },
  "change with origin": { ...adopt, headers: { ...action, origin: "http://127.0.0.1:8081" } },
  "change with referer": { ...adopt, headers: { ...action, referer: "http://127.0.0.1:8081/" } },
  "change with fetch site": { ...adopt, headers: { ...action, "sec-fetch-site": "none" } },
};

const storeRoutes: Readonly<Record<string, Asked & { readonly isSecret?: boolean }>> = {
  read: { method: "GET", url: "/v2/keys/a?wait=true" },
  head: { method: "HEAD", url: "/v2/keys/a" },
  put: { method: "PUT", url: "/v2/keys/a" },
  post: { method: "POST", url: "/v2/keys/a" },
  delete: { method: "DELETE", url: "/v2/keys/a" },
  options: { method: "OPTIONS", url: "/v2/keys/a" },
  health: { method: "GET", url: "/health" },
  version: { method: "GET", url: "/version?x=1" },
  "put health": { method: "PUT", url: "/health" },
  "dotted version": { method: "GET", url: "/v2/keys/../version" },
  follow: { method: "GET", url: "/davit/v1/follow", isSecret: true },
  backup: { method: "GET", url: "/davit/v1/backup", isSecret: true },
  permit: { method: "POST", url: permit.path, isSecret: true },
  "permit with a query": { method: "POST", url: `${permit.path}?x=1`, isSecret: true },
  closing: { method: "POST", url: report.path, isSecret: true },
  history: { method: "POST", url: historyPath, isSecret: true },
  "sightings of an earlier follower": { method: "POST", url: "/davit/v1/sightings" },
  "put permit": { method: "PUT", url: permit.path },
};

const opsRows: readonly GivenOps[] = ["127.0.0.1", "0.0.0.0"].flatMap((boundTo) => [
  { boundTo },
  { boundTo, readerToken: tokens.reader },
  { boundTo, adminToken: tokens.admin },
  { boundTo, readerToken: tokens.reader, adminToken: tokens.admin },
]);

const accounts = { [tokens.account]: "write", [tokens.readingAccount]: "read" } as const;
const local = { localToken: tokens.local };
const storeRows: readonly GivenStore[] = [
  { ...local, isLoopback: true },
  { ...local, isLoopback: false },
  { ...local, isLoopback: true, host: "davit.example", allowedHosts: ["store.lab"] },
  { ...local, isLoopback: false, token: tokens.reader },
  { ...local, isLoopback: true, token: tokens.reader },
  { ...local, isLoopback: false, accounts },
  { ...local, isLoopback: false, token: tokens.reader, accounts },
  { ...local, isLoopback: false, asksForCertificate: true },
  { ...local, isLoopback: false, asksForCertificate: true, token: tokens.reader },
  { ...local, isLoopback: false, asksForCertificate: true, accounts },
];

function requestOf({ method, url, headers: own }: Asked, { headers, certificateDays }: Sent): IncomingMessage {
  const socket = certificateDays === undefined ? new Socket() : tlsSocket(certificateDays);
  const request = new IncomingMessage(socket);
  const { host = "127.0.0.1:8081", ...others } = { ...own, ...headers };
  return Object.assign(request, { method, url, headers: { ...others, ...(host !== "" && { host }) } });
}

function tlsSocket(days: number): TLSSocket {
  const socket = new TLSSocket(new Socket());
  const validTo = new Date(systemClock.nowMs() + days * 86_400_000).toUTCString();
  return Object.assign(socket, { authorized: true, getPeerCertificate: () => ({ valid_to: validTo }) });
}

function wordOf(refusal: unknown): string {
  if (refusal === undefined) return "yes";
  if (refusal instanceof RequestError) return `${requestRefusals[refusal.reason].status} ${refusal.reason}`;
  if (refusal instanceof StoreError) return `${refusal.refusal}: ${refusal.causeText}`;
  if (refusal instanceof SignInNeeded) return `sign in: ${refusal.message}`;
  throw refusal;
}

function visitorText({ name, mayChangeLedger, clusterToken }: Visitor): string {
  return [
    name,
    ...(mayChangeLedger ? ["changes the ledger"] : []),
    ...(clusterToken ? ["asks as account"] : []),
  ].join();
}

/** One line for the credentials with the same answers, and one for each of their answers with its routes. */
function linesOf(byCredential: ReadonlyMap<string, Answers>): readonly string[] {
  const answersOf = (answers: Answers) =>
    [...Map.groupBy(answers.keys(), (route) => answers.get(route))]
      .map(([answer, routes]) => `    ${answer}: ${routes.join(", ")}`)
      .join("\n");
  const alike = Map.groupBy(byCredential.keys(), (credential) => answersOf(byCredential.get(credential) ?? new Map()));
  return [...alike].flatMap(([answers, names]) => [`  ${names.join("; ")}`, answers]);
}

const callers: ClusterCallers = {
  review: async (token) =>
    token === tokens.account ? { kind: "admitted", name: "system:alice" } : { kind: "unknown" },
  mayPatchMachines: async () => true,
  patchMachine: async () => undefined,
};

const consoles = {
  console: { isPrivate: true, callers: undefined },
  "console of a cluster": { isPrivate: true, callers },
  "console of a cluster, in public": { isPrivate: false, callers },
};

async function consoleAnswers(guard: OpsGuard, sent: Sent): Promise<readonly (readonly [string, string])[]> {
  const asked = Object.entries(consoles).map(async ([name, { isPrivate, callers: cluster }]) => {
    const visitors = new Visitors({
      guard,
      callers: () => cluster,
      isPrivate: () => isPrivate,
      clientOf: () => "192.0.2.1",
      clock: systemClock,
    });
    const visitor = visitors.of(requestOf({ method: "GET", url: "/console/" }, sent));
    return [name, await visitor.then(visitorText, wordOf)] as const;
  });
  return await Promise.all(asked);
}

it("ops: each credential is admitted to the routes of the record", async () => {
  const lines: string[] = [];
  for (const row of opsRows) {
    lines.push(`ops ${JSON.stringify(row)}`);
    const { guard, counted, stop } = await opsUnderTest(row);
    const answersOf = async (sent: Sent) => {
      const asked = Object.entries(opsRoutes).map(async ([name, route]) => {
        const refusal = await guard.refusalOf(requestOf(route, sent), name === "read" ? "read" : "write");
        return [name, wordOf(refusal)] as const;
      });
      return new Map([...(await Promise.all(asked)), ...(await consoleAnswers(guard, sent))]);
    };
    lines.push(...linesOf(await answersBy(answersOf)), `  refused: ${await counted()}`);
    stop();
  }
  await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("guard-table-ops.txt");
});

it("store: each credential is admitted to the routes of the record", async () => {
  const lines: string[] = [];
  for (const row of storeRows) {
    lines.push(`store ${JSON.stringify(row)}`);
    const { refusal, secretsRefusal, counted, stop } = await storeUnderTest(row);
    const answersOf = async (sent: Sent) => {
      const asked = Object.entries(storeRoutes).map(async ([name, route]) => {
        const request = requestOf(route, sent);
        const refused = (await refusal(request)) ?? (route.isSecret === true ? secretsRefusal(request) : undefined);
        return [name, wordOf(refused)] as const;
      });
      return new Map(await Promise.all(asked));
    };
    lines.push(...linesOf(await answersBy(answersOf)), `  refused: ${await counted()}`);
    stop();
  }
  await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("guard-table-store.txt");
});

type Answers = ReadonlyMap<string, string>;

async function answersBy(answersOf: (sent: Sent) => Promise<Answers>): Promise<ReadonlyMap<string, Answers>> {
  const asked = Object.entries(credentials).map(async ([name, sent]) => [name, await answersOf(sent)] as const);
  return new Map(await Promise.all(asked));
}
