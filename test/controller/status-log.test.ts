import { beforeEach, expect, it } from "vitest";
import { StatusLog } from "../../src/controller/status/status-log.ts";
import { createLog } from "../../src/lib/logging/create-log.ts";
import type { ConditionStatus, ObjectName, ObjectStatus } from "../../src/model/objects/source.ts";

const web: ObjectName = { kind: "Group", namespace: "default", name: "web" };

let lines: string[] = [];
let sink: StatusLog;

beforeEach(() => {
  lines = [];
  const write = (line: string) => lines.push(line);
  sink = new StatusLog({ log: createLog({ level: "info", format: "json", destination: { write } }) });
});

function ready(status: ConditionStatus, reason = "Synced", message = ""): ObjectStatus {
  const type = "Ready";
  return {
    observedGeneration: 1,
    conditions: [
      { type: "Accepted", status: "True", reason, message },
      { type, status, reason, message },
    ],
  };
}

function logged(): readonly object[] {
  return lines.map((line) => {
    const { time: _, ...data } = JSON.parse(line);
    return data;
  });
}

it("transitions to and from Ready are one line each, and equal statuses none", async () => {
  await sink.write(web, ready("True"));
  await sink.write(web, ready("False", "ProfileNotFound", "Profile default/p does not exist: add it"));
  await sink.write(web, ready("False", "ProfileNotFound", "Profile default/p does not exist: add it"));
  await sink.write(web, ready("True"));
  await sink.write(web, ready("True"));
  const name = { kind: "Group", namespace: "default", name: "web" };
  expect(logged()).toEqual([
    {
      level: 40,
      ...name,
      reason: "ProfileNotFound",
      message: "Profile default/p does not exist: add it",
      msg: "object is not ready",
    },
    { level: 30, ...name, reason: "Synced", message: "", msg: "object is ready" },
  ]);
});

it("another reason for not being ready is told, too", async () => {
  await sink.write(web, ready("False", "ProfileNotFound"));
  await sink.write(web, ready("Unknown", "StoreUnavailable"));
  expect(logged()).toMatchObject([{ reason: "ProfileNotFound" }, { reason: "StoreUnavailable" }]);
});

it("what is not ready can be listed, in order, until it is ready or gone", async () => {
  const other: ObjectName = { ...web, name: "a" };
  const third: ObjectName = { ...web, kind: "Profile" };
  await sink.write(third, ready("False", "X", "x"));
  await sink.write(web, ready("False", "X", "x"));
  await sink.write(other, ready("Unknown", "Y", "y"));
  expect(sink.attention()).toEqual([
    { name: other, reason: "Y", message: "y" },
    { name: web, reason: "X", message: "x" },
    { name: third, reason: "X", message: "x" },
  ]);
  await sink.write(web, ready("True"));
  sink.forget(other);
  expect(sink.attention().map(({ name }) => name)).toEqual([third]);
});

it("a Group that is held on purpose is told, and is nothing to look at", async () => {
  await sink.write(web, ready("True"));
  await sink.write(web, ready("False", "Held"));
  expect(logged()).toMatchObject([{ level: 30, msg: "object is held" }]);
  expect(sink.attention()).toEqual([]);
});

it("a status without Ready says nothing", async () => {
  await sink.write(web, { observedGeneration: 1, conditions: [] });
  expect([sink.attention(), lines]).toEqual([[], []]);
});

it("advice on a ready object is told once, and shown to people", async () => {
  const advised: ObjectStatus = {
    observedGeneration: 1,
    conditions: [
      { type: "Accepted", status: "True", reason: "ValidWithAdvice", message: "look at this" },
      { type: "Ready", status: "True", reason: "Ready", message: "ready" },
    ],
  };
  await sink.write(web, advised);
  await sink.write(web, advised);
  expect(logged()).toMatchObject([{ msg: "object is ready, with advice", message: "look at this" }]);
  expect(sink.attention()).toEqual([{ name: web, reason: "ValidWithAdvice", message: "look at this" }]);
});

function rendered(status: ConditionStatus, reason: string, message: string): ObjectStatus {
  const { observedGeneration, conditions } = ready("True");
  return { observedGeneration, conditions: [{ type: "Rendered", status, reason, message }, ...conditions] };
}

it("what a trial found is told once for all of its Groups, and once when the last of them is rid of it", async () => {
  const names = Array.from({ length: 3 }, (_, at): ObjectName => ({ ...web, name: `g${at}` }));
  for (const name of names) await sink.write(name, rendered("False", "RenderFailed", "line 2"));
  const data = { kind: "Group", namespace: "default", reason: "RenderFailed", message: "line 2", level: 40 };
  expect(logged()).toEqual([{ ...data, name: "g0", msg: "a trial rendering failed" }]);
  expect(sink.attention()).toEqual([
    { name: names[0], reason: "RenderFailed", message: "line 2 (so it is with 2 other Groups)" },
  ]);
  lines = [];
  const [first = web, second = web, third = web] = names;
  await sink.write(first, rendered("True", "Rendered", "whole"));
  sink.forget(second);
  expect(logged()).toEqual([]);
  expect(sink.attention()).toEqual([{ name: third, reason: "RenderFailed", message: "line 2" }]);
  await sink.write(third, rendered("True", "Rendered", "whole"));
  expect(logged()).toEqual([{ ...data, level: 30, name: "g2", msg: "a trial rendering no longer finds this" }]);
  expect(sink.attention()).toEqual([]);
});

it("advice of a trial is told as such, and another finding takes its place", async () => {
  await sink.write(web, rendered("True", "RenderedWithAdvice", "old field"));
  await sink.write(web, rendered("False", "InvalidConfig", "no path"));
  await sink.write(web, ready("True"));
  expect(logged()).toMatchObject([
    { level: 30, msg: "a trial rendering has advice", message: "old field" },
    { level: 40, msg: "a trial rendering failed", message: "no path" },
    { level: 30, msg: "a trial rendering no longer finds this", message: "old field" },
  ]);
  expect(sink.attention()).toMatchObject([{ reason: "InvalidConfig" }]);
});
