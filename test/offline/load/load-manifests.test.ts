import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BootConfigs } from "../../../src/boot/boot-configs.ts";
import { BootError } from "../../../src/boot/core/boot-error.ts";
import { labelsFromQuery } from "../../../src/model/labels/labels.ts";
import {
  bootIndexOf,
  type LoadOptions,
  loadManifests,
  type Manifests,
} from "../../../src/offline/load/load-manifests.ts";
import { groupText, profileText, stream } from "../../sources/directory/manifests.ts";

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-offline-"));
});

afterAll(async () => {
  await rm(folder, { recursive: true });
});

const log = { error: (data: object, message: string) => expect.fail(`${message} ${JSON.stringify(data)}`) };

async function directoryOf(name: string, files: Readonly<Record<string, string>>): Promise<string> {
  const path = join(folder, name);
  await mkdir(path);
  for (const [file, text] of Object.entries(files)) await writeFile(join(path, file), text);
  return path;
}

async function load(options: Partial<LoadOptions>): Promise<Manifests> {
  return await loadManifests({ directories: [], log, ...options });
}

/** What a machine is answered, or why it is not. */
function answer(manifests: Manifests, rawQuery: string, name: "ipxe" | "generic" = "generic"): string {
  const grub = { separator: "auto", commands: "auto" } as const;
  const configs = new BootConfigs({ index: bootIndexOf(manifests), authority: "192.0.2.1:8080", grub });
  try {
    const { rendered } = configs.render(name, { labels: labelsFromQuery(rawQuery), rawQuery, userAgent: "" });
    return String(rendered.body);
  } catch (error) {
    if (!(error instanceof BootError)) throw error;
    return error.reason;
  }
}

function reasons({ planned }: Manifests): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(
    planned.map(({ name, status }) => {
      const ready = status?.conditions.find(({ type }) => type === "Ready");
      return [`${name.kind} ${name.namespace}/${name.name}`, ready?.reason];
    }),
  );
}

/** As kubectl writes it. */
const fromKubectl = `apiVersion: v1
items:
- apiVersion: davit.dev/v1alpha1
  kind: Group
  metadata:
    annotations:
      kubectl.kubernetes.io/last-applied-configuration: |
        {"apiVersion":"davit.dev/v1alpha1","kind":"Group"}
    creationTimestamp: "2026-11-21T19:00:00Z"
    generation: 3
    managedFields:
    - apiVersion: davit.dev/v1alpha1
      fieldsType: FieldsV1
      fieldsV1:
        f:spec:
          .: {}
          f:conditions:
            k:{"type":"Ready"}:
              .: {}
      manager: kubectl
      operation: Apply
      time: "2026-11-21T19:00:00Z"
    name: one
    namespace: davit
    resourceVersion: "4711"
    uid: 0e4a8f52-4b7c-4f43-8f3a-0a4bb5d3c6b1
  spec:
    profileRef:
      name: web
    selector:
      matchLabels:
        role: worker
  status:
    conditions:
    - lastTransitionTime: "2026-11-21T19:00:00Z"
      message: The spec is valid
      reason: Valid
      status: "True"
      type: Accepted
- apiVersion: davit.dev/v1alpha1
  kind: Profile
  metadata:
    name: web
    namespace: davit
  spec:
    generic:
      inline: "hello {{request.query.role}}"
kind: List
metadata:
  resourceVersion: ""
`;

describe("`loadManifests()`", () => {
  it("shows what machines would get from a directory", async () => {
    const boot = '  boot: {kernel: /k, args: ["url={{davit.url}}"]}\n  generic: {inline: "{{role}} {{zone}}"}';
    const group = "  selector: {matchLabels: {role: web}}\n  metadata: {zone: b}";
    const directory = await directoryOf("whole", { "a.yaml": stream(profileText("web", boot), groupText("g", group)) });
    const manifests = await load({ directories: [directory] });
    expect(reasons(manifests)).toEqual({ "Profile default/web": "Ready", "Group default/g": "Ready" });
    expect(answer(manifests, "role=web")).toBe("web b");
    expect(answer(manifests, "role=web", "ipxe")).toBe("#!ipxe\nkernel /k url=http://192.0.2.1:8080\nboot\n");
    expect(answer(manifests, "role=db")).toBe("noMatch");
  });

  it("takes what kubectl writes, with everything that a cluster adds", async () => {
    const manifests = await load({ input: Buffer.from(fromKubectl) });
    expect(manifests.view.problems).toEqual([]);
    expect(reasons(manifests)).toEqual({ "Group davit/one": "Ready", "Profile davit/web": "Ready" });
    expect(answer(manifests, "role=worker")).toBe("hello worker");
  });

  it("takes documents by standard input beside a directory", async () => {
    const directory = await directoryOf("beside", { "a.yaml": profileText("web") });
    const manifests = await load({ directories: [directory], input: Buffer.from(groupText("g")) });
    expect(answer(manifests, "role=g")).toBe("hello");
  });

  it("withholds from machines that no Group names while something cannot be read, as the server does", async () => {
    const named = "  selector: {matchLabels: {mac: 52-54-00-a1-9c-ae}}";
    const text = stream(profileText("web"), groupText("g"), groupText("named", named), "kind: Group\n");
    const manifests = await load({ input: Buffer.from(text) });
    expect(manifests.view.complete).toBe(false);
    expect(answer(manifests, "role=g")).toBe("withheld");
    expect(answer(manifests, "mac=52:54:00:a1:9c:ae")).toBe("hello");
  });

  it("tells what is wrong with line and file", async () => {
    const directory = await directoryOf("wrong", {
      "a.yaml": groupText("g", "  selector: {matchLabels: {role: g}}\n  priority: 1001"),
    });
    expect((await load({ directories: [directory] })).view.problems).toMatchObject([
      {
        origin: "a.yaml, document 1 (line 1)",
        message: "Group default/g, spec.priority (line 7): must be 1000 or less",
      },
    ]);
  });

  it("has the texts of Secrets that are allowed", async () => {
    const secret =
      "apiVersion: v1\nkind: Secret\nmetadata: {name: s, labels: {davit.dev/allow-template: 'true'}}\nstringData: {k: hidden}\n";
    const profile = profileText("web", "  generic: {templateFrom: {secretKeyRef: {name: s, key: k}}}");
    const manifests = await load({ input: Buffer.from(stream(profile, groupText("g"), secret)) });
    expect(answer(manifests, "role=g")).toBe("hidden");
  });

  it("lets no Group outside the admin namespace claim every machine", async () => {
    const text = stream(profileText("web"), groupText("all", "  matchAll: true"));
    expect(answer(await load({ input: Buffer.from(text) }), "role=x")).toBe("hello");
    expect(answer(await load({ input: Buffer.from(text), adminNamespace: "infra" }), "role=x")).toBe("noMatch");
  });

  it.each([
    ["nothing", ""],
    ["blanks and comments", "# none\n---\n"],
    ["bytes that are no text", Buffer.from([0xff, 0xfe, 0x00])],
  ])("tells of an input with %s", async (_, input) => {
    const { view, planned } = await load({ input: Buffer.from(input) });
    expect(view.problems).toHaveLength(1);
    expect(view.problems[0]?.message).toMatch(/^The input (?:holds no document|is not UTF-8 text)/);
    expect(planned).toEqual([]);
  });

  it("tells how far it is", async () => {
    const told: (readonly [number, number])[] = [];
    const directory = await directoryOf("progress", { "a.yaml": profileText("web"), "b.yaml": groupText("g") });
    await load({ directories: [directory], progress: (count, total) => told.push([count, total]) });
    expect(told).toEqual([[2, 2]]);
  });
});
