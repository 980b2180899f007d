/**
 * Ignition by HTTPS: Debian's Ignition fetches a config from davit, as the first config of a machine says. That one
 * has the authority, and may come from anywhere: here it is a file.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isJsonObject, parseJsonObject } from "../../src/model/json.ts";
import type { DavitProcess } from "../../tools/davit-process.ts";
import { type Authority, makeAuthority } from "../helpers/certificates.ts";
import { InstallWorld } from "../helpers/install-world.ts";
import { missing } from "../helpers/requirements.ts";

const program = "/usr/lib/dracut/modules.d/30ignition/ignition";
const startLimitMs = 90_000;
const objects = `apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: web}
spec:
  requireTls: true
  ignition:
    inline: |
      {
        "ignition": {"version": "3.3.0"},
        "storage": {"files": [{"path": "/etc/davit", "contents": {"source": "data:,{{davit.url}}"}}]}
      }
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: web}
spec:
  selector: {matchLabels: {role: web}}
  profileRef: {name: web}
`;

describe.skipIf(missing("ignition", "openssl"))("Ignition by HTTPS", { timeout: startLimitMs }, () => {
  let world: InstallWorld;
  let authority: Authority;
  let davit: DavitProcess;
  let url = "";

  beforeAll(async () => {
    world = await InstallWorld.make();
    authority = makeAuthority(world.folder);
    const { certFile, keyFile } = authority.issue("boot");
    await world.writeText(objects);
    const certificate = ["--boot-tls-cert-file", certFile, "--boot-tls-key-file", keyFile];
    davit = await world.serve(["--boot-tls-address", "127.0.0.1:0", ...certificate]);
    url = `https://${davit.log.find(({ msg }) => msg === "serving")?.advertisedTls}`;
  }, startLimitMs);
  afterAll(() => world.stop());

  /** The first config of a machine. */
  function firstConfig(source: string, { cert }: Authority, by: "replace" | "merge" = "replace"): string {
    const certificateAuthorities = [{ source: `data:;base64,${Buffer.from(cert).toString("base64")}` }];
    const config = by === "replace" ? { replace: { source } } : { merge: [{ source }] };
    return JSON.stringify({ ignition: { version: "3.3.0", config, security: { tls: { certificateAuthorities } } } });
  }

  /** Runs the stage that fetches configs. It repeats a request that fails, so it ends when it has said `enough`. */
  async function fetchStage(first: string, enough = /^$/) {
    const [input, cache] = [world.at("first.ign"), world.at("cache.json")];
    await Promise.all([writeFile(input, first), writeFile(cache, "")]);
    const state = ["--config-cache", cache, "--state-file", world.at("state"), "--neednet", world.at("neednet")];
    const child = spawn(program, ["--platform", "file", "--stage", "fetch", ...state, "--log-to-stdout"], {
      env: { IGNITION_CONFIG_FILE: input },
      stdio: ["ignore", "pipe", "inherit"],
    });
    let said = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      if (enough.test(said)) child.kill();
    });
    await once(child, "close");
    const { storage } = parseJsonObject(await readFile(cache, "utf8")) ?? {};
    return { code: child.exitCode, said, files: isJsonObject(storage) ? storage.files : undefined };
  }

  it.each(["replace", "merge"] as const)("fetches its config from davit by config.%s", async (by) => {
    const first = firstConfig(`${url}/ignition?role=web`, authority, by);
    const { code, files } = await fetchStage(first);
    expect(code).toBe(0);
    expect(files).toEqual([
      expect.objectContaining({ path: "/etc/davit", contents: expect.objectContaining({ source: `data:,${url}` }) }),
    ]);
  });

  it("fetches nothing from a davit with a certificate of another authority", async () => {
    const stranger = makeAuthority(world.folder, "stranger");
    const { said, files } = await fetchStage(firstConfig(`${url}/ignition?role=web`, stranger), /attempt #2/);
    expect(said).toContain("x509: certificate signed by unknown authority");
    expect(files).toBeUndefined();
  });

  it("ends with an error if the config demands HTTPS, and its URL is for HTTP", async () => {
    const { code, said, files } = await fetchStage(firstConfig(`${davit.bootUrl}/ignition?role=web`, authority));
    expect(code).toBe(1);
    expect(said).toContain("GET result: Forbidden");
    expect(files).toBeUndefined();
  });
});
