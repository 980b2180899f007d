/**
 * The commands and values of docs/operate/install.md, and the values of docs/operate/dhcp.md. What needs a cluster is only acted: the shell runs every block in the page's
 * order, with helm rendering instead of installing, and nothing behind kubectl. The blocks marked `sh e2e` run on a node in
 * `make e2e`.
 */

import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chartToolPath } from "../../tools/build/chart-tools.ts";
import { containersOf, type Manifest, manifestsOf, podOf, rendered, within } from "../chart/helm.ts";
import { blocksOf, readPage } from "../helpers/page-examples.ts";
import { missing } from "../helpers/requirements.ts";

const root = join(import.meta.dirname, "../..");
const page = readPage("operate/install.md");
const dhcpPage = readPage("operate/dhcp.md");

// Renderings are numbered in the order of the page. Everything that would act on something else does nothing.
const acted = `set -eu
helm() {
  case $1 in
    install|upgrade) shift; "$HELM" template "$@" > "rendered-$(ls rendered-* 2>/dev/null | wc -l).yaml" ;;
  esac
}
sha256sum() { printf '%064d  %s\\n' 0 "$1"; }
for name in curl docker gpg kill kubectl make python3 sleep; do eval "$name() { :; }"; done
`;

describe.skipIf(missing("helm"))("the commands of docs/operate/install.md", () => {
  let directory = "";
  let written: readonly string[] = [];
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), "davit-install-"));
    for (const name of ["charts", "manifests"]) symlinkSync(join(root, name), join(directory, name));
    const { status, stderr } = runPage(directory);
    expect(stderr).toBe("");
    expect(status).toBe(0);
    written = readdirSync(directory).filter((name) => name.startsWith("rendered-"));
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  const manifests = (name: string) => manifestsOf(readFileSync(join(directory, name), "utf8"));

  it("install davit, then assets, followers and signatures", () => {
    expect(written.toSorted()).toEqual([0, 1, 2, 3].map((number) => `rendered-${number}.yaml`));
    const [first = "", assets = "", followers = "", signed = ""] = written.toSorted();
    expect(deploymentsOf(manifests(first))).toEqual([]);
    const list = manifests(assets).find(({ metadata }) => metadata.name === "davit-assets");
    expect(JSON.stringify(list)).toContain("http://192.168.1.5:8000/initrd.gz");
    expect(deploymentsOf(manifests(followers))).toEqual(["davit-boot"]);
    expect(argsOf(manifests(signed), "davit-boot")).toContain("--signing-key=/etc/davit/signing/key");
  });

  it.each(["rendered-0.yaml", "davit-install.yaml"])("say the image, the port and the address in %s", (name) => {
    const all = manifests(name);
    expect(containerOf(all, "davit").image).toBe("registry.example:5000/davit:0.2.0");
    expect(argsOf(all, "davit")).toContain("--advertise-address=192.168.1.20:30080");
    const service = all.find(({ kind, metadata }) => kind === "Service" && metadata.name === "davit");
    expect(service?.spec).toMatchObject({ type: "NodePort", ports: [{ port: 8080, nodePort: 30_080 }] });
  });

  it("leave everything else of manifests/install.yaml as it is", () => {
    const lines = (text: string) => text.split("\n").length;
    const [before, after] = [join(root, "manifests/install.yaml"), join(directory, "davit-install.yaml")];
    // An argument and a port.
    expect(lines(readFileSync(after, "utf8")) - lines(readFileSync(before, "utf8"))).toBe(2);
  });

  it.each([page, dhcpPage].flatMap((text) => blocksOf(text, "yaml values")).map((text) => [text.split("\n")[0], text]))(
    "take the values of %s",
    async (_name, text) => {
      const file = join(directory, "values.yaml");
      writeFileSync(file, text);
      const all = manifestsOf(await rendered({ args: ["--values", file] }));
      expect(all.length).toBeGreaterThan(10);
    },
  );
});

function runPage(directory: string) {
  const script = acted + blocksOf(page, "sh(?: e2e)?").join("\n");
  const env = { PATH: process.env.PATH, HOME: directory, HELM: chartToolPath("helm") };
  return spawnSync("bash", ["-c", script], {
    cwd: directory,
    encoding: "utf8",
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
}

function deploymentsOf(manifests: readonly Manifest[]): readonly string[] {
  return manifests.filter(({ kind }) => kind === "Deployment").map(({ metadata }) => metadata.name);
}

/** The container of davit in a workload. */
function containerOf(manifests: readonly Manifest[], workload: string) {
  const kinds = ["StatefulSet", "Deployment"];
  const manifest = manifests.find(({ kind, metadata }) => kinds.includes(kind) && metadata.name === workload);
  const pod = manifest === undefined ? undefined : podOf(manifest);
  const container = containersOf(pod ?? {}).find(({ name }) => name === "davit");
  return within({ container: container ?? {} }, "container");
}

function argsOf(manifests: readonly Manifest[], workload: string): unknown {
  return containerOf(manifests, workload).args;
}
