/**
 * docs/reference/api-kv.md against davit: a process runs the page's examples in their order, and every answer must be the page's.
 * A watch, which the page ends in `&`, is read while the example behind it is run.
 */

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Clients } from "../../src/http/client-shares.ts";
import { BodyReader } from "../../src/http/keys/body.ts";
import { endpointsOf } from "../../src/http/keys/endpoints.ts";
import { membersMethods } from "../../src/http/keys/members.ts";
import { keysMethods } from "../../src/http/keys/request.ts";
import { backupPath, followPath } from "../../src/model/follow-line.ts";
import { refusals } from "../../src/store/core/refusal.ts";
import { type DavitProcess, localAuthorization, startDavit } from "../../tools/davit-process.ts";
import { isBody } from "../conformance/exchange.ts";
import { type CurlCommand, examplesOf, parseCurl, readPage } from "../helpers/page-examples.ts";
import { openStore } from "../helpers/test-store.ts";

const page = readPage("reference/api-kv.md");
const examples = examplesOf(page).map((example) => ({ ...example, curl: parseCurl(example.command) }));

// The ports that the page names, and what stands behind each.
const openPort = "2379";
const guardedPort = "2389";

let folder: string;
const davits = new Map<string, DavitProcess>();

async function start(name: string, args: readonly string[]): Promise<DavitProcess> {
  return await startDavit({ manifests: join(folder, "manifests"), dataDir: join(folder, name), args });
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-api-kv-"));
  await mkdir(join(folder, "manifests"));
  const manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: nothing-here}\n";
  await writeFile(join(folder, "manifests", "empty.yaml"), manifest);
  await writeFile(join(folder, "tokens"), "a-token-of-the-file\n", { mode: 0o600 });
  davits.set(openPort, await start("open", ["--store-advertise-url", `http://127.0.0.1:${openPort}`]));
  davits.set(guardedPort, await start("guarded", ["--store-token-file", join(folder, "tokens")]));
}, 60_000);
afterAll(async () => {
  for (const davit of davits.values()) await davit.stop();
  await rm(folder, { recursive: true });
});

/** Sends what curl would send; resolves when the head of the answer is there. */
async function send({ url, method, headers, body }: CurlCommand): Promise<IncomingMessage> {
  const { storeUrl = "", dataDir = "" } = davits.get(url.port) ?? {};
  const { port } = new URL(storeUrl);
  // The page's word for what is another text in each data directory.
  const isLocal = headers.Authorization === "Bearer LOCAL-TOKEN";
  const { Authorization: _, ...others } = headers;
  const shown = isLocal ? { ...others, ...(await localAuthorization(dataDir)) } : headers;
  return await new Promise((resolve, reject) => {
    const sent = request({ port, method, path: url.pathname + url.search, headers: shown, agent: false });
    sent.on("response", resolve).on("error", reject).end(body);
  });
}

const leftOut = /^(?:Date|Connection|Keep-Alive|Access-Control-Allow-(?:Origin|Methods|Headers)):/;

/** What curl prints, without the headers that the page leaves out; of a stream as many lines as the page has. */
async function print(response: IncomingMessage, curl: CurlCommand, lineCount: number): Promise<string> {
  const { statusCode, statusMessage, rawHeaders } = response;
  const pairs = rawHeaders.flatMap((name, at) => (at % 2 === 0 ? [`${name}: ${rawHeaders[at + 1]}`] : []));
  const head = [`HTTP/1.1 ${statusCode} ${statusMessage}`, ...pairs.filter((line) => !leftOut.test(line))];
  const shown = curl.showsHead ? head : [];
  const before = curl.showsHead ? [...shown, ""] : [];
  const bodyLines = lineCount - before.length;
  let body = "";
  for await (const chunk of response) {
    body += String(chunk);
    if (curl.isStream && body.split("\n").length > bodyLines) break;
  }
  const lines = body.split("\n");
  return [...before, ...(curl.isStream ? lines.slice(0, bodyLines) : lines)].join("\n").trimEnd();
}

function expectShown(printed: string, answer: string): void {
  // Where it fits, it is shown as the page has it.
  expect(isBody(answer, printed) ? answer : printed).toBe(answer);
}

describe("the examples", () => {
  /** The watch that is under way. */
  let watch: { readonly printed: Promise<string>; readonly answer: string } | undefined;

  it.each(examples)("$command", async ({ curl, answer }) => {
    const lineCount = answer.split("\n").length;
    const printed = print(await send(curl), curl, lineCount);
    if (curl.isBackground) {
      watch = { printed, answer };
      return;
    }
    const seen = watch;
    watch = undefined;
    expectShown(await printed, answer);
    if (seen !== undefined) expectShown(await seen.printed, seen.answer);
  });
});

interface Route {
  readonly url: string;
  readonly methods: readonly string[];
}

/** What the listener answers, without the way to 404. */
async function routesOfListener(): Promise<readonly Route[]> {
  const store = await openStore();
  const unused = () => expect.fail("only the paths are asked for");
  const bodies = new BodyReader(new Clients());
  const endpoints = endpointsOf({ store, bodies, members: unused, uptime: unused });
  await store.stop();
  const urls = ["/v2/keys", "/v2/keys/*", followPath, backupPath, ...endpoints.map(({ url }) => url)];
  return urls.map((url) => ({ url, methods: methodsOf(url) }));
}

function methodsOf(url: string): readonly string[] {
  if (url === "/v2/keys/*") return keysMethods;
  return url === "/v2/members" ? membersMethods.filter((method) => method !== "PUT") : ["GET"];
}

describe("the page", () => {
  it("has an example of each endpoint and method", async () => {
    const shown = examples.map(({ curl }) => `${curl.method} ${curl.url.pathname}`);
    const lacking = (await routesOfListener())
      .flatMap(({ url, methods }) => methods.map((method) => `${method} ${url.replace(/\/\*$/, "/")}`))
      .filter((route) => !shown.some((each) => (route.endsWith("/") ? each.startsWith(route) : each === route)));
    expect((await routesOfListener()).map(({ url }) => url)).toContain("/v2/keys/*");
    // The root has no key: what can be done with one is shown below it.
    expect(lacking).toEqual(["GET /v2/keys"]);
  });

  it("has a row for each error", () => {
    const rows = page.split("\n").filter((line) => /^\| \d{3} \|/.test(line));
    const lacking = Object.values(refusals).filter(
      ({ code, status, message }) =>
        !rows.some((row) => row.startsWith(`| ${code} | ${status}`) && row.includes(message)),
    );
    expect(lacking).toEqual([]);
  });
});
