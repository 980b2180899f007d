/** The boot listener of a real process, by raw socket: whole heads, hostile queries, costly templates, many clients. */

import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";
import { ask, statusOf } from "../http/wire.ts";

const manifests = `
apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: web}
spec:
  boot: {kernel: /assets/vmlinuz, args: [quiet]}
  generic: {inline: '{{json request.query}}'}
---
apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: costly}
spec:
  boot: {kernel: /assets/vmlinuz}
  ignition: {inline: '{{#each many}}{{#each ../many}}{{#each ../../many}}x{{/each}}{{/each}}{{/each}}'}
  generic: {inline: '{{#each many}}{{#each ../many}}{{../../text}}{{/each}}{{/each}}'}
  cloudConfig: {inline: '{{nowhere}}'}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: web}
spec: {profileRef: {name: web}, selector: {matchLabels: {role: web}}, metadata: {rack: r1}}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: odd}
spec: {profileRef: {name: web}, selector: {matchLabels: {constructor: web}}}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: held}
spec: {profileRef: {name: web}, selector: {matchLabels: {role: held}}, hold: true}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: costly}
spec:
  profileRef: {name: costly}
  selector: {matchLabels: {role: costly}}
  # 256 x 256 rounds of 150 bytes are 9 MiB and more.
  metadata: {text: ${"x".repeat(150)}, many: [${Array.from({ length: 256 }, (_, at) => at).join(", ")}]}
`;

let folder: string;
let davit: DavitProcess;
let port: number;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-wire-"));
  await writeFile(join(folder, "all.yaml"), manifests);
  davit = await startDavit({ manifests: folder, dataDir: join(folder, "data"), args: ["--assets-dir", folder] });
  port = Number(new URL(davit.bootUrl).port);
});
afterAll(async () => {
  await davit.stop();
  await rm(folder, { recursive: true });
});

async function get(target: string): Promise<{ status: number; body: string }> {
  const answer = await ask(port, target);
  return { status: statusOf(answer), body: answer.body.toString() };
}

const script = "#!ipxe\nkernel /assets/vmlinuz quiet\nboot\n";
const expectAnswered = async () => expect(await get("/ipxe?role=web")).toEqual({ status: 200, body: script });

describe("the whole head of an answer", () => {
  const text = "Content-Type: text/plain; charset=utf-8";
  const rendered = [text, "Cache-Control: no-store"];
  const tail = ["Date: *", "Connection: close"];
  const head = (first: readonly string[], length: number, ...more: readonly string[]) => [
    ...[...first, ...more, `Content-Length: ${length}`],
    ...tail,
  ];
  const validators = ["Cache-Control: no-cache", "Etag: *", "Last-Modified: *"];

  it.each([
    ["GET /boot.ipxe", "200 OK", head(rendered, 104)],
    ["GET /ipxe?role=web", "200 OK", head(rendered, script.length)],
    ["HEAD /ipxe?role=web", "200 OK", head(rendered, script.length)],
    ["GET /generic?role=web", "200 OK", head(["Content-Type: application/json", "Cache-Control: no-store"], 14)],
    [
      "HEAD /assets/all.yaml",
      "200 OK",
      head([text, ...validators, "Accept-Ranges: bytes"], Buffer.byteLength(manifests)),
    ],
    ["GET /nothing", "404 Not Found", head(rendered, 14)],
    ["GET /ipxe?role=none", "404 Not Found", head(rendered, 22)],
    ["POST /ipxe?role=web", "405 Method Not Allowed", head(rendered, 23, "Allow: GET, HEAD")],
    [`GET /ipxe?${"x".repeat(8192)}`, "414 URI Too Long", head(rendered, 20)],
    ["GET /cloud?role=costly", "500 Internal Server Error", head(rendered, 18)],
    ["GET /ipxe?role=held", "503 Service Unavailable", head(rendered, 9, "Retry-After: 5")],
    // These never become a request, and are answered by hand.
    ["GET /ipxe?a b", "400 Bad Request", [text, "Content-Length: 16", "Connection: close"]],
    [
      `GET /${"x".repeat(17_000)}`,
      "431 Request Header Fields Too Large",
      [text, "Content-Length: 22", "Connection: close"],
    ],
  ])("to %.40s", async (request, status, lines) => {
    const [method = "", ...target] = request.split(" ");
    const answer = await ask(port, target.join(" "), { method });
    const masked = answer.headerLines.map((line) => line.replace(/^(Date|ETag|Last-Modified): .+$/i, "$1: *"));
    expect({ status: answer.statusLine, lines: masked }).toEqual({ status: `HTTP/1.1 ${status}`, lines });
  });
});

describe("a query", () => {
  it("of 1,000 names is refused, one of 1,000 parts with few names is not", async () => {
    const parts = Array.from({ length: 1000 }, (_, at) => at);
    const many = `role=web&${parts.map((at) => `n${at}=`).join("&")}`;
    expect(await get(`/metadata?${many}`)).toEqual({ status: 400, body: "400 too many labels\n" });
    const few = `role=web&${parts.map((at) => `n${at % 10}=`).join("&")}`;
    const lines = (await get(`/metadata?${few}`)).body.split("\n");
    expect(lines.filter((line) => line.startsWith("REQUEST_QUERY_"))).toHaveLength(11);
    expect(lines).toContain(`REQUEST_RAW_QUERY=${few}`);
  });

  it.each([
    ["a NUL by escape", "x=a%00b", "REQUEST_QUERY_X='a?b'", { x: "a\0b" }],
    ["bytes that are not UTF-8", "x=%ff%fe", "REQUEST_QUERY_X='\ufffd\ufffd'", { x: "\ufffd\ufffd" }],
    ["a line break", "x=a%0aEVIL=1", "REQUEST_QUERY_X='a?EVIL=1'", { x: "a\nEVIL=1" }],
    ["a bad escape", "x=%zz&y=1", "REQUEST_QUERY_Y=1", { y: "1" }],
    ["the name __proto__", "__proto__=1", "REQUEST_QUERY___PROTO__=1", JSON.parse('{"__proto__":"1"}')],
    ["the name toString", "toString=1", "REQUEST_QUERY_TOSTRING=1", { toString: "1" }],
  ])("with %s is data: one line, one JSON string", async (_name, query, line, labels) => {
    const metadata = (await get(`/metadata?role=web&${query}`)).body.split("\n");
    expect(metadata).toContain(line);
    expect(metadata.filter((each) => each.startsWith("EVIL"))).toEqual([]);
    const sent = JSON.parse((await get(`/generic?role=web&${query}`)).body);
    expect(new Map(Object.entries(sent))).toEqual(new Map(Object.entries({ role: "web", ...labels })));
  });

  it("with the name constructor is matched by a selector on that name, and by nothing else", async () => {
    expect((await get("/metadata?constructor=web")).body).toContain("CONSTRUCTOR=web\n");
    expect((await get("/metadata?constructor=Object")).status).toBe(404);
    expect((await get("/metadata?x=1")).status).toBe(404);
  });
});

describe("a template", () => {
  it("that yields more than 8 MiB is 500, every time", async () => {
    for (let time = 0; time < 3; time++) {
      expect(await get("/generic?role=costly")).toEqual({ status: 500, body: "500 config broken\n" });
    }
    await expectAnswered();
  });

  it("with three nested loops over 256 entries is 500, and others are answered meanwhile", async () => {
    const costly = Array.from({ length: 8 }, () => get("/ignition?role=costly"));
    await expectAnswered();
    for (const answer of await Promise.all(costly))
      expect(answer).toEqual({ status: 500, body: "500 config broken\n" });
    await expectAnswered();
  });
});

describe("connections", () => {
  it("of up to 10,000 clients that say nothing stop no other", async () => {
    const count = Math.min(10_000, fileLimit() - 1_000);
    if (count < 10_000) process.stdout.write(`${count} idle connections, by this machine's limit of open files\n`);
    const sockets: Socket[] = [];
    try {
      // In groups, since a listener's queue holds some hundreds.
      while (sockets.length < count) {
        sockets.push(...(await Promise.all(Array.from({ length: Math.min(250, count - sockets.length) }, open))));
      }
      expect(sockets).toHaveLength(count);
      await expectAnswered();
    } finally {
      for (const socket of sockets) socket.destroy();
    }
    await expectAnswered();
  });
});

/** How many files this process may have open, and davit with it: Node raises its limit to the highest allowed. */
function fileLimit(): number {
  const [, limit] = /^Max open files\s+\S+\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
  return Number(limit);
}

/** From an address of its own: of those who share one, the next would be turned away as well. */
function open(): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", localAddress: "127.0.0.2" }, () => {
      socket.on("error", () => undefined);
      resolve(socket);
    });
    socket.once("error", reject);
  });
}

it("a stop loses no line of the log: each answer that was given has one", async () => {
  const paths = Array.from({ length: 500 }, (_, at) => `/nothing/${at}`);
  await Promise.all(paths.map((path) => get(path)));
  expect(await davit.stop()).toBe(0);
  await expect.poll(() => davit.log.at(-1)).toMatchObject({ msg: "stopped" });
  const logged = new Set(davit.log.map(({ path }) => path));
  expect(paths.filter((path) => !logged.has(path))).toEqual([]);
});
