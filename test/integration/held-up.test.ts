/** Whatever one machine's config takes, the others are answered meanwhile: a real davit, and its own listener. */

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";

const script = "#!ipxe\nkernel /k quiet\nboot\n";
const boot = { kernel: "/k", args: ["quiet"] };
const lists = Array.from({ length: 150_000 }, () => []);
const rounds = Array.from({ length: 2_000 }, () => 1);

interface Attack {
  readonly name: string;
  readonly profile: object;
  readonly metadata: object;
  readonly path: string;
  readonly status: number;
}

const cloud = (inline: string) => ({ cloudConfig: { inline } });
const attacks: readonly Attack[] = [
  {
    name: "a list of lists as a key in a loop",
    profile: { generic: { inline: "{{#each rounds}}{{#if (lookup ../lists ../lists)}}{{/if}}{{/each}}" } },
    metadata: { rounds, lists },
    path: "/generic",
    status: 500,
  },
  {
    name: "arguments that take long",
    profile: {
      boot: {
        ...boot,
        args: Array.from({ length: 60 }, () => "a{{#each rounds}}{{#if (json ../lists)}}{{/if}}{{/each}}"),
      },
    },
    metadata: { rounds, lists },
    path: "/ipxe",
    status: 500,
  },
  {
    name: "YAML of many mistakes",
    profile: cloud("#cloud-config\na: [{{nulls}}]\n"),
    metadata: { nulls: Array.from({ length: 130_000 }, () => null) },
    path: "/cloud",
    status: 500,
  },
  {
    name: "YAML of half a mebibyte, for each request",
    profile: cloud("#cloud-config\n# {{request.query.serial}}\n{{text}}"),
    metadata: { text: "- name: some\n  value: [1, 2, abc]\n".repeat(15_000) },
    path: "/cloud",
    status: 200,
  },
  {
    name: "metadata of 150,000 values",
    profile: { boot },
    metadata: { values: lists.map((_, at) => at) },
    path: "/metadata",
    status: 200,
  },
  {
    name: "metadata that each request may hide lines of",
    profile: { boot },
    metadata: Object.fromEntries(
      [...Array(50).keys()].map((at) => [`request_${at}`, lists.slice(0, 1_000).map(() => 1)]),
    ),
    path: "/metadata",
    status: 200,
  },
];

let folder: string;
let davit: DavitProcess;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-held-up-"));
  await mkdir(join(folder, "manifests"));
  const objects = [
    ...of("plain", { boot }, {}),
    ...attacks.flatMap(({ profile, metadata }, at) => of(`attack${at}`, profile, metadata)),
  ];
  for (const [at, object] of objects.entries()) {
    await writeFile(join(folder, "manifests", `${at}.json`), JSON.stringify(object));
  }
  davit = await startDavit({ manifests: join(folder, "manifests"), dataDir: join(folder, "data") });
});

afterAll(async () => {
  await davit.stop();
  await rm(folder, { recursive: true });
});

/** A Profile, and a Group of the machines that say its name. */
function of(name: string, profile: object, metadata: object): readonly object[] {
  const head = { apiVersion: "davit.dev/v1alpha1", metadata: { name } };
  const group = { profileRef: { name }, selector: { matchLabels: { os: name } }, metadata };
  return [
    { ...head, kind: "Profile", spec: { displayName: name, ...profile } },
    { ...head, kind: "Group", spec: group },
  ];
}

it.each(attacks.map((attack, at) => ({ ...attack, at })))(
  "beside $name, another machine is answered first",
  async ({ at, path, status }) => {
    const order: string[] = [];
    const attack = fetch(`${davit.bootUrl}${path}?os=attack${at}&serial=1`).then(async (answer) => {
      order.push("attack");
      await answer.arrayBuffer();
      return answer.status;
    });
    // Each is asked when the one before was answered, so that all but the first meet davit at work.
    for (let count = 0; count < 5; count++) {
      const answer = await fetch(`${davit.bootUrl}/ipxe?os=plain`);
      expect([answer.status, await answer.text()]).toEqual([200, script]);
      order.push("plain");
    }
    expect(await attack).toBe(status);
    expect(order.slice(0, 5)).toEqual(Array(5).fill("plain"));
  },
);
