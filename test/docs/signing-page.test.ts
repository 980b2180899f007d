/** The commands of docs/use/signing.md that make keys: each key has a file of its own, and davit signs by it. */

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { readSigningKey } from "../../src/trust/sign/signing-key.ts";
import { readPage } from "../helpers/page-examples.ts";
import { missing } from "../helpers/requirements.ts";

const page = readPage("use/signing.md");
const commands = ["Making a key", "A key for GRUB alone"].flatMap((title) => {
  const [, section = ""] = new RegExp(`^## ${title}\n([^]*?)(?=^## )`, "m").exec(page) ?? [];
  return [...section.matchAll(/^ {4}(.*)$/gm)].map(([, command = ""]) => command);
});
const secretFiles = commands.flatMap((command) => /--export-secret.* > (\S+)\)$/.exec(command)?.[1] ?? []);

it.skipIf(missing("gpg"))(
  "makes three keys, none in the place of another",
  async () => {
    expect(new Set(secretFiles)).toEqual(new Set(["signing.key", "signing-subkey.key", "grub.key"]));
    expect(secretFiles).toHaveLength(3);
    // The agent's socket is below it, and its path may not be long.
    const folder = mkdtempSync(join(tmpdir(), "keys-"));
    try {
      const lines = commands.filter((command) => !command.startsWith("davit "));
      execFileSync("bash", ["-eu", "-c", lines.join("\n")], { cwd: folder, stdio: "pipe" });
      const nowMs = Date.now();
      for (const name of secretFiles) {
        const material = { bytes: readFileSync(join(folder, name)), passphrase: undefined };
        await expect(readSigningKey(material, nowMs)).resolves.toBeDefined();
      }
    } finally {
      execFileSync("gpgconf", ["--kill", "all"], { env: { ...process.env, GNUPGHOME: join(folder, "keys") } });
      rmSync(folder, { recursive: true });
    }
  },
  120_000,
);
