/** Parts of davit that read what others wrote, each with mutants of it: no error but those that it declares. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { translateGoTemplate } from "../../packages/import-matchbox/src/go-to-handlebars.ts";
import { decodeCopy, encodeCopy } from "../../src/follow/copy-file.ts";
import { readInput } from "../../src/offline/load/read-input.ts";
import { RenderError } from "../../src/render/core/render-error.ts";
import { compileTemplate, parseTemplate } from "../../src/render/template/template.ts";
import { decodeUtf8 } from "../../src/sources/admission/core-kinds.ts";
import { readBackup } from "../../src/store/backup/backup.ts";
import { WalError } from "../../src/store/core/log-port.ts";
import { storePath } from "../../src/store/core/node.ts";
import { FaultFiles, seededPick } from "../helpers/fault-files.ts";
import { dataDirectory, memoryFiles, openStore } from "../helpers/test-store.ts";
import { admission, imported } from "../import-matchbox/trees.ts";
import { type FuzzTarget, fuzz, fuzzTimeoutMs } from "./fuzz.ts";

const manifestsOf = (...names: readonly string[]) =>
  names.map((name) => readFileSync(join(import.meta.dirname, "../../manifests", name)));

const templateWords = [
  "{{#if a}}",
  "{{else}}",
  "{{/if}}",
  "{{#each b}}",
  "{{/each}}",
  "{{{c}}}",
  "{{json a}}",
  "{{@key}}",
];

const variables = {
  a: "x",
  b: [{ c: 1 }, { c: "<&>" }],
  c: { d: null },
  request: { query: { mac: "52:54:00:00:00:01" } },
};

/** Each of a Store's calls to its disk counts, so a directory of few bytes takes few. */
async function logBytes(): Promise<{ readonly path: string; readonly bytes: Buffer }> {
  const files = memoryFiles();
  const store = await openStore(files);
  for (let at = 0; at < 5; at++) await store.submit({ kind: "set", path: storePath(`/k/${at}`), value: `value ${at}` });
  await store.stop();
  const names = await files.list(dataDirectory);
  const [name = ""] = names.filter((each) => each.endsWith(".log"));
  const path = join(dataDirectory, name);
  return { path, bytes: Buffer.from(await files.read(path)) };
}

const log = await logBytes();

async function backupBytes(): Promise<Buffer> {
  const store = await openStore();
  for (let at = 0; at < 5; at++) await store.submit({ kind: "set", path: storePath(`/k/${at}`), value: `value ${at}` });
  const pieces: Uint8Array[] = [];
  for await (const piece of store.backup()) pieces.push(piece);
  await store.stop();
  return Buffer.concat(pieces);
}

const copied = { cluster: "c", index: 3, savedAtMs: 1, documents: new Map([["/davit/groups/ns/a", "text"]]) };

const targets: readonly FuzzTarget[] = [
  {
    name: "templates",
    inputs: [
      "a {{a}} {{#each b}}{{c}}{{/each}}{{#if a}}x{{else}}y{{/if}}",
      '{{json b}} {{#with c}}{{d}}{{/with}} {{"q"}}',
    ],
    words: templateWords,
    run: (input) => {
      const text = input.toString();
      const problem = parseTemplate(text);
      if (problem !== undefined) {
        expect(problem.line).toBeGreaterThan(0);
        expect(() => compileTemplate(text, { sha256: () => "" })).toThrow(RenderError);
        return;
      }
      try {
        compileTemplate(text, { sha256: () => "" }).render(variables);
      } catch (error) {
        expect(error).toBeInstanceOf(RenderError);
      }
    },
  },
  {
    name: "templates of matchbox",
    inputs: [
      "{{.name}} {{if .on}}a{{else if eq .x `y`}}b{{end}}",
      '{{range .list}}{{.}}{{end}} {{- /* c */ -}} {{index . "k"}}',
    ],
    words: ["{{", "}}", "{{- ", " -}}", "{{end}}", "{{if ", "{{range ", "{{else}}", ".request.query.mac", "$x := "],
    run: (input) => {
      // The import takes no file that has this character.
      const translation = translateGoTemplate(input.toString().replaceAll("\0", ""));
      if (translation.kind === "untranslated") expect(translation.problems.length).toBeGreaterThan(0);
      else expect(parseTemplate(translation.text)).toBeUndefined();
    },
  },
  {
    name: "a matchbox tree",
    inputs: [
      '{"id":"a","name":"A","profile":"p","selector":{"mac":"52:54:00:00:00:01"},"metadata":{"k":["v",{"n":1}]}}',
      '{"id":"p","boot":{"kernel":"/assets/k","initrd":["/assets/i"],"args":["a=b"]},"ignition_id":"i.yaml"}',
    ],
    words: ['"id":', '"profile":', '"selector":{', '"boot":{', '"args":[', "[]", "{}", "null", '"__proto__":'],
    run: (input) => {
      const text = input.toString();
      const { files } = imported({ "groups/a.json": text, "profiles/p.json": text, "ignition/i.yaml": text });
      // Whatever it writes, davit takes.
      for (const manifest of Object.values(files)) {
        const problems = readInput(Buffer.from(manifest), admission).flatMap(({ file }) => file.problems);
        expect(problems).toEqual([]);
      }
    },
  },
  {
    name: "manifests",
    inputs: manifestsOf("quickstart/profile.yaml", "quickstart/groups.yaml"),
    words: [
      "---\n",
      "kind: Group\n",
      "kind: Profile\n",
      "spec:\n",
      "  selector: {matchLabels: {mac: '52:54:00:00:00:01'}}\n",
      "&a ",
      "*a",
      "<<: *a",
      "!!binary ",
      "effect: Install\n",
      "matchAll: true\n",
    ],
    run: (input) => {
      const parts = readInput(input, admission);
      expect(parts.length).toBeGreaterThan(0);
      // What is not text has a problem that says so.
      if (decodeUtf8(input) === undefined) expect(parts[0]?.file.problems).toHaveLength(1);
    },
  },
  {
    name: "a log",
    inputs: [log.bytes],
    words: ["\xff\x64\x76\x74", "value 3", "/k/3"],
    run: async (input) => {
      const files = new FaultFiles(seededPick(1));
      await files.makeDirectory();
      const file = await files.openAppend(log.path);
      await file.append(input);
      await file.sync();
      await file.close();
      try {
        const store = await openStore(files);
        for (const { path, value } of store.dump()) if (value !== undefined) expect(value).toBe(writtenAt(path));
        await store.stop();
      } catch (error) {
        expect(error).toBeInstanceOf(WalError);
      }
    },
  },
  {
    name: "a backup",
    inputs: [await backupBytes()],
    words: ["value 3", "/k/3"],
    run: async (input) => {
      const bytes = async function* () {
        yield input;
      };
      try {
        const { tree } = await readBackup(bytes, "it");
        expect(tree.index).toBeGreaterThan(0);
      } catch (error) {
        expect(error).toBeInstanceOf(WalError);
      }
    },
  },
  {
    name: "a follower's copy",
    inputs: [Buffer.concat([...encodeCopy(copied)])],
    words: ["text", "/davit/groups/ns/b", '"index":'],
    run: (input) => {
      const copy = decodeCopy(input);
      if (copy !== undefined) expect(copy).toEqual(copied);
    },
  },
];

function writtenAt(path: string): string {
  return `value ${path.slice("/k/".length)}`;
}

it.each(targets)("$name", { timeout: fuzzTimeoutMs }, fuzz);
