import { afterEach, expect, it } from "vitest";
import { type TrialRunner, trialThread } from "../../src/controller/trials/trial-thread.ts";
import { encodeDocument } from "../../src/model/objects/documents.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { groupSpec } from "./objects.ts";

const provenance = { origin: "web.yaml, document 1 (line 1)", uid: "u", generation: 1 };
const davitUrl = "http://192.0.2.1:8080";
const stops: (() => Promise<void>)[] = [];

afterEach(async () => {
  while (stops.length > 0) await stops.pop()?.();
});

function startThread(worker?: URL): { readonly thread: TrialRunner; readonly clock: FakeClock } {
  const clock = new FakeClock();
  const thread = trialThread({ davitUrl, clock, ...(worker && { worker }) });
  stops.push(() => thread.stop());
  return { thread, clock };
}

function job(text: string, profile = "web") {
  const templates = { generic: { kind: "text", text, raw: false } } as const;
  const profileText = encodeDocument({ ...provenance, revision: "1", content: { displayName: "W", templates } });
  const group = { name: "node1", text: encodeDocument({ ...provenance, spec: groupSpec() }) };
  return { namespace: "lab", profile, profileText, secretTexts: new Map(), groups: [group] };
}

it("trials run in a thread, which knows where machines reach davit", async () => {
  const { thread } = startThread();
  expect(await thread.run(job(`{{#if (eq davit.url "${davitUrl}")}}{{absent}}{{/if}}`))).toMatchObject([
    [{ severity: "broken", text: expect.stringContaining("variable is not defined") }],
  ]);
});

it("a job over which the thread dies has no answer, and the next one has", async () => {
  const { thread } = startThread(new URL("./odd-worker.ts", import.meta.url));
  expect(await thread.run(job("a", "deadly"))).toBeUndefined();
  expect(await thread.run(job("a"))).toEqual([[]]);
});

it("a thread without work ends after a while, and another one takes its place", async () => {
  const { thread, clock } = startThread();
  expect(await thread.run(job("a"))).toEqual([[]]);
  await clock.advance(5_000);
  expect(await thread.run(job("a"))).toEqual([[]]);
  await clock.advance(30_000);
  expect(clock.sleeping).toBe(0);
  expect(await thread.run(job("a"))).toEqual([[]]);
  expect(clock.sleeping).toBe(1);
});

it("nothing is tried after `stop()`, which may be called twice and gives up what is under way", async () => {
  const { thread } = startThread();
  const underWay = thread.run(job("a"));
  await thread.stop();
  await thread.stop();
  expect(await underWay).toBeUndefined();
  expect(await thread.run(job("a"))).toBeUndefined();
});
