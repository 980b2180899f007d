/** `davit diff` against a davit serve that has seen 200 machines, and against its backup. */

import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isJsonObject, parseJsonObject } from "../../src/model/json.ts";
import { type DavitProcess, davitProgram, startDavit } from "../../tools/davit-process.ts";
import { runCommand } from "../helpers/command-under-test.ts";

const planted = "hunter2hunter2";
/** Of all machines: some makers give each board the same one. */
const sharedUuid = "4c4c4544-0035-4d10-8051-b9c04f4e3232";
const machines = Array.from({ length: 200 }, (_, at) => `52-54-00-00-00-${at.toString(16).padStart(2, "0")}`);

function objects(selector: string, text: string): string {
  return `apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: web, namespace: racks}
spec:
  boot: {kernel: /assets/web/vmlinuz}
  generic: {templateFrom: {secretKeyRef: {name: texts, key: config}}}
---
apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: installer, namespace: racks}
spec: {effect: Install, boot: {kernel: /assets/installer/vmlinuz}}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: web, namespace: racks}
spec: {profileRef: {name: web}, selector: {matchLabels: {zone: b}}}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: installer, namespace: racks}
spec: {profileRef: {name: installer}, priority: 10, selector: {matchLabels: ${selector}}}
---
apiVersion: v1
kind: Secret
metadata: {name: texts, namespace: racks, labels: {davit.dev/allow-template: "true"}}
stringData: {config: "${text}"}
`;
}

const narrow = "{zone: b, rack: r1}";
const now = objects(narrow, `password: ${planted}`);

let folder: string;
let davit: DavitProcess;
const at = (name: string) => join(folder, name);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-diff-running-"));
  await mkdir(at("manifests"));
  await writeFile(at("manifests/objects.yaml"), now);
  await writeFile(at("tokens"), "operations-token-0123456789\n", { mode: 0o600 });
  await writeFile(at("wrong"), "operations-token-0000000000\n", { mode: 0o600 });
  const args = ["--ops-token-file", at("tokens")];
  davit = await startDavit({ manifests: at("manifests"), dataDir: at("data"), args });
  for (const mac of machines) {
    const answer = await fetch(`${davit.bootUrl}/ipxe?zone=b&uuid=${sharedUuid}&mac=${mac}`);
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining("/assets/web/vmlinuz")]);
  }
});

afterAll(async () => {
  await davit?.stop();
  await rm(folder, { recursive: true });
});

async function diff(manifests: string, ...words: readonly string[]) {
  return await runCommand(["diff", ...words], { input: [manifests] });
}

const running = () => ["--ops-url", davit.opsUrl, "--ops-token-file", at("tokens")];

async function documents(body: string, headers: Record<string, string> = {}) {
  const authorization = "Bearer operations-token-0123456789";
  const answer = await fetch(`${davit.opsUrl}/documents`, {
    method: "POST",
    headers: { authorization, "content-type": "application/json", ...headers },
    body,
  });
  return { status: answer.status, text: await answer.text() };
}

describe("against a running davit", () => {
  it("shows what 200 machines get that only its history knows", async () => {
    const { code, output, errors } = await diff(objects("{zone: b}", `password: ${planted}`), ...running());
    expect([code, errors]).toEqual([0, ""]);
    expect(output).toContain(`before  the davit at ${davit.opsUrl}\nafter   standard input\n`);
    expect(output).toContain("!! gains 200 machines from Group racks/web: Profile racks/web -> racks/installer");
    expect(output).toContain("200 of 200 known machines get something else, 200 of them something more destructive\n");
    expect(output).not.toContain(planted);
  });

  it("finds no difference in what it serves, its Secrets included", async () => {
    const { code, output } = await diff(now, ...running(), "--exit-code");
    expect(output).toBe(
      `before  the davit at ${davit.opsUrl}\nafter   standard input\n\nno differences for 200 machines\n`,
    );
    expect(code).toBe(0);
  });

  it("shows another text of a Secret as changed, without its bytes", async () => {
    const { code, output } = await diff(objects(narrow, "password: another"), ...running(), "--exit-code");
    expect(output).toContain('its text from Secret "texts", key "config" differs: not shown');
    expect(output).not.toMatch(/hunter2|another/);
    expect(code).toBe(1);
  });

  it.each([
    ["without a token", () => running().slice(0, 2), "it asks for a token: give --ops-token-file"],
    ["with a wrong token", () => [...running().slice(0, 3), at("wrong")], "it refuses the token"],
    ["where nothing listens", () => ["--ops-url", "http://127.0.0.1:9"], "nothing listens there"],
    ["at another listener", () => ["--ops-url", davit.bootUrl], "it does not show its objects"],
    [
      "with a token for a URL that others can read",
      () => ["--ops-url", "http://192.0.2.1:8081", "--ops-token-file", at("tokens")],
      'No TLS with "http://192.0.2.1:8081"',
    ],
    ["of another admin namespace", () => [...running(), "--admin-namespace", "ops"], "its --admin-namespace is none"],
  ])("exits with 2 %s", async (_, words, message) => {
    const { code, output, errors } = await diff(now, ...words(), "--exit-code");
    expect([code, output, errors]).toEqual([2, "", expect.stringContaining(message)]);
    expect(errors).not.toContain("operations-token-0");
  });
});

describe("the route /documents", () => {
  it("has no text of a Secret, and no digest that the client did not send", async () => {
    const { status, text } = await documents('{"secrets": {}}');
    expect(status).toBe(200);
    const answer = parseJsonObject(text);
    expect(answer?.machines).toHaveLength(200);
    expect(JSON.stringify(answer?.documents)).toContain("/davit/profiles/racks/web");
    expect(text).not.toContain(planted);
    expect(text).not.toContain("_secrets");
    const profiles = (Array.isArray(answer?.documents) ? answer.documents : []).flatMap((each) => {
      const [path = "", content = ""] = Array.isArray(each) ? each : [];
      return path === "/davit/profiles/racks/web" ? [parseJsonObject(String(content))] : [];
    });
    expect(profiles).toMatchObject([{ revision: "" }]);
    const { content } = profiles[0] ?? {};
    expect(isJsonObject(content) && content.templates).toMatchObject({ generic: { sha256: "0".repeat(64) } });
  });

  it.each([
    ["no token", '{"secrets": {}}', { authorization: "" }, 401],
    ["a form of a web page", "secrets=1", { "content-type": "application/x-www-form-urlencoded" }, 415],
    ["no JSON", "{", {}, 400],
    ["other questions", '{"secrets": {}, "texts": true}', {}, 400],
    ["a list", '{"secrets": []}', {}, 400],
  ])("refuses %s", async (_, body, headers, status) => {
    expect((await documents(body, headers)).status).toBe(status);
  });

  it("answers only so many questions at once", async () => {
    const answers = await Promise.all(Array.from({ length: 60 }, () => documents('{"secrets": {}}')));
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused[0]?.text).toBe("429 too many comparisons at once: try again in a few seconds\n");
    expect(answers.filter(({ status }) => status === 200).length).toBe(answers.length - refused.length);
  });
});

describe("against a backup", () => {
  it("compares the objects, and no text of a Secret gets out", async () => {
    const words = [
      davitProgram,
      "backup",
      "--store",
      davit.storeUrl,
      "--data-dir",
      davit.dataDir,
      "--output",
      at("davit.backup"),
    ];
    await promisify(execFile)(process.execPath, words);
    const same = await diff(now, "--from", at("davit.backup"), "--exit-code");
    expect([same.code, same.errors]).toEqual([0, ""]);
    expect(same.output).toContain(`before  backup ${at("davit.backup")}\n`);
    const { code, output } = await diff(objects("{zone: b}", "another"), "--from", at("davit.backup"), "--exit-code");
    expect(output).toContain("!! gains a made-up machine with zone=b from Group racks/web");
    expect(output).toContain("note: only machines are known that Machine objects or Groups name");
    expect(output).not.toMatch(/hunter2|another/);
    expect(code).toBe(1);
  });
});
