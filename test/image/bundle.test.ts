/** The program as the image has it: bundled, and nothing beside it but package.json, crds/ and console/. */

import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { createMessage, generateKey, readKey, readSignature, verify } from "openpgp";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startDavit } from "../../tools/davit-process.ts";
import { admitted, bounds, nulls, refusedByRules, refusedBySchema, refusedPlaces } from "../crds/specs.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const mac = "52:54:00:a1:9c:ae";

describe("the bundled program", () => {
  let folder: string;
  let program: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "davit-bundle-"));
    const bundle = join(folder, "dist/bundle");
    const rolldown = join(root, "node_modules/rolldown/bin/cli.mjs");
    await run(process.execPath, [rolldown, "--config", "rolldown.config.js", "--dir", bundle], { cwd: root });
    for (const name of ["package.json", "crds", "console"])
      await cp(join(root, name), join(folder, name), { recursive: true });
    program = join(bundle, "main.js");
  }, 120_000);
  afterAll(() => rm(folder, { recursive: true }));

  it("keeps OpenPGP.js as the file that its authors publish, so that users can replace it", async () => {
    const [bundled, published] = await Promise.all(
      [join(folder, "dist/bundle/openpgp.mjs"), join(root, "node_modules/openpgp/dist/node/openpgp.mjs")].map((path) =>
        readFile(path),
      ),
    );
    expect(bundled?.equals(published ?? Buffer.alloc(0))).toBe(true);
    const worker = await readFile(join(folder, "dist/bundle/sign-worker.js"), "utf8");
    expect(worker).toMatch(/^import .* from ".\/openpgp.mjs";$/m);
  });

  it("is hundreds of files less than the sources and packages: each command reads some of them", async () => {
    expect((await readdir(join(folder, "dist/bundle"))).length).toBeLessThan(200);
  });

  it("has every thread that the sources have", async () => {
    const sources = await readdir(join(root, "src"), { recursive: true });
    const threads = sources.filter((path) => path.endsWith("-worker.ts")).map((path) => `${basename(path, ".ts")}.js`);
    expect(await readdir(join(folder, "dist/bundle"))).toEqual(expect.arrayContaining(threads));
    expect(threads).toHaveLength(7);
  });

  it("answers a machine as the sources do, signed, and refuses by the same CRDs", { timeout: 60_000 }, async () => {
    const answers: string[] = [];
    const manifests = join(root, "manifests/quickstart");
    const key = join(folder, "signing.key");
    const { privateKey } = await generateKey({ userIDs: [{ name: "rack 7" }] });
    await writeFile(key, privateKey, { mode: 0o600 });
    for (const [at, what] of [{ program: join(root, "src/main.ts") }, { program }].entries()) {
      const davit = await startDavit({
        manifests,
        dataDir: join(folder, `data${at}`),
        args: ["--signing-key", key],
        ...what,
      });
      try {
        const ipxe = await fetch(`${davit.bootUrl}/ipxe?mac=${mac}`);
        const ready = await fetch(`${davit.opsUrl}/readyz?verbose`);
        const text = await ipxe.text();
        answers.push([ipxe.status, text, await ready.text()].join("\n").replaceAll(davit.bootUrl, "URL"));
        const signature = await (await fetch(`${davit.bootUrl}/ipxe.asc?mac=${mac}`)).text();
        const { signatures } = await verify({
          message: await createMessage({ binary: Buffer.from(text) }),
          signature: await readSignature({ armoredSignature: signature }),
          verificationKeys: await readKey({ armoredKey: privateKey }),
        });
        expect(await signatures[0]?.verified).toBe(true);
      } finally {
        expect(await davit.stop()).toBe(0);
      }
    }
    expect(answers[0]).toContain("kernel /assets/quickstart/vmlinuz");
    expect(answers[1]).toBe(answers[0]);
  });

  // The bundle's checks are code that ajv made when it was built.
  it("finds the same mistakes in the same places as the sources", { timeout: 60_000 }, async () => {
    const specs = [
      ...[...admitted, ...nulls, ...refusedByRules, ...refusedBySchema].map(({ kind, spec }) => ({ kind, spec })),
      ...bounds.flatMap(([, kind, most, more]) => [most, more].map((spec) => ({ kind, spec }))),
      ...refusedPlaces.map(([, kind, spec]) => ({ kind, spec })),
    ];
    const objects = specs.map(({ kind, spec }, at) => ({
      apiVersion: "davit.dev/v1alpha1",
      kind,
      metadata: { name: `object-${at}`, ...(at % 9 === 0 && { labels: { at } }), ...(at % 7 === 0 && { unknown: at }) },
      spec,
    }));
    const others = [
      { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "Texts" }, data: { a: 1, "b/c": "text" }, binary: {} },
      { apiVersion: "v1", kind: "Secret", metadata: {}, stringData: [], type: 7 },
    ];
    const manifests = join(folder, "objects");
    await mkdir(manifests);
    for (const [at, object] of [...objects, ...others].entries()) {
      await writeFile(join(manifests, `object-${at}.yaml`), JSON.stringify(object));
    }
    const [source, bundled] = await Promise.all(
      [join(root, "src/main.ts"), program].map((main) =>
        // Its exit code says that there are errors.
        run(process.execPath, [main, "lint", "--format", "json", "--manifests", manifests], {
          maxBuffer: 2 ** 24,
        }).then(
          () => "no errors",
          ({ stdout }: { readonly stdout: string }) => stdout,
        ),
      ),
    );
    expect(bundled).toBe(source);
    const codes = new Set(source?.match(/(?<="code": ?")[^"]+/g));
    const schemaCodes = ["missing-field", "unknown-field", "wrong-type", "unknown-choice", "too-long", "out-of-range"];
    expect([...codes]).toEqual(expect.arrayContaining([...schemaCodes, "empty-value", "broken-rule"]));
  });

  const commands = ["version", "serve", "boot", "backup", "restore", "migrate-store", "inspect", "fetch-assets"];
  it.each(commands)("knows %s", async (command) => {
    const { stdout } = await run(process.execPath, [program, command, "--help"]);
    expect(stdout).toMatch(
      command === "version" ? /^davit \d+\.\d+\.\d+ \(commit \S+\)\n$/ : new RegExp(`^Usage: davit ${command} `),
    );
  });
});
