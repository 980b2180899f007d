import { afterEach, describe, expect, it } from "vitest";
import { NearMisses } from "../../src/boot/explaining/near-misses.ts";
import { BootIndex } from "../../src/boot/selection/boot-index.ts";
import { nextTurn } from "../../src/lib/slices.ts";
import { labelsFromQuery } from "../../src/model/labels/labels.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { silentLog } from "../helpers/test-store.ts";
import { groupDocument, syncedDocument } from "./feed-documents.ts";

const web = groupDocument("lab/web", { selector: { zone: "a" } });
const own = groupDocument("lab/own", {
  selector: { mac: "52:54:00:00:00:01", a: "1", b: "1", c: "1", d: "1", e: "1" },
});

let nearMisses: NearMisses | undefined;

afterEach(() => {
  nearMisses?.stop();
});

function start(documents: Parameters<BootIndex["replaced"]>[0]) {
  const index = new BootIndex({ log: silentLog });
  index.replaced([...documents, syncedDocument()]);
  const lines: string[] = [];
  const clock = new FakeClock();
  const log = { info: (data: object, message: string) => lines.push(`${message} ${JSON.stringify(data)}`) };
  const started = new NearMisses({ index, clock, log });
  nearMisses = started;
  const tell = async (query: string) => {
    started.report(labelsFromQuery(query));
    await settle();
  };
  return { tell, nearMisses: started, clock, lines };
}

/** Until all is done that waits for no time to pass. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await nextTurn();
}

describe("a machine that no Group matches", () => {
  it.each([
    {
      name: "is told with what the nearest Group wants",
      documents: [web],
      query: "mac=52-54-00-00-00-02&zone=b",
      line: 'no matching group {"mac":"52:54:00:00:00:02","nearest":"lab/web: wants zone=a, request has zone=b"}',
    },
    {
      name: "is told with a few of many wants",
      documents: [web, own],
      query: "mac=525400000001",
      line:
        'no matching group {"mac":"52:54:00:00:00:01","nearest":"lab/own: wants a=1, request has no a; ' +
        'wants b=1, request has no b; wants c=1, request has no c; wants d=1, request has no d; and 1 more"}',
    },
    {
      name: "is told where there is no Group at all",
      documents: [],
      query: "uuid=A1B2C3D4-0000-4000-8000-00000000ABCD&domain=&serial=s%201",
      line: 'no matching group {"uuid":"a1b2c3d4-0000-4000-8000-00000000abcd","serial":"s 1","nearest":"none"}',
    },
    {
      name: "is not told with labels of its own, nor with more of a value than a line has room for",
      documents: [web],
      query: `password=hunter2&hostname=${"x".repeat(500)}%0a`,
      line: `no matching group {"hostname":"${"x".repeat(128)}...","nearest":"lab/web: wants zone=a, request has no zone"}`,
    },
  ])("$name", async ({ documents, query, line }) => {
    const { tell, lines } = start(documents);
    await tell(query);
    expect(lines).toEqual([line]);
  });

  it("is told once a minute, in whatever order it says its labels", async () => {
    const { tell, clock, lines } = start([web]);
    await tell("zone=b&rack=1");
    await clock.advance(1_000);
    await tell("zone=b&rack=1");
    await tell("rack=1&zone=b");
    await clock.advance(58_999);
    await settle();
    expect(lines).toHaveLength(1);
    await clock.advance(1);
    await tell("zone=b&rack=1");
    expect(lines).toHaveLength(2);
  });

  it("is told after its answer", async () => {
    const { nearMisses: misses, lines } = start([web]);
    misses.report(labelsFromQuery("zone=b"));
    expect(lines).toEqual([]);
    await settle();
    expect(lines).toHaveLength(1);
  });
});

it("of a storm some are told, ten a second at most, and the others when they ask again", async () => {
  const { tell, nearMisses: misses, clock, lines } = start([web]);
  for (let at = 0; at < 10_000; at++) misses.report(labelsFromQuery(`serial=${at}`));
  await settle();
  expect(lines).toHaveLength(1);
  for (let round = 0; round < 50; round++) {
    await clock.advance(100);
    await settle();
  }
  expect(lines).toHaveLength(16);
  await tell("serial=9999");
  expect(lines).toHaveLength(17);
});

it("a look that takes long is followed by a rest fifty times as long", async () => {
  let nowMs = 0;
  const slept: number[] = [];
  const clock = {
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    sleep: async (durationMs: number) => {
      slept.push(durationMs);
    },
  };
  const log = {
    info: () => {
      nowMs += 40;
    },
  };
  nearMisses = new NearMisses({ index: { groups: new Map() }, clock, log });
  nearMisses.report(labelsFromQuery("serial=1"));
  await settle();
  expect(slept).toEqual([2_000]);
});

it("nothing is told after a stop", async () => {
  const { tell, nearMisses: misses, clock, lines } = start([web]);
  await tell("serial=1");
  misses.report(labelsFromQuery("serial=2"));
  misses.stop();
  await tell("serial=3");
  await clock.advance(60_000);
  await settle();
  expect([lines.length, clock.sleeping]).toEqual([1, 0]);
});
