import { beforeEach, describe, expect, it } from "vitest";
import { BootConfigs, type ConfigName } from "../../src/boot/boot-configs.ts";
import { BootMaker } from "../../src/boot/making/boot-maker.ts";
import type { JobOutcome } from "../../src/boot/making/render-thread.ts";
import { SlowWork } from "../../src/boot/making/slow-work.ts";
import { labelsFromQuery } from "../../src/model/labels/labels.ts";
import type { GroupSpec } from "../../src/model/objects/group.ts";
import { RenderBudget } from "../../src/render/template/limits.ts";
import { RequestReads } from "../../src/render/template/request-reads.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { groupDocument, profileDocument, syncedDocument } from "./feed-documents.ts";
import { openIndex } from "./open-index.ts";

const slow = "{{#each lists}}{{#if (json ../lists)}}{{/if}}{{/each}}";
const metadata = { os: "debian", lists: Array.from({ length: 1_000 }, () => []) };
const sha256 = () => "";

let clock: FakeClock;
let configs: BootConfigs;
let fill: (text: string, spec?: Partial<GroupSpec>) => void;
/** Called while something is made elsewhere. */
let meanwhile: () => void;
/** What was made beside the main thread, which does it at once here. */
let elsewhere: string[];
let failure: JobOutcome | undefined;

beforeEach(() => {
  clock = new FakeClock();
  elsewhere = [];
  failure = undefined;
  meanwhile = () => {};
  const index = openIndex([]);
  const thread = {
    run: async (job: Parameters<BootMaker["make"]>[0]): Promise<JobOutcome> => {
      elsewhere.push(job.kind);
      await Promise.resolve();
      meanwhile();
      if (failure !== undefined) return failure;
      const reads = new RequestReads();
      return { made: new BootMaker({ sha256 }).make(job, new RenderBudget(), reads), isOfRequest: reads.isAny };
    },
  };
  const grub = { separator: "auto", commands: "auto" } as const;
  configs = new BootConfigs({ index, authority: "d:80", grub, slowWork: new SlowWork({ thread, clock }) });
  fill = (text, spec = {}) =>
    index.replaced([
      profileDocument("lab/web", {
        boot: { kind: "kernel", kernel: "/k", initrd: [], args: [`a=1${slow}`], efiInitrd: false },
        templates: { generic: { kind: "text", text, raw: false } },
      }),
      groupDocument("lab/web", { selector: { role: "web" }, metadata, ...spec }),
      syncedDocument(),
    ]);
});

function ask(serial: number, name: ConfigName = "generic") {
  const rawQuery = `role=web&serial=${serial}`;
  return configs.answer(name, { labels: labelsFromQuery(rawQuery), rawQuery, userAgent: "" });
}

const bodyOf = async (config: ReturnType<typeof ask>) => (await config).rendered.body;

describe("what is made in no time", () => {
  it("is there at once", () => {
    fill("{{os}} {{request.query.serial}}");
    expect(ask(1)).toMatchObject({ rendered: { body: "debian 1" } });
    expect(elsewhere).toEqual([]);
  });
});

describe("what takes long", () => {
  it("is made elsewhere, once for all who ask, where the request has no part in it", async () => {
    fill(`${slow}{{os}}`);
    expect(await Promise.all([1, 2, 3].map((serial) => bodyOf(ask(serial))))).toEqual(Array(3).fill("debian"));
    expect(ask(4)).toMatchObject({ rendered: { body: "debian" } });
    expect(elsewhere).toEqual(["part"]);
  });

  it("is made for each request where the request has a part in it", async () => {
    fill(`${slow}{{request.query.serial}}`);
    expect(await Promise.all([1, 2, 3].map((serial) => bodyOf(ask(serial))))).toEqual(["1", "2", "3"]);
    expect(await bodyOf(ask(4))).toBe("4");
    expect(elsewhere).toHaveLength(4);
  });

  it("is a boot section, too: once for iPXE and once for GRUB", async () => {
    fill("");
    expect(await bodyOf(ask(1, "ipxe"))).toBe("#!ipxe\nkernel /k a=1\nboot\n");
    expect(await bodyOf(ask(1, "grub"))).toContain('"a=1"');
    expect([await bodyOf(ask(2, "ipxe")), await bodyOf(ask(2, "grub"))]).toHaveLength(2);
    expect(elsewhere).toEqual(["ipxe", "grub"]);
  });

  it.each(["#cloud-config\na: 1\n", "{}", '{"a": 1}'])(
    "is a check of a long text, not its render: %s",
    async (begin) => {
      fill(`${begin}${" ".repeat(300_000)}`);
      expect(await bodyOf(ask(1))).toContain(begin);
      expect(elsewhere).toEqual(["part"]);
    },
  );

  it("is begun here only where a request may be why it took long", async () => {
    fill(`{{#if request.query.serial}}{{#if (eq request.query.serial "9")}}${slow}{{/if}}{{/if}}`);
    expect(await bodyOf(ask(9))).toBe("");
    expect(ask(1)).toMatchObject({ rendered: { body: "" } });
    expect(elsewhere).toHaveLength(1);
  });
});

describe("objects that change while a config is made", () => {
  const names = ["generic", "ipxe", "grub"] as const;

  it.each(names)("hold the machine: %s", async (name) => {
    fill(`${slow}old`);
    meanwhile = () => fill(`${slow}old`, { hold: true });
    await expect(ask(1, name)).rejects.toMatchObject({ reason: "held" });
  });

  it("make davit begin anew", async () => {
    fill(`${slow}old`);
    meanwhile = () => {
      meanwhile = () => {};
      fill(`${slow}new`);
    };
    expect(await bodyOf(ask(1))).toBe("new");
    expect(elsewhere).toEqual(["part", "part"]);
  });

  it("again and again let the machine ask later", async () => {
    fill(slow);
    meanwhile = () => fill(slow);
    await expect(ask(1)).rejects.toMatchObject({ reason: "busy" });
    expect(elsewhere).toHaveLength(3);
  });

  it("hold the metadata, too", async () => {
    const values = Array.from({ length: 400_000 }, () => 1);
    fill("", { metadata: { values } });
    meanwhile = () => fill("", { metadata: { values }, hold: true });
    await expect(ask(1, "metadata")).rejects.toMatchObject({ reason: "held" });
  });
});

describe("what fails", () => {
  const stopped = (isFinal: boolean, isOfRequest = false): JobOutcome => ({
    refused: { reason: isFinal ? "budget" : "stopped", position: undefined, variable: undefined, field: undefined },
    isFinal,
    isOfRequest,
  });
  const broken = { reason: "broken" };

  it("for every request is not tried again", async () => {
    fill(slow);
    failure = stopped(true);
    await expect(ask(1)).rejects.toMatchObject(broken);
    await clock.advance(3_600_000);
    await expect(ask(2)).rejects.toMatchObject(broken);
    expect(elsewhere).toHaveLength(1);
  });

  it("for want of time is tried again after a minute", async () => {
    fill(slow);
    failure = stopped(false);
    await expect(ask(1)).rejects.toMatchObject(broken);
    await clock.advance(59_000);
    await expect(ask(1)).rejects.toMatchObject(broken);
    expect(elsewhere).toHaveLength(1);
    failure = undefined;
    await clock.advance(1_000);
    expect(await bodyOf(ask(1))).toBe("");
  });

  it("for one request is tried for the next one", async () => {
    fill(slow);
    failure = stopped(true, true);
    await expect(ask(1)).rejects.toMatchObject(broken);
    failure = undefined;
    expect(await bodyOf(ask(2))).toBe("");
  });

  it("is forgotten with the Group or the Profile that it was of", async () => {
    fill(slow);
    failure = stopped(true);
    await expect(ask(1)).rejects.toMatchObject(broken);
    failure = undefined;
    fill(`${slow}x`);
    expect(await bodyOf(ask(1))).toBe("x");
  });
});
