/** A follower whose store is of a later davit: tombstones that it cannot read keep every Install waiting. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { StoreFollower } from "../../src/follow/follow.ts";
import { type Clock, systemClock } from "../../src/lib/clock.ts";
import type { FollowLine } from "../../src/model/follow-line.ts";
import { encodeDocument, selectorPlace, tombstonePath } from "../../src/model/objects/documents.ts";
import { groupDocument, profileDocument, syncedDocument } from "../boot/feed-documents.ts";
import { openIndex, refusal } from "../boot/open-index.ts";
import { silentLog } from "../helpers/test-store.ts";
import { FakeStore, type FollowerConnection } from "./fake-store.ts";

const serial = "SN-1";
const query = `serial=${serial}&role=web`;
const later = '{"version":2}';

const wipe = profileDocument("lab/wipe", { effect: "Install" });
const install = groupDocument("lab/any", { profile: "wipe", matchAll: true });
const objects = [wipe, profileDocument("lab/web"), install, syncedDocument()];

const index = openIndex([]);
/** Waits between connections pass at once; the silence after which one ends does not. */
const clock: Clock = {
  ...systemClock,
  sleep: (durationMs, signal) => systemClock.sleep(durationMs >= 5_000 ? durationMs : 0, signal),
};
let store: FakeStore;
let follower: StoreFollower;
let connection: FollowerConnection;

beforeEach(async () => {
  store = await FakeStore.start();
  const shared = { clock, random: () => 0, log: silentLog };
  follower = new StoreFollower({ urls: [store.url], credentials: async () => ({}), ...shared });
  follower.follow("/davit", index);
  await follower.start();
  connection = await store.next();
});

afterEach(async () => {
  await follower.stop();
  await store.stop();
});

type Written = readonly [path: string, text: string];

function put([path, text]: Written): FollowLine {
  return { kind: "put", path, text };
}

/** Ends the connection, sends everything over the next one, and waits until the follower has it. */
async function dump(at: number, ...more: readonly Written[]): Promise<void> {
  connection.response.destroy();
  connection = await store.next();
  const documents = [...objects, ...more].map(put);
  connection.say({ kind: "dump", cluster: "c" }, ...documents, { kind: "commit", index: at });
  await expect.poll(() => follower.status.index).toBe(at);
}

describe.each([
  { gone: "a Group that named the machine", path: tombstonePath("serial", serial), labels: { serial } },
  {
    gone: "a Group that named no machine",
    path: tombstonePath(selectorPlace, "0".repeat(64)),
    labels: { role: "web" },
  },
])("an Install over the tombstone of $gone", ({ path, labels }) => {
  const readable = encodeDocument({ labels: [labels], ranks: [{ namespace: "lab", priority: 9, outcome: "x" }] });

  it("waits if the follower could never read it", async () => {
    await dump(1, [path, later]);
    expect(refusal(index, query)).toMatch(/^(bereft|doubtful)$/);
    await dump(2);
    expect(refusal(index, query)).toBeUndefined();
  });

  it("waits if a later dump has it in another form", async () => {
    await dump(1, [path, readable]);
    expect(refusal(index, query)).toBe("bereft");
    await dump(2, [path, later]);
    expect(refusal(index, query)).toMatch(/^(bereft|doubtful)$/);
    await dump(3, [path, later]);
    expect(refusal(index, query)).toMatch(/^(bereft|doubtful)$/);
  });

  it("waits if a later change has it in another form, until it ends", async () => {
    await dump(1, [path, readable]);
    connection.say(put([path, later]), { kind: "commit", index: 2 });
    await expect.poll(() => follower.status.index).toBe(2);
    expect(refusal(index, query)).toMatch(/^(bereft|doubtful)$/);
    connection.say({ kind: "delete", path }, { kind: "commit", index: 3 });
    await expect.poll(() => follower.status.index).toBe(3);
    expect(refusal(index, query)).toBeUndefined();
  });
});
