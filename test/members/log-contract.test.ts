import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WalError } from "../../src/store/core/log-port.ts";
import { missing } from "../helpers/requirements.ts";
import { collecting, etcdDriver, fileDriver, type LogPlace } from "./drivers.ts";

const bytesOf = (text: string) => Buffer.from(text);

async function bytesIn(pieces: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all);
}

async function reopened(place: LogPlace) {
  const log = await place.open();
  const snapshot = await log.loadSnapshot();
  const state = snapshot && { sequence: snapshot.sequence, bytes: String(await bytesIn(snapshot.pieces)) };
  return { ...(await collecting(log)), state };
}

const drivers = missing("etcd") ? [fileDriver] : [fileDriver, etcdDriver];

describe.each(drivers)("the log in $name", (driver) => {
  beforeAll(() => driver.start());
  afterAll(() => driver.stop());

  it("keeps its cluster and its member through every start, but not its run", async () => {
    const place = driver.place();
    const first = await reopened(place);
    const { clusterId, memberId, run } = first.log.identity;
    expect(clusterId).toMatch(/^[1-9a-f][0-9a-f]{0,15}$/);
    expect(memberId).toMatch(/^[1-9a-f][0-9a-f]{0,15}$/);
    await first.log.stop();
    const second = await reopened(place);
    expect(second.log.identity).toMatchObject({ clusterId, memberId });
    expect(second.log.identity.run).not.toBe(run);
    await second.log.stop();
  });

  it("delivers a record before its proposer gets its sequence, each one once, in the order of the sequences", async () => {
    const { log, delivered } = await reopened(driver.place());
    const texts = Array.from({ length: 300 }, (_, number) => `record ${number}`);
    const sequences = await Promise.all(
      texts.map(async (text) => {
        const sequence = await log.propose(bytesOf(text));
        expect(delivered.some((line) => line.startsWith(`${sequence}:${text}:`))).toBe(true);
        return sequence;
      }),
    );
    expect(new Set(sequences).size).toBe(texts.length);
    const order = delivered.map((line) => Number(line.split(":")[0]));
    expect(order).toEqual([...sequences].sort((a, b) => a - b));
    await log.stop();
  });

  it("delivers the same records again after a start, with the same sequences and terms", async () => {
    const place = driver.place();
    const first = await reopened(place);
    for (const text of ["a", "b", "", "c".repeat(70_000)]) await first.log.propose(bytesOf(text));
    await first.log.stop();
    const second = await reopened(place);
    expect(second.delivered).toEqual(first.delivered);
    const sequence = await second.log.propose(bytesOf("d"));
    expect(sequence).toBeGreaterThan(Number(first.delivered.at(-1)?.split(":")[0]));
    await second.log.stop();
  });

  it("takes a record of 5 MiB, alone and among others", async () => {
    const place = driver.place();
    const { log, delivered } = await reopened(place);
    const large = "l".repeat(5 * 1024 * 1024);
    await Promise.all(["a", large, "b"].map((text) => log.propose(bytesOf(text))));
    expect(delivered.map((line) => line.split(":")[1]?.length).sort()).toEqual([1, 1, large.length]);
    await log.stop();
    const second = await reopened(place);
    expect(second.delivered).toEqual(delivered);
    await second.log.stop();
  });

  it("goes on behind a snapshot, and needs nothing before the one before it", async () => {
    const place = driver.place();
    const { log, delivered, leads } = await reopened(place);
    await leads;
    for (const round of [1, 2, 3]) {
      await Promise.all(["a", "b", "c"].map((text) => log.propose(bytesOf(`${text}${round}`))));
      const sequence = Number(delivered.at(-1)?.split(":")[0]);
      await log.saveSnapshot(sequence, [bytesOf(`state `), bytesOf(String(round))]);
      await log.releaseBefore(sequence);
    }
    const end = Number(delivered.at(-1)?.split(":")[0]);
    await log.propose(bytesOf("later"));
    await log.stop();
    const second = await reopened(place);
    expect(second.state).toEqual({ sequence: end, bytes: "state 3" });
    expect(second.delivered).toEqual(delivered.slice(-1));
    await second.log.stop();
  });

  it("takes a snapshot while records are written", async () => {
    const place = driver.place();
    const { log, delivered, leads } = await reopened(place);
    await leads;
    const texts = Array.from({ length: 200 }, (_, number) => `r${number}`);
    const writing = Promise.all(texts.map((text) => log.propose(bytesOf(text))));
    await log.propose(bytesOf("now"));
    const at = Number(delivered.at(-1)?.split(":")[0]);
    await log.saveSnapshot(at, [Buffer.alloc(300_000, "s")]);
    await writing;
    await log.stop();
    const second = await reopened(place);
    expect(second.state?.sequence).toBe(at);
    expect(second.delivered).toEqual(delivered.filter((line) => Number(line.split(":")[0]) > at));
    await second.log.stop();
  });

  it("has a barrier that waits for what was written", async () => {
    const { log, delivered } = await reopened(driver.place());
    const written = log.propose(bytesOf("a"));
    await written;
    await log.membership.barrier();
    expect(delivered).toHaveLength(1);
    await log.stop();
  });

  it("refuses records after its stop, and logs those before", async () => {
    const place = driver.place();
    const { log } = await reopened(place);
    const last = log.propose(bytesOf("last"));
    await log.stop();
    await expect(last).resolves.toBeGreaterThan(0);
    await expect(log.propose(bytesOf("late"))).rejects.toBeInstanceOf(WalError);
    expect(log.status).toBe("closed");
    const second = await reopened(place);
    expect(second.delivered.map((line) => line.split(":")[1])).toEqual(["last"]);
    await second.log.stop();
  });
});
