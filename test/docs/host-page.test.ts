/**
 * docs/operate/host.md: its commands install davit below a directory of the test, systemd takes its unit, davit starts as the
 * unit says and answers the page's machine, and promtool takes its config.
 */

import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startDavit } from "../../tools/davit-process.ts";
import { blocksOf, readPage } from "../helpers/page-examples.ts";
import { missing, promtoolPath } from "../helpers/requirements.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const page = readPage("operate/host.md");
const block = (kind: string) => blocksOf(page, kind).join("\n");

// Nothing outside of the test's directory changes, and no user is made.
const acted = `set -eu
sudo() { "$@"; }
for name in make useradd; do eval "$name() { :; }"; done
git() { echo abc1234; }
`;

let folder: string;
/** What a page's text is where its directories are the test's. */
let here: (text: string) => string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "davit-host-"));
  here = (text) => text.replaceAll(/(?<![\w.])\/(?=(?:opt|etc|srv|usr\/local|var\/lib)\/)/g, `${folder}/`);
  const checkout = join(folder, "checkout");
  for (const name of ["checkout", "opt", "usr/local/bin"]) mkdirSync(join(folder, name), { recursive: true });
  for (const name of ["bin", "node_modules", "crds", "console", "package.json", "LICENSE"]) {
    symlinkSync(join(root, name), join(checkout, name));
  }
  const rolldown = join(root, "node_modules/rolldown/bin/cli.mjs");
  const bundle = join(checkout, "dist/bundle");
  await run(process.execPath, [rolldown, "--config", "rolldown.config.js", "--dir", bundle], { cwd: root });
  const script = here(`${block("sh install")}\n${block("sh host")}`.replaceAll("-g davit ", ""));
  const path = `${join(folder, "usr/local/bin")}:${process.env.PATH}`;
  const { stdout } = await run("bash", ["-c", acted + script], { cwd: checkout, env: { PATH: path } });
  expect(stdout).toMatch(/^davit \d+\.\d+\.\d+ \(commit \S+\)\n$/);
}, 240_000);
afterAll(() => rmSync(folder, { recursive: true }));

it("starts davit as its unit says, and it answers the page's machine", { timeout: 120_000 }, async () => {
  const [, command = ""] = /^ExecStart=((?:.*\\\n)*.*)$/m.exec(here(block("ini davit.service"))) ?? [];
  const [program, name, ...words] = command.replaceAll("\\\n", " ").split(/ +/);
  expect([program, name]).toEqual([join(folder, "opt/davit/bin/davit"), "serve"]);
  const options = new Map(words.flatMap((word, at) => (word.startsWith("--") ? [[word, words[at + 1] ?? ""]] : [])));
  const manifests = options.get("--manifests") ?? "";
  const dataDir = options.get("--data-dir") ?? "";
  for (const each of ["--manifests", "--data-dir", "--log-format"]) options.delete(each);
  expect(options.get("--ops-address")).toBe("0.0.0.0:8081");
  options.set("--ops-address", "0.0.0.0:0");
  for (const file of ["groups.yaml", "profile.yaml"]) {
    cpSync(join(root, "manifests/quickstart", file), join(manifests, file));
    utimesSync(join(manifests, file), new Date(0), new Date(0));
  }
  mkdirSync(join(folder, "var/lib/davit"), { recursive: true, mode: 0o700 });
  const installed = join(folder, "opt/davit/dist/bundle/main.js");
  const davit = await startDavit({ manifests, dataDir, program: installed, args: [...options].flat() });
  try {
    const [, query = ""] = /\/ipxe(\?mac=[^']+)'/.exec(page) ?? [];
    const answer = await fetch(`${davit.bootUrl}/ipxe${query}`);
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringMatching(/^#!ipxe\nkernel /)]);
    expect((await fetch(`${davit.opsUrl}/preview${query}`)).status).toBe(401);
    expect((await fetch(`${davit.opsUrl}/metrics`)).status).toBe(200);
  } finally {
    expect(await davit.stop()).toBe(0);
  }
});

it.skipIf(missing("systemd-analyze"))("has a unit that systemd takes, and rates as confined", async () => {
  const unit = join(folder, "davit.service");
  writeFileSync(unit, here(block("ini davit.service")));
  const verified = await run("systemd-analyze", ["verify", "--man=no", unit]);
  expect(verified.stderr.split("\n").filter((line) => line.includes("davit"))).toEqual([]);
  const rated = await run("systemd-analyze", ["security", "--offline=yes", "--threshold=25", unit]);
  expect(rated.stdout).toContain("Overall exposure level");
});

it.skipIf(missing("promtool"))("has a config that Prometheus takes, with davit's alerts", async () => {
  const etc = join(folder, "etc/prometheus");
  mkdirSync(etc, { recursive: true });
  cpSync(join(root, "manifests/prometheus/davit.rules.yaml"), join(etc, "davit.rules.yaml"));
  const config = join(etc, "prometheus.yml");
  writeFileSync(config, here(block("yaml prometheus")));
  const { stdout } = await run(promtoolPath, ["check", "config", config]);
  expect(stdout).toContain("1 rule files found");
  expect(stdout).toMatch(/SUCCESS: \d+ rules found/);
});
