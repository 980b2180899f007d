import { describe, expect, it } from "vitest";
import { bootGapMs } from "../../../src/records/history/boot-rule.ts";
import { bootsOf, plainStage } from "../../../src/records/history/boots.ts";
import type { PastRequest } from "../../../src/records/history/history-view.ts";
import { seen } from "./seen-requests.ts";

/** `endpoint[ status][ HEAD][ xN][ @minutes]`, a second apart unless told when. */
function past(texts: readonly string[]): readonly PastRequest[] {
  return texts.map((text, at) => {
    const [endpoint = "", ...words] = text.split(" ");
    const status = Number(words.find((word) => /^\d+$/.test(word)) ?? 200);
    const minutes = words.find((word) => word.startsWith("@"))?.slice(1);
    const startedAtMs = minutes === undefined ? at * 1_000 : Number(minutes) * 60_000;
    const {
      startedMs: _startedMs,
      query: _query,
      ...request
    } = seen(endpoint, {
      status,
      isHead: words.includes("HEAD"),
      isCut: words.includes("cut"),
      sentBytes: words.includes("cut") ? 40 : 100,
      group: endpoint === "ipxe" && status === 200 ? "lab/web" : undefined,
    });
    const times = Number(words.find((word) => word.startsWith("x"))?.slice(1) ?? 1);
    return {
      ...request,
      startedAtMs,
      lastStartedAtMs: startedAtMs,
      times,
      labels: new Map(),
      isByAddress: false,
      via: undefined,
    };
  });
}

function lines(texts: readonly string[]): readonly string[] {
  return bootsOf(past(texts), plainStage).map(({ line }) => line);
}

it.each<[name: string, requests: readonly string[], expected: readonly string[]]>([
  ["a boot by iPXE", ["boot.ipxe", "ipxe", "k", "i", "ignition"], ["boot.ipxe -> ipxe -> k -> i -> ignition"]],
  ["a boot by GRUB", ["grub", "k", "i", "metadata"], ["grub -> k -> i -> metadata"]],
  ["two boots", ["boot.ipxe", "ipxe", "k", "boot.ipxe", "ipxe"], ["boot.ipxe -> ipxe -> k", "boot.ipxe -> ipxe"]],
  ["two boots without boot.ipxe", ["ipxe", "k", "ipxe", "k"], ["ipxe -> k", "ipxe -> k"]],
  ["a boot loop", ["boot.ipxe", "boot.ipxe"], ["boot.ipxe", "boot.ipxe"]],
  ["a machine that waits", ["boot.ipxe", "ipxe 503 x12", "ipxe", "k"], ["boot.ipxe -> ipxe 503 x12 -> ipxe -> k"]],
  ["UEFI, which asks for heads", ["ipxe HEAD", "ipxe", "k"], ["HEAD ipxe -> ipxe -> k"]],
  ["GRUB that was itself an asset", ["grubx64.efi", "grub", "k"], ["grubx64.efi -> grub -> k"]],
  ["several initrds", ["ipxe", "k", "i", "i"], ["ipxe -> k -> i x2"]],
  ["a system that asks long after", ["ipxe @0", "ignition @1", "metadata @30"], ["ipxe -> ignition", "metadata"]],
  ["a cut transfer", ["ipxe", "k cut"], ["ipxe -> k cut"]],
  ["nothing", [], []],
])("tells %s", (_name, requests, expected) => {
  expect(lines(requests)).toEqual(expected);
});

it("a boot goes on after a request that took longer than the gap", () => {
  const [first, second] = past(["ipxe", "ignition"]);
  if (first === undefined || second === undefined) throw new RangeError("Two requests are given");
  const slow = { ...first, durationMs: bootGapMs };
  expect(bootsOf([slow, { ...second, startedAtMs: bootGapMs + 1_000 }], plainStage)).toHaveLength(1);
});

describe("where a boot stopped", () => {
  it.each<[name: string, requests: readonly string[], expected: object]>([
    ["at what was answered last", ["ipxe", "k"], { kind: "answered", stage: "k" }],
    ["at a refusal", ["ipxe", "ignition 500"], { kind: "refused", stage: "ignition", status: 500, refusal: undefined }],
    ["in a transfer", ["ipxe", "k cut"], { kind: "cut", stage: "k", sentBytes: 40, ofBytes: 100 }],
  ])("%s", (_name, requests, expected) => {
    expect(bootsOf(past(requests), plainStage)[0]?.end).toEqual(expected);
  });
});

it("a report after a long install is of the boot that davit numbered so", () => {
  const [first, second, third] = past(["ipxe @0", "report @60", "report @120"]);
  if (first === undefined || second === undefined || third === undefined) expect.unreachable();
  const boots = bootsOf([{ ...first, boot: 7 }, { ...second, boot: 7 }, third], plainStage);
  expect(boots.map(({ line, numbers }) => [line, numbers])).toEqual([
    ["ipxe -> report", [7]],
    ["report", []],
  ]);
});

it("stages are named by the group of their boot, also before it is known", () => {
  const [boot] = bootsOf(past(["assets", "ipxe"]), ({ endpoint }, group) => `${endpoint} of ${group}`);
  expect(boot?.line).toBe("assets of lab/web -> ipxe of lab/web");
});
