import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ReadStoreOptions, readStore } from "../../src/follow/store-request.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { backupPath } from "../../src/model/follow-line.ts";
import { FakeStore } from "./fake-store.ts";

let store: FakeStore;

beforeEach(async () => {
  store = await FakeStore.start();
});

afterEach(async () => {
  await store.stop();
});

/** Everything that comes, as text. */
async function fetchAll(options: Partial<ReadStoreOptions> = {}): Promise<string> {
  let text = "";
  const { signal } = new AbortController();
  const preset = { target: new URL(backupPath, store.url), credentials: {}, clock: systemClock, silenceMs: 60_000 };
  for await (const piece of readStore({ ...preset, signal, ...options })) text += piece.toString();
  return text;
}

it("a backup is asked for with the token, and handed on as it comes", async () => {
  const fetching = fetchAll({ credentials: { token: "the-token-0123456789" } });
  const { target, authorization, response } = await store.next();
  expect([target, authorization]).toEqual(["/davit/v1/backup", "Bearer the-token-0123456789"]);
  response.write("first, ");
  response.end("last");
  expect(await fetching).toBe("first, last");
});

describe("a fetch ends with a reason", () => {
  it.each([301, 401, 403, 503])("when the store answers %i", async (status) => {
    const fetching = fetchAll();
    const refused = expect(fetching).rejects.toMatchObject({ reason: "refused", detail: `status ${status}` });
    (await store.next()).response.writeHead(status, { location: "http://127.0.0.1:1/" }).end("no");
    await refused;
  });

  it("when nobody listens", async () => {
    const target = new URL("http://127.0.0.1:1");
    await expect(fetchAll({ target })).rejects.toMatchObject({ reason: "unreachable", detail: "ECONNREFUSED" });
  });

  it("when the connection is cut within the answer", async () => {
    const cut = expect(fetchAll()).rejects.toMatchObject({ reason: "ended" });
    const { response } = await store.next();
    response.write("a part", () => response.destroy());
    await cut;
  });

  it.each([
    { name: "before the answer", say: () => undefined },
    { name: "within it", say: (text: (part: string) => void) => text("a part") },
  ])("when the store falls silent $name", async ({ say }) => {
    const silent = expect(fetchAll({ silenceMs: 100 })).rejects.toMatchObject({ reason: "silent" });
    const { response } = await store.next();
    say((part) => response.write(part));
    await silent;
  });

  it("when it is stopped", async () => {
    const stop = new AbortController();
    const stopped = expect(fetchAll({ signal: stop.signal })).rejects.toMatchObject({ reason: "ended" });
    (await store.next()).response.write("a part");
    stop.abort();
    await stopped;
    await expect(fetchAll({ signal: stop.signal })).rejects.toMatchObject({ reason: "ended" });
  });
});
