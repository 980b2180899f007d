import { expect, it } from "vitest";
import { sinkOfAll } from "../../src/controller/status/status-book.ts";
import type { ObjectName, ObjectStatus, StatusSink } from "../../src/model/objects/source.ts";

const name: ObjectName = { kind: "Group", namespace: "default", name: "web" };
const status: ObjectStatus = { observedGeneration: 1, conditions: [] };

function sinkInto(told: string[], label: string, error?: Error): StatusSink {
  return {
    write: async (object) => {
      told.push(`${label} write ${object.name}`);
      if (error !== undefined) throw error;
    },
    forget: (object) => told.push(`${label} forget ${object.name}`),
  };
}

it("each of several sinks is told everything", async () => {
  const told: string[] = [];
  const sinks = sinkOfAll([sinkInto(told, "a"), sinkInto(told, "b")]);
  await sinks.write(name, status);
  sinks.forget(name);
  expect(told).toEqual(["a write web", "b write web", "a forget web", "b forget web"]);
});

it("a sink that fails keeps nothing from the others, and its error is told", async () => {
  const told: string[] = [];
  const sinks = sinkOfAll([sinkInto(told, "a", new Error("away")), sinkInto(told, "b")]);
  await expect(sinks.write(name, status)).rejects.toThrow("away");
  expect(told).toEqual(["a write web", "b write web"]);
});
