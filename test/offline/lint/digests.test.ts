/** `davit lint` beside an assets directory whose files are not those that locations name by digests. */

import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { runCommand } from "../../helpers/command-under-test.ts";

const folder = mkdtempSync(join(tmpdir(), "davit-lint-digests-"));
afterAll(() => rmSync(folder, { recursive: true }));

const digest = createHash("sha256").update("a kernel").digest("hex");
const other = createHash("sha256").update("another").digest("hex");

async function lint(kernel: string, metadata = "{}", more = "") {
  const assets = join(folder, "assets");
  const manifests = join(folder, "manifests");
  for (const path of [assets, manifests]) mkdirSync(path, { recursive: true });
  writeFileSync(join(assets, "vmlinuz"), "a kernel");
  const group = `spec: {profileRef: {name: web}, selector: {matchLabels: {role: web}}, metadata: ${metadata}}`;
  writeFileSync(
    join(manifests, "all.yaml"),
    [
      "apiVersion: davit.dev/v1alpha1\nkind: Profile\nmetadata: {name: web}",
      `spec: {effect: Boot, boot: {kernel: "${kernel}"}${more}}\n---`,
      `apiVersion: davit.dev/v1alpha1\nkind: Group\nmetadata: {name: web}\n${group}\n`,
    ].join("\n"),
  );
  return await runCommand(["lint", "--manifests", manifests, "--assets-dir", assets]);
}

it("says nothing of a file that has the digest, also by a template and in capitals", async () => {
  for (const sha256 of [digest, digest.toUpperCase(), "{{digest}}"]) {
    const { output, code } = await lint(`/assets/vmlinuz?sha256=${sha256}`, `{digest: "${digest}"}`);
    expect(output).toBe("");
    expect(code).toBe(0);
  }
});

it("tells the digest of another file, and finds missing files as before", async () => {
  const wrong = await lint(`{{davit.url}}/assets/vmlinuz?sha256=${other}`);
  expect(wrong.output).toContain(`"/assets/vmlinuz" has the SHA-256 ${digest}: it is not sent (wrong-asset)`);
  expect(wrong.code).toBe(1);
  expect((await lint(`/assets/none?sha256=${digest}`)).output).toContain("missing-asset");
  expect((await lint("/assets/vmlinuz?sha256={{digest}}", '{digest: "abc"}')).output).toContain("wrong-asset");
});

it("refuses a digest with a typo where it is written", async () => {
  for (const typo of [digest.slice(1), `${digest}0`, digest.replace(/^./, "g"), ""]) {
    const { output, code } = await lint(`/assets/vmlinuz?sha256=${typo}`);
    expect(output).toContain("with 64 hexadecimal digits");
    expect(code).toBe(1);
  }
  for (const name of ["sha256sum", "SHA256"]) {
    const { output } = await lint(`/assets/vmlinuz?${name}=${digest}`);
    expect(output).toContain("sha256 of a location is in lower case");
  }
});

it("advises against a digest that nothing checks", async () => {
  expect((await lint(`http://192.0.2.7/vmlinuz?sha256=${digest}`)).output).toContain("(unchecked-digest)");
});

it("says nothing of a missing file that davit fetches", async () => {
  const fetched = `, assets: [{name: os/linux, url: "http://mirror.example/linux", sha256: "${digest}"}]`;
  expect((await lint(`/assets/os/linux?sha256=${digest}`, "{}", fetched)).output).toBe("");
  expect((await lint("/assets/os/linux", "{}", fetched)).output).toBe("");
  expect((await lint(`/assets/os/linux?sha256=${other}`, "{}", fetched)).output).toContain("(wrong-asset)");
  expect((await lint("/assets/os/other", "{}", fetched)).output).toContain("missing-asset");
});
