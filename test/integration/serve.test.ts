/** davit as its users run it: a process, a directory of YAML, and curl's view of what comes out. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFile, mkdir, mkdtemp, readdir, readFile, readlink, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type DavitOptions, type DavitProcess, davitProgram, startDavit } from "../../tools/davit-process.ts";

const mac = "52:54:00:a1:9c:ae";

function profile(name: string, spec: string): string {
  return `apiVersion: davit.dev/v1alpha1\nkind: Profile\nmetadata: {name: ${name}}\nspec:\n${indent(spec)}\n`;
}

function group(name: string, spec: string): string {
  return `apiVersion: davit.dev/v1alpha1\nkind: Group\nmetadata: {name: ${name}}\nspec:\n${indent(spec)}\n`;
}

function indent(text: string): string {
  return text.trim().replaceAll(/^/gm, "  ");
}

const good = [
  profile("web", "boot: {kernel: /assets/vmlinuz, args: [quiet]}"),
  group("good", `profileRef: {name: web}\nselector: {matchLabels: {mac: "${mac}"}}\nmetadata: {role: web}`),
].join("---\n");

describe("davit serve", () => {
  let folder: string;
  let manifests: string;
  let dataDir: string;
  let davit: DavitProcess | undefined;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "davit-serve-"));
    manifests = join(folder, "manifests");
    dataDir = join(folder, "data");
    await mkdir(manifests);
    await writeFile(join(manifests, "good.yaml"), good);
  });

  afterEach(async () => {
    await davit?.stop();
    davit = undefined;
    await rm(folder, { recursive: true });
  });

  async function start(options: Partial<DavitOptions> = {}): Promise<DavitProcess> {
    davit = await startDavit({ manifests, dataDir, ...options });
    return davit;
  }

  async function get(path: string): Promise<{ status: number; body: string }> {
    const response = await fetch(`${davit?.bootUrl}${path}`);
    return { status: response.status, body: await response.text() };
  }

  /** Answers of the good machine: what no mistake of others may change. */
  const goodMachine = () => get(`/ipxe?mac=${mac}`);
  const goodScript = { status: 200, body: "#!ipxe\nkernel /assets/vmlinuz quiet\nboot\n" };

  async function attention(): Promise<string> {
    return await (await fetch(`${davit?.opsUrl}/readyz?verbose`)).text();
  }

  it("serves a change of a file, and what a file no longer says is gone", async () => {
    await start();
    expect(await goodMachine()).toEqual(goodScript);
    await writeFile(join(manifests, "good.yaml"), good.replace("quiet", "debug"));
    await expect.poll(async () => (await goodMachine()).body, { timeout: 10_000 }).toContain("debug");
    await rm(join(manifests, "good.yaml"));
    await writeFile(join(manifests, "other.yaml"), profile("other", "boot: {kernel: /k}"));
    const removed = { status: 503, body: "503 group removed a moment ago\n" };
    await expect.poll(goodMachine, { timeout: 10_000 }).toEqual(removed);
  });

  describe("answers other machines whatever is wrong with one file", () => {
    // Each mistake is of a machine with another MAC; `said` is what the operator reads of it.
    const badMac = "52:54:00:00:00:bb";
    const badSelector = `selector: {matchLabels: {mac: "${badMac}"}}`;
    const badGroup = group("bad", `profileRef: {name: bad}\n${badSelector}`);
    const withTemplate = (part: string, inline: string) =>
      `${profile("bad", `${part}:\n  inline: ${JSON.stringify(inline)}`)}---\n${badGroup}`;

    it.each([
      { name: "broken YAML", file: "spec: {a: [", said: "bad.yaml", path: "/ipxe", status: 503 },
      { name: "a binary file", file: "\u0000\u0001\u0002", said: "bad.yaml", path: "/ipxe", status: 503 },
      {
        name: "an unknown field",
        file: group("bad", `profileRef: {name: web}\n${badSelector}\nprioritty: 5`),
        said: "spec (line 7): has a field that does not exist",
        path: "/ipxe",
        status: 503,
      },
      {
        name: "a wrong type",
        file: group("bad", `profileRef: {name: web}\n${badSelector}\npriority: high`),
        said: "spec.priority",
        path: "/ipxe",
        status: 503,
      },
      {
        name: "an emptied selector",
        file: group("bad", "profileRef: {name: web}\nselector: {matchLabels: {mac: }}"),
        said: "Group default/bad",
        path: "/ipxe",
        status: 503,
      },
      {
        name: "a catch-all with priority",
        file: group("bad", "profileRef: {name: web}\nmatchAll: true\npriority: 5"),
        said: "a matchAll group comes last: remove priority",
        path: "/ipxe",
        status: 503,
      },
      { name: "a missing Profile", file: badGroup, said: "ProfileNotFound", path: "/ipxe", status: 404 },
      {
        name: "a missing ConfigMap key",
        file: `${profile("bad", "generic: {templateFrom: {configMapKeyRef: {name: texts, key: absent}}}")}---\n${badGroup}---
apiVersion: v1\nkind: ConfigMap\nmetadata: {name: texts}\ndata: {present: x}\n`,
        said: 'KeyNotFound: spec.generic: ConfigMap "texts" has no key "absent"',
        path: "/generic",
        status: 500,
      },
      {
        name: "a template syntax error",
        file: withTemplate("generic", "{{#if a}}\nsecretword"),
        said: "InvalidTemplate: spec.generic: line ",
        path: "/generic",
        status: 500,
      },
      {
        name: "an undefined variable",
        file: withTemplate("generic", "secretword {{nowhere}}"),
        said: "ok",
        path: "/generic",
        status: 500,
      },
      {
        name: "a result that is not JSON for Ignition",
        file: withTemplate("ignition", "secretword ["),
        said: "ok",
        path: "/ignition",
        status: 500,
      },
    ])("$name", async ({ file, said, path, status }) => {
      await writeFile(join(manifests, "bad.yaml"), file);
      await start();
      expect(await goodMachine()).toEqual(goodScript);
      const bad = await get(`${path}?mac=${badMac}`);
      expect(bad.status).toBe(status);
      const told = await attention();
      expect(told).toContain(said);
      expect(`${told}${bad.body}${JSON.stringify(davit?.log)}`).not.toContain("secretword");
    });
  });

  it("says after a first start with a broken file that not everybody is answered", async () => {
    await writeFile(join(manifests, "bad.yaml"), "spec: {a: [");
    await start();
    expect((await get("/ipxe?mac=52:54:00:00:00:99")).status).toBe(503);
    expect(await attention()).toContain("only Groups that name a machine are answered");
    await rm(join(manifests, "bad.yaml"));
    await expect.poll(async () => (await get("/ipxe?mac=52:54:00:00:00:99")).status, { timeout: 15_000 }).toBe(404);
    expect(await attention()).not.toContain("only Groups that name a machine are answered");
  });

  it("answers 414 to a query of 9 KiB, and goes on", async () => {
    await start();
    expect((await get(`/ipxe?mac=${mac}&x=${"y".repeat(9 * 1024)}`)).status).toBe(414);
    expect(await goodMachine()).toEqual(goodScript);
  });

  it("keeps what a broken file said before it broke, over a restart as well", async () => {
    await start();
    await writeFile(join(manifests, "good.yaml"), "spec: {a: [");
    await expect.poll(attention, { timeout: 10_000 }).toContain("good.yaml");
    expect(await goodMachine()).toEqual(goodScript);
    await davit?.stop();
    await start();
    expect(await goodMachine()).toEqual(goodScript);
  });

  it("keeps what an emptied directory said, over a restart and while it is filled again", async () => {
    const other = "52:54:00:00:00:99";
    const all = group("all", "profileRef: {name: web}\nmatchAll: true\nmetadata: {role: installer}");
    await writeFile(join(manifests, "all.yaml"), all);
    await start();
    await rm(join(manifests, "good.yaml"));
    await rm(join(manifests, "all.yaml"));
    await expect.poll(attention, { timeout: 10_000 }).toContain("holds no manifest");
    expect((await get(`/metadata?mac=${mac}`)).body).toContain("ROLE=web");
    await davit?.stop();
    await start();
    expect(await attention()).toContain("leave one file with a document, such as a ConfigMap");
    expect((await get(`/metadata?mac=${mac}`)).body).toContain("ROLE=web");
    expect((await get(`/metadata?mac=${other}`)).body).toContain("ROLE=installer");
    await writeFile(join(manifests, "all.yaml"), all);
    await writeFile(join(manifests, "good.yaml"), good);
    const said = new Set<string>();
    while ((await attention()).includes("holds no manifest")) said.add((await get(`/metadata?mac=${mac}`)).body);
    said.add((await get(`/metadata?mac=${mac}`)).body);
    expect([...said]).toEqual([expect.stringContaining("ROLE=web")]);
  });

  it("forgets everything when one file with a document is all that is left", async () => {
    await start({ args: ["--tombstone-ttl", "1s"] });
    await writeFile(join(manifests, "keep.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: nothing-here}\n");
    await rm(join(manifests, "good.yaml"));
    await expect.poll(async () => (await goodMachine()).status, { timeout: 10_000 }).toBe(404);
  });

  it("has an acknowledged key after a crash, and after a torn log tail", async () => {
    await start();
    const write = await fetch(`${davit?.storeUrl}/v2/keys/note`, {
      method: "PUT",
      body: new URLSearchParams({ value: "kept" }),
    });
    expect(write.status).toBe(201);
    expect(await davit?.stop("SIGKILL")).toBeNull();
    const segments = (await readdir(dataDir)).filter((name) => name.endsWith(".log")).toSorted();
    await appendFile(join(dataDir, segments.at(-1) ?? ""), Buffer.from("half a batch"));
    await start();
    const read = await fetch(`${davit?.storeUrl}/v2/keys/note`);
    expect(await read.json()).toMatchObject({ action: "get", node: { key: "/note", value: "kept" } });
    expect(await goodMachine()).toEqual(goodScript);
  });

  it("with --store-address none listens for machines and operators alone, boots machines, and follows changes", async () => {
    const { pid, bootUrl, opsUrl } = await start({ args: ["--store-address", "none"] });
    expect(await goodMachine()).toEqual(goodScript);
    const ports = [bootUrl, opsUrl].map((url) => Number(new URL(url).port));
    expect(await listeningPorts(pid)).toEqual(new Set(ports));
    await writeFile(join(manifests, "good.yaml"), good.replace("args: [quiet]", "args: [loud]"));
    await expect.poll(async () => (await goodMachine()).body, { timeout: 10_000 }).toContain(" loud");
    expect((await fetch(`${opsUrl}/readyz`)).status).toBe(200);
    expect(await davit?.stop()).toBe(0);
  });

  it("stops on SIGTERM with exit code 0, long polls and all", async () => {
    await start();
    const poll = fetch(`${davit?.storeUrl}/v2/keys/note?wait=true`);
    const answered = await poll;
    expect(await davit?.stop()).toBe(0);
    expect(await answered.text()).toBe("");
  });

  it("shows its metrics", async () => {
    await start();
    await goodMachine();
    const text = async () => (await fetch(`${davit?.opsUrl}/metrics`)).text();
    expect(await text()).toMatch(/^davit_boot_requests_total\{endpoint="\/?ipxe",code="200"\} 1$/m);
    // A Group's status waits for its trial.
    await expect.poll(text).toMatch(/^davit_resources\{kind="Group",ready="true"\} 1$/m);
  });

  describe("refuses to start with one sentence", () => {
    it.each(["boot", "store", "ops"])("when the port of --%s-address is in use", async (name) => {
      const taken = createServer().listen(0, "127.0.0.1");
      await once(taken, "listening");
      const address = taken.address();
      const port = typeof address === "object" ? address?.port : undefined;
      const { code, errors } = await runToEnd([`--${name}-address`, `127.0.0.1:${port}`]);
      taken.close();
      expect(code).toBe(1);
      expect(errors).toMatch(/^Cannot listen on "127\.0\.0\.1:\d+": the port is in use/);
      expect(errors).toMatch(new RegExp(`--${name}-address\n$`));
    });

    it("when other users can read the data directory", async () => {
      await mkdir(dataDir, { mode: 0o755 });
      const { code, errors } = await runToEnd([]);
      expect(code).toBe(1);
      expect(errors).toBe(`Cannot use "${dataDir}": other users can read or write it: chmod o= "${dataDir}"\n`);
    });

    it("when another davit has the data directory", async () => {
      await start();
      const { code, errors } = await runToEnd([]);
      expect(code).toBe(1);
      expect(errors).toMatch(/^Locking .*another davit uses it.*\n$/);
    });

    it("when the manifests directory does not exist, among every other mistake", async () => {
      const { code, errors } = await runToEnd(["--manifests", join(folder, "absent"), "--log-level", "loud"]);
      expect(code).toBe(2);
      expect(errors).toContain('absent": --manifests needs one that exists\n');
      expect(errors).toContain('Bad value "loud" for --log-level');
    });

    async function runToEnd(args: readonly string[]): Promise<{ code: number; errors: string }> {
      const ports = ["boot", "store", "ops"].flatMap((name) => {
        return args.includes(`--${name}-address`) ? [] : [`--${name}-address`, "127.0.0.1:0"];
      });
      const words = [davitProgram, "serve", "--manifests", manifests, "--data-dir", dataDir, ...ports, ...args];
      const root = join(import.meta.dirname, "../..");
      const child = spawn(process.execPath, words, { cwd: root, stdio: ["ignore", "ignore", "pipe"] });
      let errors = "";
      child.stderr.setEncoding("utf8").on("data", (text: string) => {
        errors += text;
      });
      const [code] = await once(child, "close");
      return { code: Number(code), errors };
    }
  });
});

describe("davit", () => {
  it.each([
    { args: ["version"], code: 0, said: /^davit \d+\.\d+\.\d+ \(commit [\da-f]{40}(-dirty)?\)\n$/ },
    { args: ["--version"], code: 0, said: /^davit \d+\.\d+\.\d+ \(commit [\da-f]{40}(-dirty)?\)\n$/ },
    { args: ["-v"], code: 0, said: /^davit \d+\.\d+\.\d+ \(commit [\da-f]{40}(-dirty)?\)\n$/ },
    {
      args: ["serve", "--kubernetes", "--kubeconfig", "absent"],
      code: 2,
      said: /^No file "absent": --kubeconfig needs one that exists\n/,
    },
    { args: ["serve", "--help"], code: 0, said: /--manifests DIR\n/ },
    { args: ["--help"], code: 0, said: /davit serve/ },
    { args: [], code: 2, said: /davit serve/ },
    { args: ["brew"], code: 2, said: /^Unknown command "brew": see davit --help\n$/ },
  ])("$args ends with $code", async ({ args, code, said }) => {
    const child = spawn(process.execPath, [davitProgram, ...args]);
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        output += text;
      });
    }
    const [ended] = await once(child, "close");
    expect(ended).toBe(code);
    expect(output).toMatch(said);
  });
});

it.each(["/proc/absent", "/dev/null", join(import.meta.dirname, "absent"), ""])(
  "davit starts with the home directory %j",
  async (home) => {
    // No compiled code from elsewhere: davit looks for its own.
    const env = { PATH: process.env.PATH, HOME: home };
    const child = spawn(process.execPath, [davitProgram, "--version"], { env, timeout: 30_000 });
    expect(await once(child, "close")).toEqual([0, null]);
  },
);

/** The TCP ports on which a process listens, from its sockets in `/proc`. */
async function listeningPorts(pid: number): Promise<ReadonlySet<number>> {
  const descriptors = await readdir(`/proc/${pid}/fd`);
  const links = await Promise.all(descriptors.map((name) => readlink(`/proc/${pid}/fd/${name}`).catch(() => "")));
  const inodes = new Set(links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []));
  const tables = await Promise.all(["tcp", "tcp6"].map((name) => readFile(`/proc/${pid}/net/${name}`, "utf8")));
  const rows = tables.flatMap((table) => table.trim().split("\n").slice(1)).map((row) => row.trim().split(/\s+/));
  // 0A is the state LISTEN.
  const listening = rows.filter(([, , , state, , , , , , inode = ""]) => state === "0A" && inodes.has(inode));
  return new Set(listening.map(([, local = ""]) => Number.parseInt(local.split(":")[1] ?? "", 16)));
}
