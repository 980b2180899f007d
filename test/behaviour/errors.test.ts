/** Refusals as machines meet them: never a status that makes one give up, never a body that does something. */

import { execFileSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { configNames } from "../../src/boot/boot-configs.ts";
import { groupDocument, profileDocument } from "../boot/feed-documents.ts";
import { missing } from "../helpers/requirements.ts";
import { headerOf, statusOf } from "../http/wire.ts";
import { type BootServer, kernelBoot, startBootServer, template } from "./boot-server.ts";

const word = "xyzzySecret42";
const profiles = {
  good: { boot: kernelBoot(), templates: { generic: template("fine") } },
  undefinedVariable: { boot: kernelBoot({ args: [`{{${word}}}`] }), templates: broken(`{{a.${word}}}`) },
  syntax: { boot: kernelBoot({ kernel: "{{#if}}" }), templates: broken(`${word}{{#if`) },
  noConfig: { boot: kernelBoot({ kernel: "{{empty}}" }), templates: broken(`${word}: [`) },
  huge: {
    boot: kernelBoot({ kernel: "{{#each thousand}}{{#each ../thousand}}x{{/each}}{{/each}}" }),
    templates: broken("{{#each nine}}{{../megabyte}}{{/each}}"),
  },
  empty: {},
};

function broken(text: string) {
  const one = template(text);
  return { ignition: one, cloudConfig: one, generic: one };
}

const metadata = {
  empty: "",
  megabyte: "x".repeat(1024 * 1024),
  nine: Array.from({ length: 9 }, (_, at) => at),
  thousand: Array.from({ length: 1000 }, (_, at) => at),
};

let server: BootServer;
beforeAll(async () => {
  server = await startBootServer([
    ...Object.entries(profiles).map(([name, content]) => profileDocument(`lab/${name}`, content)),
    ...[...Object.keys(profiles), "gone"].map((profile) =>
      groupDocument(`lab/${profile}`, { profile, selector: { role: profile }, metadata }),
    ),
    groupDocument("lab/all", { profile: "good", matchAll: true }),
    groupDocument("lab/held", { profile: "good", selector: { role: "held" }, hold: true }),
  ]);
});
afterAll(() => server.close());

/** Ends the waiting of a GRUB that got a 503 before. */
const answered = "set davit_answered=yes\n";
const profiled = configNames.filter((name) => name !== "metadata");

describe.each(profiled)("`/%s`", (name) => {
  it.each(["undefinedVariable", "syntax", "huge"])("answers 500 to what is broken: %s", async (role) => {
    const { status, body } = await server.read(`/${name}?role=${role}`);
    expect(status).toBe(500);
    expect(body).toBe(name === "grub" ? `# 500 config broken\n${answered}` : "500 config broken\n");
  });

  it("answers 404 when the Profile is gone or lacks the part, though a catch-all would have it", async () => {
    for (const role of ["gone", "empty"]) {
      const { status, body } = await server.read(`/${name}?role=${role}`);
      expect(status).toBe(404);
      expect(body).toMatch(name === "grub" ? /^# 404 [a-z ]+\nset davit_answered=yes\n$/ : /^404 [a-z ]+\n$/);
    }
  });
});

it.each(["ipxe", "grub", "ignition", "cloud"])(
  "`/%s` answers 500 when the result is none of its kind",
  async (name) => {
    expect((await server.read(`/${name}?role=noConfig`)).status).toBe(500);
  },
);

describe("an error of `/grub`", () => {
  it.each<[name: string, method: string, target: string, status: number]>([
    ["no Profile", "GET", "/grub?role=gone", 404],
    ["no such config", "GET", "/grub?role=empty", 404],
    ["another method", "PUT", "/grub?role=good", 405],
    ["a target of more than 8 KiB", "GET", `/grub?${"x".repeat(8192)}`, 414],
    ["a broken config", "GET", "/grub?role=syntax", 500],
  ])("is a comment for GRUB, which runs it, and the end of its waiting: %s", async (_name, method, target, status) => {
    const answer = await server.get(target, { method });
    expect(statusOf(answer)).toBe(status);
    expect(answer.body.toString()).toMatch(/^# [1-9]\d\d [a-z ]+\nset davit_answered=yes\n$/);
  });

  it("is a script that waits where it would mean so to others, and GRUB's parser takes it", async () => {
    const held = await server.read("/grub?role=held");
    expect(held.status).toBe(503);
    await expect(held.body).toMatchFileSnapshot("../golden/grub/waiting.cfg");
    if (!missing("grub")) execFileSync("grub-script-check", { input: held.body, stdio: "pipe" });
  });

  it("that is no HTTP is one harmless line: GRUB knows no command of three digits", async () => {
    const { status, body } = await server.read("/grub?serial=a b");
    expect({ status, body }).toEqual({ status: 400, body: "400 bad request\n" });
  });
});

it("no error says what is in a template, a value or a path", async () => {
  for (const name of configNames) {
    for (const role of Object.keys(profiles)) {
      const answer = await server.get(`/${name}?role=${role}&x=${word}`);
      if (statusOf(answer) >= 400) expect(answer.body.toString()).not.toMatch(new RegExp(`${word}|/|{`));
    }
  }
});

describe("the constant answers", () => {
  it.each(["/", "/boot.ipxe", "/boot.ipxe.0"])("`%s` takes GET and HEAD alone, and no other spelling", async (path) => {
    const [get, head] = [await server.get(path), await server.get(path, { method: "HEAD" })];
    expect(headerOf(head, "Content-Length")).toBe(String(get.body.length));
    expect(head.body.length).toBe(0);
    for (const method of ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"]) {
      const refused = await server.get(path, { method, headers: ["Content-Length: 0"] });
      expect([statusOf(refused), headerOf(refused, "Allow")]).toEqual([405, "GET, HEAD"]);
    }
    if (path === "/") return;
    for (const other of [`${path}/`, `${path}/x`, path.toUpperCase(), `/.${path}`, `/${path}`]) {
      expect((await server.read(other)).status).toBe(404);
    }
  });
});
