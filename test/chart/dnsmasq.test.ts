/** dnsmasq itself takes the configuration that the chart renders for it. */

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { missing } from "../helpers/requirements.ts";
import { manifestsOf, rendered, within } from "./helm.ts";

describe.skipIf(missing("helm", "dnsmasq"))("dnsmasq", () => {
  it.each([
    ["takes its configuration", [], 0],
    ["refuses a word of a user's that it does not know", ["--set", "dnsmasq.extraConfig=no-such-word"], 1],
  ])("%s", async (_fact, args, code) => {
    const manifests = manifestsOf(await rendered({ way: "dnsmasq", args }));
    const config = manifests
      .map((manifest) => within(manifest, "data")["dnsmasq.conf"])
      .find((text) => text !== undefined);
    const directory = mkdtempSync(join(tmpdir(), "davit-dnsmasq-"));
    const file = join(directory, "dnsmasq.conf");
    // The directory of its files is the container's.
    writeFileSync(file, String(config).replace(/^tftp-root=.*$/m, `tftp-root=${directory}`));
    const { status, stderr } = spawnSync("dnsmasq", ["--test", `--conf-file=${file}`], { encoding: "utf8" });
    rmSync(directory, { recursive: true });
    expect(stderr).toContain(code === 0 ? "syntax check OK" : "bad option");
    expect(status).toBe(code);
  });
});
