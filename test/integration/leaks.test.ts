/**
 * A word that nobody may see is planted wherever users write: templates, files that do not parse, ConfigMaps, Secrets,
 * metadata, queries. Then everything that davit says is searched for it: log, problems, metrics, and each error's body.
 * Where a good config prints it, that is what its author asked for.
 */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { configNames } from "../../src/boot/boot-configs.ts";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";

const word = "xyzzySecret42";
// Secrets are kept from the key API too, which shows what is written in other objects.
const hidden = "plughHidden43";

function profile(name: string, spec: object): string {
  return JSON.stringify({ apiVersion: "davit.dev/v1alpha1", kind: "Profile", metadata: { name }, spec });
}

/** Selects by a label that names one machine: such a group is answered although other objects cannot be read. */
function group(name: string, spec: object = {}): string {
  const whole = { profileRef: { name }, selector: { matchLabels: { serial: name } }, metadata: { word, list: [word] } };
  return JSON.stringify({
    apiVersion: "davit.dev/v1alpha1",
    kind: "Group",
    metadata: { name },
    spec: { ...whole, ...spec },
  });
}

function core(kind: string, name: string, content: object, labels = {}): string {
  return JSON.stringify({ apiVersion: "v1", kind, metadata: { name, labels }, ...content });
}

const everyPart = (source: object) => ({ ignition: source, cloudConfig: source, generic: source });
const inline = (text: string) => everyPart({ inline: text });
const secret = (key: string) => everyPart({ templateFrom: { secretKeyRef: { name: "texts", key } } });
const configMap = (key: string) => everyPart({ templateFrom: { configMapKeyRef: { name: "texts", key } } });

const profiles: Readonly<Record<string, object>> = {
  syntax: inline(`${word} {{#if ${word}}}`),
  triple: inline(`{"${word}":{{json word}}}`),
  helper: inline(`{{${word} 1}}`),
  // The name of a variable that is not defined is shown: it says what to mend.
  unknown: inline(`${word} {{nowhere.else}}`),
  argument: inline(`{{indent "${word}" word}}`),
  result: inline(`${word}: [ {{word}} "`),
  butane: inline(`variant: fcos\n${word}: {{word}}\n`),
  ambiguous: inline(`${word}: 0644\nignition: {version: 3.4.0}\n`),
  raw: everyPart({ inline: `{"${word}": `, raw: true }),
  control: { boot: { kernel: "/k{{json list}}\t", args: [`{{${word}}}`] } },
  kernel: { boot: { kernel: `{{word}}{{nowhere}}${word}` } },
  misspelt: { ...inline("fine"), [word]: word },
  type: { boot: { kernel: { [word]: word } } },
  map: configMap("broken"),
  absent: configMap("absent"),
  secret: secret("broken"),
  result2: secret("result"),
  closed: everyPart({ templateFrom: { secretKeyRef: { name: "closed", key: "text" } } }),
  gone: everyPart({ templateFrom: { secretKeyRef: { name: "gone", key: "text" } } }),
  good: { boot: { kernel: "/k", args: ["{{word}}"] }, ...inline("#cloud-config\na: {{json request.query.x}}\n") },
};

const texts = { broken: `${hidden} {{#if`, result: `${hidden}: [ "` };
const documents = [
  ...Object.entries(profiles).map(([name, spec]) => profile(name, spec)),
  ...Object.keys(profiles).map((name) => group(name)),
  group("priority", { priority: word }),
  group("selector", { selector: { matchLabels: { mac: word } } }),
  group("both", { matchAll: true, [word]: 1 }),
  core("ConfigMap", "texts", { data: { broken: `${word} {{/each}}` } }),
  core("Secret", "texts", { stringData: texts }, { "davit.dev/allow-template": "true" }),
  core("Secret", "closed", { stringData: { text: hidden } }),
  core("Secret", "binary", { data: { text: `${hidden}!` } }, { "davit.dev/allow-template": "true" }),
];

const unreadable: Readonly<Record<string, string>> = {
  "flow.yaml": `${word}: [ ${word}`,
  "tab.yaml": `spec:\n\t${word}: 1\n`,
  "alias.yaml": `a: *${word}\n`,
  "tag.yaml": `a: !${word} 1\n`,
  "twice.yaml": `${word}: 1\n${word}: 2\n`,
  "half.json": `{"${word}": "${word}`,
  "no-object.json": `"${word}"`,
  "binary.yaml": `\u0000${word}`,
  "kind.yaml": `apiVersion: davit.dev/v1alpha1\nkind: ${word}\nmetadata: {name: a}\n`,
  "name.yaml": `apiVersion: davit.dev/v1alpha1\nkind: Group\nmetadata: {name: "${word}\\n"}\nspec: {}\n`,
};

let folder: string;
let davit: DavitProcess;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-leaks-"));
  await writeFile(join(folder, "objects.yaml"), documents.join("\n---\n"));
  for (const [name, text] of Object.entries(unreadable)) await writeFile(join(folder, name), text);
  davit = await startDavit({ manifests: folder, dataDir: join(folder, "data"), args: ["--log-level", "debug"] });
});
afterAll(async () => {
  await davit.stop();
  await rm(folder, { recursive: true });
});

const queries = [
  ...Object.keys(profiles).map((serial) => `serial=${serial}&x=${word}&domain=${word}`),
  `mac=${word}&hostname=${word}&${word}=1`,
  `serial=priority&domain=${word}%zz`,
];

/** What GRUB runs: it waits after a 503, and stops waiting after any other error. */
function scriptAfter(status: number): string {
  return status === 503 ? expect.stringContaining("source") : "set davit_answered=yes\n";
}

it("no error's body has it", async () => {
  const statuses: number[] = [];
  for (const name of configNames) {
    for (const query of queries) {
      const response = await fetch(`${davit.bootUrl}/${name}?${query}`);
      const body = await response.text();
      statuses.push(response.status);
      if (response.status < 400) continue;
      const [line, ...script] = body.split("\n");
      expect(line).toMatch(/^(# )?\d{3} [a-z ]+$/);
      expectHidden(body);
      expect(script.join("\n")).toEqual(name === "grub" ? scriptAfter(response.status) : "");
    }
  }
  for (const status of [404, 500, 503]) expect(statuses).toContain(status);
});

it("no problem or status told to operators has it, and each broken file is told", async () => {
  const told = await (await fetch(`${davit.opsUrl}/readyz?verbose`)).text();
  for (const name of Object.keys(unreadable)) expect(told).toContain(name);
  for (const name of ["syntax", "map", "secret", "closed", "gone", "misspelt"])
    expect(told).toContain(`default/${name}`);
  expectHidden(told);
});

it("no metric has it", async () => {
  expectHidden(await (await fetch(`${davit.opsUrl}/metrics`)).text());
});

it("the key API has nothing of a Secret", async () => {
  for (const path of ["/?recursive=true", "/davit/_secrets?recursive=true", "/davit/_secrets/default/secret"]) {
    const text = await (await fetch(`${davit.storeUrl}/v2/keys${path}`)).text();
    expect(text).not.toContain(hidden);
    expect(text).not.toContain(Buffer.from(hidden).toString("base64").slice(0, 12));
  }
});

it("no line of the log has it, not even while a file breaks and is mended", async () => {
  const path = join(folder, "objects.yaml");
  const attention = async () => await (await fetch(`${davit.opsUrl}/readyz?verbose`)).text();
  const broken = `objects.yaml, document ${documents.length + 1} `;
  await writeFile(path, `${documents.join("\n---\n")}\n---\n${word}: [`);
  await expect.poll(attention, { timeout: 10_000 }).toContain(broken);
  await writeFile(path, documents.join("\n---\n"));
  await expect.poll(attention, { timeout: 10_000 }).not.toContain(broken);
  await davit.stop();
  await expect.poll(() => davit.log.at(-1)).toMatchObject({ msg: "stopped" });
  expect(davit.log.filter(({ msg }) => msg === "request failed").length).toBeGreaterThan(10);
  expectHidden(davit.log.map((line) => JSON.stringify(line)).join("\n"));
});

function expectHidden(text: string): void {
  const lines = text.split("\n").filter((line) => line.includes(word) || line.includes(hidden));
  expect(lines).toEqual([]);
}
