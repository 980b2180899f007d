import { afterEach, beforeEach, expect, it } from "vitest";
import { MachineSamples } from "../../src/controller/core/machine-samples.ts";
import { StatusComposer } from "../../src/controller/status/status-composer.ts";
import type { TrialJob } from "../../src/controller/trials/trial.ts";
import type { TrialRunner } from "../../src/controller/trials/trial-thread.ts";
import { Trials } from "../../src/controller/trials/trials.ts";
import { createLog } from "../../src/lib/logging/create-log.ts";
import { createMetrics } from "../../src/lib/metrics/metrics.ts";
import {
  decodeGroup,
  encodeDocument,
  type GroupDocument,
  groupPath,
  profilePath,
} from "../../src/model/objects/documents.ts";
import { clearTexts } from "../../src/model/objects/secret-texts.ts";
import type { ObjectName, ObjectStatus } from "../../src/model/objects/source.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { trials as inThisThread, sha256 } from "./around.ts";
import { FakeSource } from "./fake-source.ts";
import { groupSpec, profileObject, secretObject } from "./objects.ts";

const provenance = { origin: "web.yaml, document 1 (line 1)", uid: "u", generation: 1 };
const web: ObjectName = { kind: "Profile", namespace: "default", name: "web" };
const status: ObjectStatus = {
  observedGeneration: 1,
  conditions: [
    { type: "Synced", status: "True", reason: "Synced", message: "" },
    { type: "Ready", status: "True", reason: "Ready", message: "" },
  ],
};

let clock: FakeClock;
let source: FakeSource;
let texts: Map<string, string>;
let groups: ObjectName[];
let jobs: TrialJob[];
let told: (readonly [name: string, conditions: readonly string[]])[];
let trials: Trials;
let composer: StatusComposer;
/** Resolves each job; undefined for at once. */
let gate: Promise<void> | undefined;
let answers: (job: TrialJob) => boolean;

const runner: TrialRunner = {
  run: async (job) => {
    jobs.push(job);
    await gate;
    return answers(job) ? await inThisThread.run(job) : undefined;
  },
  stop: () => Promise.resolve(),
};

beforeEach(() => {
  clock = new FakeClock();
  source = new FakeSource();
  texts = new Map();
  groups = [];
  jobs = [];
  told = [];
  gate = undefined;
  answers = () => true;
  trials = new Trials({
    runner,
    source,
    machineSamples: new MachineSamples(),
    secretTexts: clearTexts(sha256),
    clock,
    log: createLog({ level: "silent", format: "json" }),
    metrics: createMetrics("test"),
    documents: {
      textAt: (path) => texts.get(path),
      group: (namespace, name): GroupDocument | undefined => decodeGroup(texts.get(groupPath(namespace, name)) ?? ""),
    },
    groupsOf: () => groups,
    changed: (name) => composer.found(name),
  });
  composer = new StatusComposer({
    clock,
    foundOn: (name) => trials.of(name),
    show: ({ name }, { conditions }) =>
      told.push([name, conditions.map(({ type, status: is, reason }) => `${type}=${is} ${reason}`)]),
  });
  trials.start();
});

afterEach(async () => {
  composer.stop();
  await trials.stop();
});

/** What the controller does with the status of a reconcile, and with an object that is gone. */
function tell(name: ObjectName, reported: ObjectStatus): void {
  trials.look(name);
  composer.report(name, reported);
}

function forget(name: ObjectName): void {
  composer.forget(name);
  trials.forget(name);
}

function storeProfile(generic: string): void {
  const templates = { generic: { kind: "text", text: generic, raw: false } } as const;
  const document = { ...provenance, revision: generic, content: { displayName: "W", templates } };
  texts.set(profilePath("default", "web"), encodeDocument(document));
}

function storeGroup(name: string, metadata = {}): ObjectName {
  texts.set(groupPath("default", name), encodeDocument({ ...provenance, spec: groupSpec({ metadata }) }));
  const id: ObjectName = { kind: "Group", namespace: "default", name };
  if (!groups.some((known) => known.name === name)) groups.push(id);
  return id;
}

/** Lets the trials run to their next wait on the clock. No time passes. */
const settled = () => clock.advance(0);
const last = () => told.at(-1);
const conditionsWith = (rendered: string, ready = "Ready=True Ready") => ["Synced=True Synced", rendered, ready];
const broken = conditionsWith("Rendered=False RenderFailed", "Ready=False RenderFailed");

it("a Group's status is told once, with its trial in front of Ready", async () => {
  storeProfile("{{role}}");
  tell(storeGroup("a", { role: "x" }), status);
  tell(storeGroup("b"), status);
  await settled();
  expect(told).toHaveLength(2);
  expect(told).toEqual([
    ["a", conditionsWith("Rendered=True Rendered")],
    ["b", broken],
  ]);
  expect(jobs).toHaveLength(1);
  await clock.advance(60_000);
  expect(told).toHaveLength(2);
});

it("a Group is not tried again while its document and its Profile's are the same", async () => {
  storeProfile("fine");
  const a = storeGroup("a");
  tell(a, status);
  tell(web, status);
  await settled();
  expect(told).toHaveLength(2);
  for (const _ of [1, 2]) tell(a, status);
  tell(web, status);
  await settled();
  expect(told).toHaveLength(4);
  expect(jobs).toHaveLength(1);
});

it("every Group of a Profile is tried again when it changes, in jobs of 128", async () => {
  storeProfile("fine");
  for (let at = 0; at < 300; at++) tell(storeGroup(`g${at}`), status);
  await settled();
  expect(told).toHaveLength(300);
  storeProfile("{{absent}}");
  tell(web, status);
  await settled();
  expect(told).toHaveLength(601);
  expect(told.at(-2)).toEqual(["g299", broken]);
  expect(last()).toEqual(["web", ["Synced=True Synced", "Ready=False RenderFailed"]]);
  expect(jobs.map((job) => job.groups.length)).toEqual([128, 128, 44, 128, 128, 44]);
});

it("no object is ready before its trials are over; after half a minute it is unknown", async () => {
  let open = () => {};
  gate = new Promise((resolve) => {
    open = resolve;
  });
  storeProfile("fine");
  tell(storeGroup("a"), status);
  tell(web, status);
  await settled();
  expect(jobs).toHaveLength(1);
  await clock.advance(29_999);
  expect(told).toEqual([]);
  await clock.advance(1_001);
  const unknown = ["Synced=True Synced", "Ready=Unknown NotRendered"];
  expect(told).toEqual([
    ["a", unknown],
    ["web", unknown],
  ]);
  open();
  await settled();
  expect(last()).toEqual(["web", ["Synced=True Synced", "Ready=True Ready"]]);
  expect(told.at(-2)).toEqual(["a", conditionsWith("Rendered=True Rendered")]);
});

it("what is not ready anyway waits for its trial for a second", async () => {
  let open = () => {};
  gate = new Promise((resolve) => {
    open = resolve;
  });
  storeProfile("fine");
  const conditions = [{ type: "Ready", status: "False", reason: "Held", message: "" }] as const;
  tell(storeGroup("a"), { ...status, conditions });
  await settled();
  expect(jobs).toHaveLength(1);
  await clock.advance(999);
  expect(told).toEqual([]);
  await clock.advance(1);
  expect(told).toEqual([["a", ["Ready=False Held"]]]);
  open();
});

it("a Profile is not ready while a Group of it lacks something, whatever the request", async () => {
  storeProfile("{{request.query.os}}{{role}}");
  tell(storeGroup("a", { role: "x" }), status);
  tell(storeGroup("b"), status);
  tell(web, status);
  await settled();
  expect(last()).toEqual(["web", ["Synced=True Synced", "Ready=False RenderFailed"]]);
  // What depends on the request is advice.
  expect(told).toContainEqual(["a", conditionsWith("Rendered=False RenderFailed")]);
  expect(told).toContainEqual(["b", broken]);
  tell(storeGroup("b", { role: "y" }), status);
  await settled();
  expect(last()).toEqual(["web", ["Synced=True Synced", "Ready=True Ready"]]);
  tell(storeGroup("b"), status);
  await settled();
  expect(last()).toEqual(["web", ["Synced=True Synced", "Ready=False RenderFailed"]]);
  groups = groups.slice(0, 1);
  forget({ kind: "Group", namespace: "default", name: "b" });
  expect(last()).toEqual(["web", ["Synced=True Synced", "Ready=True Ready"]]);
});

it("what changes during its trial is told with the trial of what it is then", async () => {
  let open = () => {};
  gate = new Promise((resolve) => {
    open = resolve;
  });
  storeProfile("{{role}}");
  tell(storeGroup("a"), status);
  await settled();
  expect(jobs).toHaveLength(1);
  tell(storeGroup("a", { role: "x" }), status);
  open();
  await settled();
  expect(told).toEqual([["a", conditionsWith("Rendered=True Rendered")]]);
  expect(jobs).toHaveLength(2);
});

it("Groups whose trial does not end are unknown, and the others of their job are tried without them", async () => {
  answers = (job) => !job.groups.some(({ name }) => name === "b");
  storeProfile("fine");
  for (const name of ["a", "b", "c"]) tell(storeGroup(name), status);
  tell(web, status);
  await settled();
  expect(told).toHaveLength(4);
  expect(told).toEqual([
    ["a", conditionsWith("Rendered=True Rendered")],
    ["b", conditionsWith("Rendered=Unknown NotRendered", "Ready=Unknown NotRendered")],
    ["c", conditionsWith("Rendered=True Rendered")],
    ["web", ["Synced=True Synced", "Ready=Unknown NotRendered"]],
  ]);
  answers = () => true;
  tell(storeGroup("b"), status);
  await settled();
  expect(told.slice(-2)).toEqual([
    ["b", conditionsWith("Rendered=True Rendered")],
    ["web", ["Synced=True Synced", "Ready=True Ready"]],
  ]);
});

it("a Group whose Profile is not in the store is not tried", async () => {
  tell(storeGroup("a"), status);
  await settled();
  expect(last()).toEqual(["a", conditionsWith("Rendered=Unknown NotRendered")]);
  expect(jobs).toEqual([]);
});

it("a Group that is forgotten is told no more", async () => {
  let open = () => {};
  gate = new Promise((resolve) => {
    open = resolve;
  });
  storeProfile("fine");
  const a = storeGroup("a");
  tell(a, status);
  await settled();
  expect(jobs).toHaveLength(1);
  forget(a);
  open();
  tell(storeGroup("b"), status);
  await settled();
  expect(told).toEqual([["b", conditionsWith("Rendered=True Rendered")]]);
});

it("the texts of the Secrets that a Profile names go with its job", async () => {
  const generic = { kind: "secret", name: "secrets", key: "k", raw: false } as const;
  source.put(profileObject({ templates: { generic } }), secretObject({ k: "{{absent}}" }));
  const templates = { generic: { ...generic, sha256: sha256("{{absent}}") } };
  const document = { ...provenance, revision: "1", content: { displayName: "W", templates } };
  texts.set(profilePath("default", "web"), encodeDocument(document));
  tell(storeGroup("a"), status);
  await settled();
  expect(last()).toEqual(["a", broken]);
});

it("trials rest as long as they work", async () => {
  gate = clock.sleep(100);
  storeProfile("fine");
  tell(storeGroup("a"), status);
  await settled();
  expect(jobs).toHaveLength(1);
  await clock.advance(100);
  await settled();
  expect(told).toHaveLength(1);
  tell(storeGroup("b"), status);
  await clock.advance(99);
  expect(jobs).toHaveLength(1);
  await clock.advance(1);
  await settled();
  expect(jobs).toHaveLength(2);
});
