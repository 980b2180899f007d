/** The GRUB config of an Install: `davit render` beside a real `davit serve` with and without a signing key. */

import { mkdir, mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generateKey } from "openpgp";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startDavit } from "../../tools/davit-process.ts";
import { runCommand } from "../helpers/command-under-test.ts";

const installs = `
apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: disk}
spec: {effect: Install, boot: {kernel: /assets/linux, args: [wipe]}}
---
apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: script}
spec: {effect: Install, boot: {kernel: /assets/linux, grubScript: "menuentry x {\\nreboot\\n}\\n"}}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: one}
spec: {profileRef: {name: disk}, selector: {matchLabels: {mac: "52:54:00:00:00:01"}}}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: by-serial}
spec: {profileRef: {name: script}, selector: {matchLabels: {serial: S1}}}
`;
const guard = '[ "$net_default_mac" = "52:54:00:00:00:01" ]';
const advertised = ["--advertise-address", "192.0.2.1:8080"];
const known = ["mac=52-54-00-00-00-01", "mac=52-54-00-00-00-02&serial=S1", "serial=S1"];
const questions = [...known, "mac=52-54-00-00-00-03"].flatMap((query) =>
  ["grub", "ipxe", "metadata"].map((endpoint) => ({ query, endpoint })),
);

let folder: string;
let objects: string;
let keyFile: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-render-signed-"));
  objects = join(folder, "objects");
  keyFile = join(folder, "signing.key");
  await mkdir(objects);
  const file = join(objects, "all.yaml");
  await writeFile(file, installs);
  // A file of this second may be half-written: its installs would wait.
  await utimes(file, new Date(0), new Date(0));
  const key = { type: "rsa", rsaBits: 2048, userIDs: { name: "render" }, format: "armored" } as const;
  await writeFile(keyFile, (await generateKey(key)).privateKey, { mode: 0o600 });
}, 60_000);

afterAll(async () => {
  await rm(folder, { recursive: true });
});

it.each([
  { name: "without a signing key", keyOption: undefined },
  { name: "with --signing-key", keyOption: "--signing-key" },
  { name: "with --grub-signing-key", keyOption: "--grub-signing-key" },
])(
  "is what the server answers, byte for byte, $name",
  async ({ keyOption }) => {
    const keys = keyOption === undefined ? [] : [keyOption, keyFile];
    const args = [...advertised, ...keys];
    const davit = await startDavit({ manifests: objects, dataDir: join(folder, `data${keyOption}`), args });
    try {
      for (const { query, endpoint } of questions) {
        const answer = await fetch(`${davit.bootUrl}/${endpoint}?${query}`);
        const body = await answer.text();
        expect(answer.status).toBe(known.includes(query) ? 200 : 404);
        const signed = keyOption === undefined ? [] : ["--signed"];
        const words = ["--manifests", objects, "--query", query, "--endpoint", endpoint, ...advertised, ...signed];
        const ran = await runCommand(["render", ...words]);
        expect([ran.code, ran.output]).toEqual(answer.ok ? [0, body] : [1, ""]);
        const isGuarded = keyOption !== undefined && endpoint === "grub" && query === known[0];
        expect(body.includes(guard)).toBe(isGuarded);
      }
    } finally {
      await davit.stop();
    }
  },
  120_000,
);
