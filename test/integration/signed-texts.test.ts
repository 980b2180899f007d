/**
 * What a signature of davit's is worth to whoever chooses the query. GRUB runs any text that is well signed, and a shell
 * any text that it sources: a machine's words are data to both, or the text has no signature.
 */

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";
import { Gpg } from "../helpers/gpg.ts";
import { missing } from "../helpers/requirements.ts";

const startLimitMs = 90_000;

/** The Group `open` has values that open what they do not close: what comes behind must not be on the other side. */
const manifests = `
apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: web}
spec:
  boot: {kernel: /assets/vmlinuz, args: ["name=\${hostname}", "serial=\${serial}"]}
  ignition: {inline: '{"ignition": {"version": "3.4.0"}, "note": {{json (lookup request.query "x")}} }'}
  cloudConfig: {inline: "#cloud-config\\nnote: {{json request.raw_query}}\\n"}
  generic:
    inline: |
      {
        "uuid": "{{lookup request.query "uuid"}}",
        "mac": "{{lookup request.query "mac"}}",
        "osInstalled": {{eq (lookup request.query "os") "installed"}},
        "rawQuery": {{json request.raw_query}}
      }
  genericParts:
    - {name: raw, inline: "{{request.raw_query}}\\n"}
    - {name: list, inline: "[\\n{{json request.query.x}}\\n]\\n"}
    - {name: word, inline: "a {{request.query.x}} b\\n"}
    - {name: own, inline: "a b; c {{zone}}\\n"}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: web}
spec:
  profileRef: {name: web}
  selector: {matchLabels: {role: web}}
  metadata: {closed: 'say "hi"', zone: "a b"}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: open}
spec:
  profileRef: {name: web}
  selector: {matchLabels: {role: open}}
  metadata: {apostrophe: it's, backquote: "a\`b", command: "$(a", document: "a <<b", quote: 'a"b', zone: "a b"}
`;

const templates = ["generic/raw", "generic/list", "generic/word"];
// The contract's reference query, with the label that selects the Group.
const referenceQuery =
  "role=web&mac=52-54-00-a1-9c-ae&uuid=a1b2c3d4-0000-4000-8000-00000000abcd&os=installed&foo=some-param&bar=b&x=y";

/** Each makes a file if it is run. */
const commands = [
  "touch canary",
  "$(touch canary)",
  "`touch canary`",
  "x;touch canary",
  "x&touch canary&",
  "x|touch canary",
];
const openings = ["", "'", '"', "''", "'\\''", "\\", "`", "}", ")", "\n", "\r\n", "\u0085", "a\nb\n", "b\n"];
const attacks = openings.flatMap((opening) => commands.map((command) => `${opening}${command}${opening} #`));

describe.skipIf(missing("gpg"))("a davit with a signing key", () => {
  const folder = mkdtempSync(join(tmpdir(), "davit-signed-texts-"));
  let davit: DavitProcess;
  let gpg: Gpg;

  beforeAll(async () => {
    gpg = new Gpg();
    const keyFile = join(folder, "signing.key");
    writeFileSync(keyFile, gpg.exportSecret(gpg.makeKey("rack", { algorithm: "rsa2048" })), { mode: 0o600 });
    const directory = join(folder, "manifests");
    mkdirSync(directory);
    writeFileSync(join(directory, "web.yaml"), manifests);
    const args = ["--signing-key", keyFile];
    davit = await startDavit({ manifests: directory, dataDir: join(folder, "data"), args });
  }, startLimitMs);

  afterAll(async () => {
    await davit?.stop();
    gpg?.stop();
    rmSync(folder, { recursive: true });
  });

  async function get(target: string) {
    const response = await fetch(`${davit.bootUrl}${target}`);
    return { status: response.status, body: Buffer.from(await response.arrayBuffer()) };
  }

  async function expectSigned(name: string, query: string): Promise<string> {
    const content = await get(`/${name}?${query}`);
    expect(content.status).toBe(200);
    for (const ending of ["sig", "asc"]) {
      const signature = await get(`/${name}.${ending}?${query}`);
      expect([name, ending, signature.status]).toEqual([name, ending, 200]);
      expect(gpg.verify(signature.body, content.body).isGood).toBe(true);
    }
    return content.body.toString();
  }

  it.each(["ipxe", "grub", "cloud", "ignition", "generic", "metadata"])(
    "signs `/%s` for the reference query, in both forms",
    async (name) => void (await expectSigned(name, referenceQuery)),
  );

  it("signs a JSON value that is more than a word, where GRUB reads it as data", async () => {
    for (const x of ["x;reboot", "check_signatures=no", "a b", "it's", "a\nb: c", "{a}", "#", '"', "\\"]) {
      const query = `role=web&x=${encodeURIComponent(x)}`;
      for (const name of ["generic", "ignition", "cloud"]) await expectSigned(name, query);
    }
  });

  it("serves metadata that is data to a shell, whatever was asked", async () => {
    for (const [at, value] of attacks.entries()) {
      const query = `role=web&x=${encodeURIComponent(value)}&${encodeURIComponent(value)}=1`;
      const { status, body } = await get(`/metadata?${query}`);
      expect([status, (await get(`/metadata.sig?${query}`)).status]).toEqual([200, 200]);
      // What the shell makes of this one is not the operator's meaning, but it is no command of the request.
      const { body: open } = await get(`/metadata?${query.replace("web", "open")}`);
      writeFileSync(join(folder, `${1_000 + at}.open`), open);
      // Without its last line, of which a shell would take the & for an end: docs/reference/api-boot.md says so.
      const lines = body.toString().split("\n").slice(0, -2);
      writeFileSync(join(folder, `${1_000 + at}.env`), `${lines.join("\n")}\n`);
    }
    const script = `for file in ./*.env; do (. "$file"; printf '%s\n' "$REQUEST_QUERY_X"); done`;
    for (const shell of ["dash", "bash"]) {
      const env = { PATH: process.env.PATH };
      const read = execFileSync(shell, ["-c", script], { cwd: folder, env, stdio: "pipe" }).toString();
      expect(read.split("\n").slice(0, -1)).toEqual(attacks.map((value) => value.replaceAll(/\p{Cc}/gu, "?")));
      const sourced = 'for file in ./*.open; do "$0" -c ". $file" 2>&1; done; true';
      execFileSync(shell, ["-c", sourced, shell], { cwd: folder, env, stdio: "pipe" });
      expect(existsSync(join(folder, "canary"))).toBe(false);
    }
  });

  it.each(["x=a&reboot", "x=1;reboot", "x=$(reboot)", "x=`reboot`", "x=a|reboot"])(
    "signs a raw query that runs no command: %s",
    async (attack) => {
      const text = await expectSigned("metadata", `role=web&${attack}`);
      const line = text.split("\n").at(-2) ?? "";
      expect(line).toBe(`REQUEST_RAW_QUERY='role=web&${attack}'`);
    },
  );

  it.each(templates)("signs no `/%s` that prints what could be more than data", async (name) => {
    const values = ["x;reboot", "a=b;c", "$(id)", "it's;", "a\nb: c", "{a}", "#;", 'a";reboot;', "\n"];
    for (const value of values) {
      const query = `role=web&x=${encodeURIComponent(value)}&a'b;`;
      expect((await get(`/${name}?${query}`)).status).toBe(200);
      for (const ending of ["sig", "asc"]) {
        const { status, body } = await get(`/${name}.${ending}?${query}`);
        expect([status, body.toString()]).toEqual([
          404,
          "404 not signed, because GRUB could run what the request says\n",
        ]);
      }
    }
    const metrics = (await (await fetch(`${davit.opsUrl}/metrics`)).text()).split("\n");
    const counted = metrics.find((line) => line.startsWith("davit_boot_signatures_withheld_total "));
    expect(Number(counted?.split(" ")[1])).toBeGreaterThanOrEqual(2 * values.length);
  });

  it("signs what the operator wrote, whatever was asked beside it", async () => {
    expect(await expectSigned("generic/own", "role=web&x=%27;reboot")).toBe("a b; c a b\n");
  });

  it.skipIf(missing("grub"))("signs GRUB configs in which the request is quoted", async () => {
    const kept = attacks.filter((value) => !/["'\\]/.test(value));
    for (const value of kept) {
      const said = encodeURIComponent(value);
      const text = await expectSigned("grub", `role=web&hostname=${said}&serial=${said}`);
      execFileSync("grub-script-check", { input: text, stdio: "pipe" });
      const [kernelLine = ""] = text.split("\n").filter((line) => line.startsWith("linuxefi"));
      const words = ["name=", "serial="].map((name) => `${name}${value}`.replaceAll(/\p{Cc}/gu, ""));
      const quoted = words.map((word) => `"${word.replaceAll("$", String.raw`\$`)}"`);
      expect(kernelLine).toBe(`linuxefi "(http;${new URL(davit.bootUrl).host})/assets/vmlinuz" ${quoted.join(" ")}`);
    }
  });
});
