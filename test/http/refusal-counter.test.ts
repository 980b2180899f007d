import { expect, it } from "vitest";
import { BootError } from "../../src/boot/core/boot-error.ts";
import { answerMachine, type MachineVisit, refusalCounter } from "../../src/http/boot/answer.ts";
import { createMetrics } from "../../src/lib/metrics/metrics.ts";
import { labelsFromQuery } from "../../src/model/labels/labels.ts";
import { type BootRefusal, bootRefusals } from "../../src/model/refusals.ts";

const request = { labels: labelsFromQuery("zone=b"), rawQuery: "zone=b", userAgent: "" };
const config = { rendered: { body: "x", contentType: "text/plain" }, group: "lab/a", profile: undefined };

function watched(render: () => typeof config) {
  const metrics = createMetrics("1");
  const told: string[] = [];
  const nearMisses = { report: (labels: ReadonlyMap<string, string>) => told.push([...labels].join()) };
  const counted = async () => (await metrics.text()).match(/(?<=^davit_boot_refusals_total\{reason=")\w+"\} [1-9]/gm);
  const onRefusal = refusalCounter({ metrics, nearMisses });
  const visit: MachineVisit = { machine: undefined };
  const ask = () => answerMachine({ configs: { render }, onRefusal }, "ipxe", request, visit);
  return { ask, told, counted, metrics };
}

it("every reason is counted from 0 on", async () => {
  const { metrics } = watched(() => config);
  const text = await metrics.text();
  for (const reason of Object.keys(bootRefusals)) {
    expect(text).toContain(`davit_boot_refusals_total{reason="${reason}"} 0`);
  }
});

it("an answer passes and counts nowhere", async () => {
  const { ask, told, counted } = watched(() => config);
  expect(ask()).toBe(config.rendered);
  expect([told, await counted()]).toEqual([[], null]);
});

it.each<{ reason: BootRefusal; told: readonly string[] }>([
  { reason: "noMatch", told: ["zone,b"] },
  { reason: "noPart", told: [] },
  { reason: "broken", told: [] },
  { reason: "bereft", told: [] },
])("a refusal for $reason passes and is counted", async ({ reason, told }) => {
  const refusal = new BootError(reason);
  const { ask, ...seen } = watched(() => {
    throw refusal;
  });
  expect(ask).toThrow(refusal);
  expect([seen.told, await seen.counted()]).toEqual([told, [`${reason}"} 1`]]);
});

it("a bug passes and counts nowhere", async () => {
  const { ask, told, counted } = watched(() => {
    throw new TypeError("bug");
  });
  expect(ask).toThrow("bug");
  expect([told, await counted()]).toEqual([[], null]);
});
