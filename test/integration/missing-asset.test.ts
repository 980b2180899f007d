/** No permit is spent while a file of the script is missing: the machine waits, and then installs by its grant. */

import { mkdir, rm, writeFile } from "node:fs/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type DavitBootProcess,
  type DavitProcess,
  startDavitBoot,
  storeOf,
  threadsOf,
} from "../../tools/davit-process.ts";
import { InstallWorld, ledgerId, macOf, queryOf, stateOf } from "../helpers/install-world.ts";

const soon = { timeout: 60_000, interval: 100 };
const limitMs = 180_000;
const otherSha256 = "0".repeat(64);

let world: InstallWorld;
beforeEach(async () => {
  world = await InstallWorld.make();
});
afterEach(() => world.stop());

/** The Profile that installs, and the Group of its machines, with a grant. */
async function write(ledger: string, { boot = "kernel: /assets/linux", profile = "", generation = 1 } = {}) {
  const until = new Date(Date.now() + 3_600_000).toISOString();
  await world.writeText(`apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: wipe}
spec:
  effect: Install
  install: {then: exit, timeout: 1h}
  boot:
    ${boot.replaceAll("\n", "\n    ")}
${profile}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: all}
spec:
  selector: {matchLabels: {role: lab}}
  profileRef: {name: wipe}
  install: {generation: ${generation}, ledger: "${ledger}", until: "${until}", scope: All}
`);
}

async function serveGranted(boot?: { boot?: string; profile?: string }, args: readonly string[] = []) {
  const davit = await world.serve(args);
  await write(await ledgerId(davit), boot);
  return davit;
}

const put = (name: string, text = "bytes") => writeFile(world.at("assets", name), text);

/** The status and the first line of the body, once davit has taken in all objects. */
async function bootOf({ bootUrl }: Pick<DavitBootProcess, "bootUrl">, path = "/ipxe"): Promise<string> {
  const waiting = /no matching group|no permit to install|not certain|are changing|not logged yet/;
  for (;;) {
    const response = await fetch(`${bootUrl}${path}?${queryOf(1)}`);
    const [line = ""] = (await response.text()).split("\n");
    if (response.status === 404 || response.status === 503 ? !waiting.test(line) : true) {
      return `${response.status} ${line.replace(/^(503|#) /, "").replace(/^503 /, "")}`;
    }
  }
}

const scriptOf = async ({ bootUrl }: DavitBootProcess) => await (await fetch(`${bootUrl}/ipxe?${queryOf(1)}`)).text();
const installs = "200 #!ipxe";
const missing = (path: string) => `503 asset missing: ${path}`;
const readyz = async ({ opsUrl }: DavitBootProcess) => await (await fetch(`${opsUrl}/readyz?verbose`)).text();

describe("a machine with a grant", { timeout: limitMs }, () => {
  it("waits while the kernel is missing, spends nothing, and installs when the file is there", async () => {
    await rm(world.at("assets"), { recursive: true });
    await mkdir(world.at("assets"));
    const davit = await serveGranted();
    expect(await bootOf(davit)).toBe(missing("/assets/linux"));
    expect(await bootOf(davit, "/grub")).toBe(missing("/assets/linux"));
    expect(await stateOf(davit)).toBe("");
    await put("linux");
    expect(await bootOf(davit)).toBe(installs);
    expect(await stateOf(davit)).toBe("Claimed");
  });

  it("waits for each initrd, and for the file that its digest names", async () => {
    await put("linux");
    const davit = await serveGranted({
      boot: `kernel: /assets/linux\ninitrd: ["/assets/first", "--name second /assets/dir/second?sha256=${otherSha256}"]`,
    });
    expect(await bootOf(davit)).toBe(missing("/assets/first"));
    await put("first");
    expect(await bootOf(davit)).toBe(missing("/assets/dir/second"));
    await mkdir(world.at("assets/dir"));
    await put("dir/second");
    expect(await bootOf(davit)).toBe(missing("/assets/dir/second"));
    expect(await stateOf(davit)).toBe("");
  });

  it("waits for files of davit that arguments name, and for no others", async () => {
    await put("linux");
    const davit = await serveGranted({
      boot: [
        "kernel: /assets/linux",
        'args: ["root={{davit.url}}/assets/rootfs.img", "repo={{davit.url}}/assets/repo/", "x=http://192.0.2.1/assets/no"]',
      ].join("\n"),
    });
    expect(await bootOf(davit)).toBe(missing("/assets/rootfs.img"));
    await put("rootfs.img");
    expect(await bootOf(davit)).toBe(missing("/assets/repo/"));
    await mkdir(world.at("assets/repo"));
    expect(await bootOf(davit)).toBe(installs);
  });

  it("waits for the files of the Profile's own script", async () => {
    const davit = await serveGranted({
      boot: 'script: "#!ipxe\\n# /assets/old\\nkernel /assets/linux x=1\\ninitrd http://192.0.2.1/assets/no\\nboot"',
    });
    expect(await bootOf(davit)).toBe(missing("/assets/linux"));
    await put("linux");
    expect(await bootOf(davit)).toBe(installs);
  });

  it("that has claimed its install gets the script again, although the kernel is gone", async () => {
    await put("linux");
    const davit = await serveGranted();
    expect(await bootOf(davit)).toBe(installs);
    await rm(world.at("assets/linux"));
    expect(await bootOf(davit)).toBe(installs);
  });

  it("waits while davit has not fetched the file that its Profile lists", async () => {
    const davit = await serveGranted({
      profile: `  assets: [{name: linux, url: "http://192.0.2.1/linux", sha256: "${otherSha256}"}]`,
    });
    expect(await bootOf(davit)).toBe(missing("/assets/linux"));
    await put("linux");
    expect(await bootOf(davit)).toBe(missing("/assets/linux"));
    expect(await stateOf(davit)).toBe("");
  });

  it("boots its disk without a check of the files", async () => {
    await put("linux");
    const davit = await serveGranted();
    expect(await bootOf(davit)).toBe(installs);
    // The kernel's URL names the claim.
    const [kernel] = /\/assets\/\S+/.exec(await scriptOf(davit)) ?? [];
    await (await fetch(`${davit.bootUrl}${kernel}`)).text();
    await rm(world.at("assets/linux"));
    await expect.poll(() => stateOf(davit), soon).toBe("Installing");
    expect(await scriptOf(davit)).toBe("#!ipxe\nexit\n");
  });
});

describe("a missing asset", { timeout: limitMs }, () => {
  it("is in readyz, in the Profile's status, in the console and in the history", async () => {
    const davit = await serveGranted();
    expect(await bootOf(davit)).toBe(missing("/assets/linux"));
    expect(await readyz(davit)).toContain('asset missing: "/assets/linux"');
    await expect
      .poll(() => statusOf(davit), soon)
      .toContain("claim no install, because these files are not below --assets-dir");
    const preview = await fetch(`${davit.opsUrl}/preview?${queryOf(1)}`);
    expect(await preview.text()).toContain("asset missing: /assets/linux");
    const history = await fetch(`${davit.opsUrl}/history?mac=${macOf(1)}`);
    expect(await history.text()).toContain("503 assetMissing /assets/linux");
    const json = await fetch(`${davit.opsUrl}/history?mac=${macOf(1)}`, { headers: { accept: "application/json" } });
    expect(JSON.stringify(await json.json())).toContain('"reason":"assetMissing"');
    const fleet = await (await fetch(`${davit.opsUrl}/console`)).text();
    expect(fleet).toContain("asset missing: /assets/linux");
  });

  it("is missing at the boot thread that answers, whichever that is", async () => {
    const davit = await serveGranted(undefined, ["--boot-threads", "3"]);
    await threadsOf(davit, 3);
    const answers = await Promise.all(Array.from({ length: 40 }, () => bootOf(davit)));
    expect([...new Set(answers)]).toEqual([missing("/assets/linux")]);
    expect(await stateOf(davit)).toBe("");
    expect(await readyz(davit)).toContain('asset missing: "/assets/linux"');
    await put("linux");
    expect(await bootOf(davit)).toBe(installs);
  });

  it("of a follower is a file of its own directory: the writer's files do not count", async () => {
    const davit = await serveGranted();
    await put("linux");
    const follower = await follow(davit, "followers");
    const without = await startDavitBoot([...storeOf(davit)]);
    for (const each of [follower, without]) expect(await bootOf(each)).toBe(missing("/assets/linux"));
    await without.stop("SIGKILL");
    expect(await stateOf(davit)).toBe("");
    expect(await readyz(follower)).toContain('asset missing: "/assets/linux"');
    // A follower answers by its own files, also if the writer has none.
    await rm(world.at("assets", "linux"));
    await writeFile(world.at("followers", "linux"), "bytes");
    await expect.poll(() => bootOf(follower), soon).toBe(installs);
    expect(await stateOf(davit)).toBe("Claimed");
  });
});

async function follow(davit: DavitProcess, directory: string): Promise<DavitBootProcess> {
  await mkdir(world.at(directory));
  return await world.boot(...storeOf(davit), "--assets-dir", world.at(directory));
}

/** The console's page of the Profile, with its conditions. */
async function statusOf({ opsUrl }: DavitProcess): Promise<string> {
  return await (await fetch(`${opsUrl}/console/objects/Profile/default/wipe`)).text();
}
