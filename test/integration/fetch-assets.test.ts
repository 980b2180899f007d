/** `davit fetch-assets` as an init container or a person runs it. */

import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { davitProgram } from "../../tools/davit-process.ts";
import { type FileServer, file, startFileServer, status } from "../assets/file-server.ts";
import { makeAuthority } from "../helpers/certificates.ts";
import { missing } from "../helpers/requirements.ts";

const content = Buffer.from("a kernel");
const sha256 = createHash("sha256").update(content).digest("hex");

let folder: string;
let server: FileServer;
const at = (name: string) => join(folder, name);

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-fetch-"));
  server = await startFileServer([file(content)]);
});

afterEach(async () => {
  server.close();
  await rm(folder, { recursive: true });
});

async function run(
  list: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<{ code: number; output: string; complaints: string }> {
  await writeFile(at("list.yaml"), list);
  const args = [davitProgram, "fetch-assets", "--list", at("list.yaml"), "--assets-dir", at("assets")];
  return await new Promise((resolve) => {
    const env = { ...process.env, ...environment };
    execFile(process.execPath, args, { env }, (error, output, complaints) => {
      resolve({ code: typeof error?.code === "number" ? error.code : 0, output, complaints });
    });
  });
}

it("fetches what is not there, and tells it as log lines where nobody looks on", async () => {
  const list = `- {url: "${server.url}/os/vmlinuz", sha256: ${sha256}}`;
  expect(await run(list)).toMatchObject({ code: 0, complaints: "" });
  expect(await readFile(at("assets/vmlinuz"), "utf8")).toBe("a kernel");
  const { code, output } = await run(list);
  expect(code).toBe(0);
  expect(JSON.parse(output)).toMatchObject({ msg: "asset is there", path: "vmlinuz" });
  expect(server.ranges).toEqual(["whole"]);
});

it("fetches the rest when one cannot be had, names that one without its query, and ends with 1", async () => {
  const wrong = "0".repeat(64);
  const { code, complaints } = await run(`
- {url: "${server.url}/a?signature=hunter2", sha256: "${wrong}"}
- {url: "${server.url}/b", sha256: ${sha256}}
`);
  expect(code).toBe(1);
  expect(complaints).toBe(`Fetching "a" from "${server.url}/a": its SHA-256 is not ${wrong}: correct url or sha256\n`);
  expect(await readdir(at("assets"))).toEqual(["b"]);
});

it.skipIf(missing("openssl"))("fetches by HTTPS, and follows no redirect from there to HTTP", async () => {
  const authority = makeAuthority(folder);
  const redirect = status(302, { location: `${server.url}/a` });
  const secure = await startFileServer(
    [(request, response) => (request.url === "/a" ? redirect : file(content))(request, response)],
    authority.issue("mirror"),
  );
  const list = ["a", "b"].map((name) => `- {url: "${secure.url}/${name}", sha256: ${sha256}}`);
  const { code, complaints } = await run(list.join("\n"), { NODE_EXTRA_CA_CERTS: authority.certFile });
  secure.close();
  expect({ code, complaints }).toEqual({
    code: 1,
    complaints: `Fetching "a" from "${secure.url}/a": it is redirected from https to http\n`,
  });
  expect(await readdir(at("assets"))).toEqual(["b"]);
  expect(server.ranges).toEqual([]);
});

it("fetches nothing when anything is wrong with the list", async () => {
  const { code, complaints } = await run(`
- {url: "${server.url}/a", sha256: ${sha256}}
- {url: "${server.url}/b"}
`);
  expect({ code, complaints }).toEqual({
    code: 1,
    complaints: `${at("list.yaml")}: line 3: it has no sha256: take it from the publisher of the file\n`,
  });
  expect(server.ranges).toEqual([]);
});

it("fetches everything from a server that ends each connection, however slow the disk is", async () => {
  const names = ["a", "b", "c", "d"];
  const big = Buffer.alloc(24 * 1024 * 1024, "kernel");
  const digest = createHash("sha256").update(big).digest("hex");
  await mkdir(at("www"));
  for (const name of names) await writeFile(at(`www/${name}`), big);
  const program =
    "import http.server as s; h = s.ThreadingHTTPServer(('127.0.0.1', 0), s.SimpleHTTPRequestHandler); print(h.server_port, flush=True); h.serve_forever()";
  const python = spawn("python3", ["-c", program], { cwd: at("www"), stdio: ["ignore", "pipe", "ignore"] });
  try {
    const [port] = await once(python.stdout, "data");
    const list = names.map((name) => `- {url: "http://127.0.0.1:${String(port).trim()}/${name}", sha256: ${digest}}`);
    for (let round = 0; round < 5; round++) {
      expect(await run(list.join("\n"))).toMatchObject({ code: 0, complaints: "" });
      await rm(at("assets"), { recursive: true });
    }
  } finally {
    python.kill();
  }
});
