/** The mark of the ledger in its ConfigMap: it never goes back, and two ledgers never share it unseen. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ConfigMapMark } from "../../../src/sources/kubernetes/ledger-mark.ts";
import { TestBed, until } from "./client-under-test.ts";
import { ObjectServer } from "./object-server.ts";

const path = "/api/v1/namespaces/davit/configmaps/davit-ledger";

let server: ObjectServer;
let bed: TestBed;
let mark: ConfigMapMark;

beforeEach(async () => {
  server = await ObjectServer.start();
  bed = new TestBed(server.url);
  mark = markOf();
});

afterEach(async () => {
  mark.stop();
  await bed.client.stop();
  server.close();
});

function markOf(name = "davit-ledger"): ConfigMapMark {
  return new ConfigMapMark({ client: bed.client, clock: bed.clock, namespace: "davit", name });
}

const data = () => server.objects.get(path)?.data;
const methods = () => server.requests.map(({ method }) => method);

describe("reading", () => {
  it("finds the mark, and none in an empty ConfigMap or without one", async () => {
    expect(await mark.read()).toBeUndefined();
    server.put(path, {});
    expect(await mark.read()).toBeUndefined();
    server.put(path, { data: { id: "9f3c0a52", index: "17" } });
    expect(await mark.read()).toEqual({ id: "9f3c0a52", index: 17 });
  });

  it.each([
    { id: "9f3c0a52" },
    { index: "17" },
    { id: "9F3C0A52", index: "17" },
    { id: "9f3c0a5", index: "17" },
    { id: "9f3c0a52", index: "" },
    { id: "9f3c0a52", index: "-1" },
    { id: "9f3c0a52", index: "1e3" },
    { id: "9f3c0a52", index: "99999999999999999999" },
  ])("does not take %j for no mark", async (found) => {
    server.put(path, { data: found });
    await expect(mark.read()).rejects.toThrow("ConfigMap davit-ledger has no mark that davit can read");
    await expect(mark.write("9f3c0a52", 18)).rejects.toThrow("has no mark that davit can read");
    expect(data()).toEqual(found);
  });

  it("does not take a failure for no mark", async () => {
    server.before = () => ({ status: 403, body: { kind: "Status", reason: "Forbidden" } });
    await expect(mark.read()).rejects.toThrow('davit may not get configmaps "davit-ledger"');
    server.before = () => ({ status: 500, body: {} });
    await expect(mark.read()).rejects.toThrow("the API server refuses (500)");
  });
});

describe("writing", () => {
  it("fills the chart's empty ConfigMap, and leaves the rest of it alone", async () => {
    server.put(path, { metadata: { labels: { chart: "davit" } } });
    await mark.write("9f3c0a52", 3);
    expect(server.objects.get(path)).toMatchObject({
      metadata: { labels: { chart: "davit" } },
      data: { id: "9f3c0a52", index: "3" },
    });
  });

  it("creates the ConfigMap where there is none, also when it was removed meanwhile", async () => {
    await mark.write("9f3c0a52", 3);
    expect(data()).toEqual({ id: "9f3c0a52", index: "3" });
    server.objects.delete(path);
    await mark.write("9f3c0a52", 4);
    expect(data()).toEqual({ id: "9f3c0a52", index: "4" });
  });

  it("needs one request for each mark once it knows the version", async () => {
    server.put(path, {});
    await mark.read();
    await mark.write("9f3c0a52", 3);
    await mark.write("9f3c0a52", 4);
    await mark.write("9f3c0a52", 4);
    expect(methods()).toEqual(["GET", "PATCH", "PATCH"]);
    expect(server.requests.at(-1)).toMatchObject({
      query: "?fieldManager=davit-ledger",
      contentType: "application/merge-patch+json",
    });
  });

  it("keeps a higher index of another member", async () => {
    await mark.write("9f3c0a52", 3);
    server.put(path, { data: { id: "9f3c0a52", index: "9" } });
    await mark.write("9f3c0a52", 5);
    expect(data()).toEqual({ id: "9f3c0a52", index: "9" });
    await mark.write("9f3c0a52", 10);
    expect(data()).toEqual({ id: "9f3c0a52", index: "10" });
  });

  it("of two members at once ends at the higher index, whoever was first", async () => {
    const other = markOf();
    await mark.write("9f3c0a52", 1);
    await other.write("9f3c0a52", 2);
    await Promise.all([3, 5, 7].map((index) => mark.write("9f3c0a52", index)).concat(other.write("9f3c0a52", 8)));
    expect(data()).toEqual({ id: "9f3c0a52", index: "8" });
    other.stop();
  });

  it("a new ledger replaces the mark of the former one, also a higher one", async () => {
    server.put(path, { data: { id: "00000001", index: "900" } });
    await mark.read();
    await mark.write("9f3c0a52", 3);
    expect(data()).toEqual({ id: "9f3c0a52", index: "3" });
  });

  it("a former ledger never gets its place back from a new one", async () => {
    await mark.write("00000001", 3);
    const ofNew = markOf();
    await ofNew.write("9f3c0a52", 1);
    await expect(mark.write("00000001", 4)).rejects.toThrow("has the mark of another ledger");
    await expect(mark.write("00000001", 5)).rejects.toThrow("has the mark of another ledger");
    expect(data()).toEqual({ id: "9f3c0a52", index: "1" });
    ofNew.stop();
  });

  it("of two releases in one namespace leaves each other's mark alone", async () => {
    const other = markOf("spare-ledger");
    await mark.write("00000001", 3);
    await other.write("9f3c0a52", 1);
    await mark.write("00000001", 4);
    expect(data()).toEqual({ id: "00000001", index: "4" });
    expect(await other.read()).toEqual({ id: "9f3c0a52", index: 1 });
    other.stop();
  });

  it("gives up after a few conflicts, and reports other refusals", async () => {
    server.put(path, {});
    server.before = ({ method }) =>
      method === "PATCH" ? { status: 409, body: { kind: "Status", reason: "Conflict" } } : undefined;
    await expect(mark.write("9f3c0a52", 3)).rejects.toThrow("the API server refuses (409 Conflict)");
    server.before = ({ method }) =>
      method === "PATCH" ? { status: 403, body: { kind: "Status", reason: "Forbidden" } } : undefined;
    await expect(mark.write("9f3c0a52", 3)).rejects.toThrow('davit may not patch configmaps "davit-ledger"');
    server.before = () => undefined;
    await mark.write("9f3c0a52", 3);
    expect(data()).toEqual({ id: "9f3c0a52", index: "3" });
  });

  it("ends after five seconds without an answer, and when it stops", async () => {
    const hanging = new TestBed("http://127.0.0.1:9");
    const json = () => new Promise<never>(() => {});
    const late = new ConfigMapMark({
      client: { json: ({ signal }) => raced(json(), signal) },
      clock: hanging.clock,
      namespace: "davit",
      name: "davit-ledger",
    });
    const first = late.write("9f3c0a52", 3).catch(String);
    await until(() => hanging.clock.sleeping > 0);
    await hanging.clock.advance(5_000);
    expect(await first).toBe("Error: aborted");
    const second = late.read().catch(String);
    late.stop();
    expect(await second).toBe("Error: aborted");
    await hanging.client.stop();
  });
});

async function raced(work: Promise<never>, signal: AbortSignal): Promise<never> {
  const aborted = new Promise<never>((_resolve, reject) => {
    const abort = () => reject(new Error("aborted"));
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
  });
  return await Promise.race([work, aborted]);
}
