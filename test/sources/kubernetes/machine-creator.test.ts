/** Machines that davit creates for unknown machines, and removes again if nobody has touched them. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { JsonObject } from "../../../src/model/json.ts";
import { MachineCreator } from "../../../src/sources/kubernetes/machine-creator.ts";
import { TestBed } from "./client-under-test.ts";
import { ObjectServer } from "./object-server.ts";

const place = { namespace: "racks", name: "mac-525400a19cae" };
const path = "/apis/davit.dev/v1alpha1/namespaces/racks/machines/mac-525400a19cae";
const identity = { macs: ["52:54:00:a1:9c:ae"] };

let server: ObjectServer;
let bed: TestBed;
let creator: MachineCreator;

beforeEach(async () => {
  server = await ObjectServer.start();
  bed = new TestBed(server.url);
  creator = new MachineCreator({ client: bed.client });
});

afterEach(async () => {
  creator.stop();
  await bed.client.stop();
  server.close();
});

describe("creating", () => {
  it("makes a pending Machine that approves and grants nothing", async () => {
    expect(await creator.create({ ...place, identity })).toBe("created");
    expect(server.requests[0]).toEqual({
      method: "POST",
      path: "/apis/davit.dev/v1alpha1/namespaces/racks/machines",
      query: "?fieldManager=davit-enrolment",
      contentType: "application/json",
      body: {
        apiVersion: "davit.dev/v1alpha1",
        kind: "Machine",
        metadata: { ...place, labels: { "davit.dev/pending": "true" } },
        spec: { identity },
      },
    });
  });

  it("leaves a Machine of the same name as it is", async () => {
    server.put(path, { spec: { identity, approved: true } });
    expect(await creator.create({ ...place, identity })).toBe("exists");
    expect(server.objects.get(path)).toMatchObject({ spec: { approved: true } });
  });

  it.each([
    [403, "Forbidden", "davit may not create machines.davit.dev"],
    [404, "NotFound", "the API server refuses (404 NotFound)"],
    [422, "Invalid", "the API server refuses (422 Invalid)"],
  ])("reports %i, and sends the request once", async (status, reason, message) => {
    server.before = () => ({ status, body: { kind: "Status", reason } });
    await expect(creator.create({ ...place, identity })).rejects.toThrow(message);
    expect(server.requests).toHaveLength(1);
  });
});

describe("deleting", () => {
  const labels = { "davit.dev/pending": "true" };

  it("removes a Machine that nobody has touched, whatever davit wrote into its status", async () => {
    await creator.create({ ...place, identity });
    const made = server.objects.get(path) ?? {};
    server.put(path, { ...made, status: { phase: "Waiting" } });
    expect(await creator.deleteUntouched(place)).toBe("deleted");
    expect(server.objects.has(path)).toBe(false);
    expect(await creator.deleteUntouched(place)).toBe("gone");
  });

  it.each<[string, JsonObject]>([
    ["a changed spec", { generation: 2, labels }],
    ["another label", { labels: { ...labels, rack: "7" } }],
    ["no label", { labels: {} }],
    ["a label with another value", { labels: { "davit.dev/pending": "no" } }],
    ["an annotation", { labels, annotations: { note: "keep" } }],
    ["an owner", { labels, ownerReferences: [{ kind: "Rack" }] }],
    ["a finalizer", { labels, finalizers: ["example/x"] }],
  ])("keeps a Machine with %s", async (_name, metadata) => {
    server.put(path, { metadata, spec: { identity } });
    expect(await creator.deleteUntouched(place)).toBe("touched");
    expect(server.objects.has(path)).toBe(true);
  });

  it("keeps a Machine that somebody touches in between, or replaces by another one", async () => {
    await creator.create({ ...place, identity });
    server.before = ({ method }) => {
      if (method === "DELETE") server.put(path, { metadata: { generation: 2, labels }, spec: { approved: true } });
      return undefined;
    };
    expect(await creator.deleteUntouched(place)).toBe("touched");
    expect(server.objects.get(path)).toMatchObject({ spec: { approved: true } });
  });

  it("reports a refusal", async () => {
    await creator.create({ ...place, identity });
    server.before = ({ method }) =>
      method === "DELETE" ? { status: 403, body: { kind: "Status", reason: "Forbidden" } } : undefined;
    await expect(creator.deleteUntouched(place)).rejects.toThrow("davit may not delete machines.davit.dev");
  });
});
