/**
 * The listeners of a real davit, with mutants of requests as bytes. No mutant gets another machine's secret or installer,
 * or a status that davit does not use; davit goes on, and a machine beside them gets what is its own.
 */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { type DavitProcess, localAuthorization, startDavit } from "../../tools/davit-process.ts";
import { answerTo, MachineBeside, residentBytes } from "./beside.ts";
import { fuzz, fuzzTimeoutMs } from "./fuzz.ts";

const secret = "planted-8f3a1c";
const known = "52:54:00:00:00:01";
const installed = "52:54:00:77:3b:c2";

const manifests = `
apiVersion: v1
kind: Secret
metadata: {name: texts, labels: {davit.dev/allow-template: "true"}}
stringData: {token: ${secret}}
---
apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: disk}
spec: {boot: {kernel: /assets/disk}, generic: {inline: '{{json request.query}}'}}
---
apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: wipe}
spec:
  effect: Install
  boot: {kernel: /assets/wipe}
  generic: {templateFrom: {secretKeyRef: {name: texts, key: token}}}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: known}
spec: {profileRef: {name: disk}, selector: {matchLabels: {mac: "${known}"}}}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: installed}
spec: {profileRef: {name: wipe}, selector: {matchLabels: {mac: "${installed}"}}}
`;

const statuses = new Set([
  ...[100, 200, 201, 202, 204, 206, 301, 302, 303, 304, 307],
  ...[400, 401, 403, 404, 405, 406, 408, 409, 411, 412, 413, 414, 415, 416, 417, 421, 422, 426, 429, 431],
  ...[500, 501, 503],
]);
const growthLimitBytes = 256 * 2 ** 20;

let folder: string;
let davit: DavitProcess;
let token: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "davit-fuzz-"));
  const objects = join(folder, "objects");
  mkdirSync(objects);
  writeFileSync(join(objects, "all.yaml"), manifests);
  davit = await startDavit({ manifests: objects, dataDir: join(folder, "data") });
  ({ authorization: token = "" } = await localAuthorization(davit.dataDir));
  // Else the oracles look for what nobody could get.
  const expectInstall = async () => expect(await textOf(`/ipxe?mac=${installed}`)).toContain("/assets/wipe");
  await vi.waitFor(expectInstall, { timeout: 30_000 });
  expect(await textOf(`/generic?mac=${installed}`)).toContain(secret);
});
afterAll(async () => {
  await davit?.stop();
  rmSync(folder, { recursive: true });
});

async function textOf(path: string): Promise<string> {
  return await (await fetch(`${davit.bootUrl}${path}`)).text();
}

const request = (line: string, headers: readonly string[] = [], body = "") => {
  const length = body === "" ? [] : [`Content-Length: ${body.length}`];
  return [`${line} HTTP/1.1`, "Host: davit", "Connection: close", ...headers, ...length, "", body].join("\r\n");
};
const form = "Content-Type: application/x-www-form-urlencoded";

it.each([
  {
    name: "boot",
    url: () => davit.bootUrl,
    inputs: () => [
      request(`GET /ipxe?mac=${known}`),
      request("GET /grub?mac=52-54-00-00-00-01&uuid=00000000-0000-4000-8000-000000000001"),
      request("HEAD /boot.ipxe"),
      request(`GET /generic?mac=${known}&a=%41`, ["Range: bytes=0-3", 'If-None-Match: "x"']),
      request("GET /assets/../assets/disk", ["X-Forwarded-For: 192.0.2.1"]),
      request("POST /report?state=installed", [form], "state=installed&permit=0123456789abcdef"),
    ],
    words: [
      "mac=",
      "&serial=x",
      "%00",
      "/ignition",
      "/cloud",
      "/metadata",
      ".sig",
      ".asc",
      "Transfer-Encoding: chunked\r\n",
    ],
  },
  {
    name: "store",
    url: () => davit.storeUrl,
    inputs: () => [
      request("PUT /v2/keys/a?prevExist=false", [form], "value=x&ttl=5"),
      request("POST /v2/keys/queue", [form], "value=x"),
      request("GET /v2/keys/?recursive=true&sorted=true&quorum=true"),
      request("DELETE /v2/keys/a?recursive=true&dir=true"),
      request("GET /v2/members"),
      request("POST /davit/v1/history", ["Content-Type: application/json"], '{"requests":[]}'),
    ],
    words: ["/davit", "/_davit", "prevIndex=1", "prevValue=x", "&wait=true", "&waitIndex=1", "/v2/stats/store", "%2f"],
  },
  {
    name: "operations",
    url: () => davit.opsUrl,
    inputs: () => [
      request("GET /preview?mac=52:54:00:00:00:02", [`Authorization: ${token}`]),
      request("GET /history", ["Accept: application/json"]),
      request("GET /machines?state=held", ["Accept: text/html"]),
      request("POST /machines/hold", [form, "Origin: http://davit"], "machine=a&token=b"),
      request("GET /metrics"),
      request("GET /readyz?verbose"),
    ],
    words: [
      "/try",
      "/health",
      "Cookie: davit=x\r\n",
      "Authorization: Bearer x\r\n",
      "manifest=",
      "%3Cscript%3E",
      "/login",
    ],
  },
])("the $name listener", { timeout: fuzzTimeoutMs }, async ({ name, url, inputs, words }) => {
  const port = Number(new URL(url()).port);
  const before = await residentBytes(davit.opsUrl);
  const beside = new MachineBeside(async () => expect(await textOf(`/ipxe?mac=${known}`)).toContain("/assets/disk"));
  await fuzz({
    name: `the ${name} listener`,
    inputs: inputs(),
    words,
    run: async (input) => {
      // It would be a request for it.
      if (input.includes(installed)) return;
      const answer = (await answerTo(port, input)).toString("latin1");
      expect(answer).not.toContain(secret);
      if (name === "boot") expect(answer).not.toContain("/assets/wipe");
      for (const [, status] of answer.matchAll(/^HTTP\/1\.1 (\d+) /gm)) expect(statuses).toContain(Number(status));
    },
  });
  await beside.leave();
  expect((await fetch(`${davit.opsUrl}/readyz`)).status).toBe(200);
  expect((await residentBytes(davit.opsUrl)) - before).toBeLessThan(growthLimitBytes);
  const lines = davit.log.map((line) => JSON.stringify(line));
  expect(lines.filter((line) => line.includes(secret))).toEqual([]);
  // Errors are davit's own.
  expect(davit.log.filter(({ level }) => Number(level) >= 50)).toEqual([]);
});
