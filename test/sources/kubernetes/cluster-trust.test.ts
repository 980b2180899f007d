import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ApiServerTrust } from "../../../src/sources/kubernetes/client/cluster-trust.ts";
import { TestBed, until } from "./client-under-test.ts";
import { type JsonAnswer, startJsonServer } from "./json-server.ts";

const configMap = { namespace: "davit", name: "davit-store-ca" };
const path = "/api/v1/namespaces/davit/configmaps/davit-store-ca";
const patch = `${path}?fieldManager=davit-store&force=true`;
// Of a request.
const timeoutMs = 30_000;
const published = "authority of the store is published";
const unpublished = "cannot publish the store's authority, trying again later";

let answers: Map<string, JsonAnswer>;
let server: Awaited<ReturnType<typeof startJsonServer>>;
let bed: TestBed;
let trust: ApiServerTrust;

beforeEach(async () => {
  answers = new Map();
  server = await startJsonServer(
    (url) => answers.get(url) ?? { status: 404, body: { kind: "Status", reason: "NotFound" } },
  );
  bed = new TestBed(server.url);
  trust = new ApiServerTrust({ ...bed, configMap });
});

afterEach(async () => {
  await trust.stop();
  await bed.client.stop();
  server.close();
});

describe("the keys of a cluster's ServiceAccounts", () => {
  it("are those of its issuer discovery", async () => {
    answers.set("/.well-known/openid-configuration", { status: 200, body: { issuer: "https://i", jwks_uri: "x" } });
    answers.set("/openid/v1/jwks", { status: 200, body: { keys: [{ kty: "EC", kid: "a" }] } });
    expect(await trust.tokenKeys()).toEqual({ issuer: "https://i", keys: [{ kty: "EC", kid: "a" }] });
  });

  it.each([
    [{ keys: "none" }, "davit cannot read the API server's answer (it has no usable keys of ServiceAccounts)"],
    [{}, "davit cannot read the API server's answer (it has no usable keys of ServiceAccounts)"],
  ])("cannot be %j", async (body, message) => {
    answers.set("/.well-known/openid-configuration", { status: 200, body: { issuer: "https://i" } });
    answers.set("/openid/v1/jwks", { status: 200, body });
    await expect(trust.tokenKeys()).rejects.toThrow(message);
  });

  it("cannot be had where discovery is forbidden", async () => {
    answers.set("/.well-known/openid-configuration", { status: 403, body: { kind: "Status", reason: "Forbidden" } });
    await expect(trust.tokenKeys()).rejects.toThrow("the API server refuses (403 Forbidden)");
  });
});

describe("the store's authority", () => {
  it("is put into its ConfigMap, and into no other part of it", async () => {
    answers.set(patch, { status: 200, body: {} });
    trust.publishAuthority("PEM");
    await until(() => bed.told(published).length > 0);
    expect(server.requests).toEqual([
      {
        method: "PATCH",
        url: patch,
        body: { apiVersion: "v1", kind: "ConfigMap", metadata: configMap, data: { "ca.crt": "PEM" } },
      },
    ]);
  });

  it("is tried until it is there, and then only the last one", async () => {
    trust.publishAuthority("old");
    await until(() => bed.told(unpublished).length > 0);
    trust.publishAuthority("new");
    answers.set(patch, { status: 200, body: {} });
    await bed.clock.advance(60_000);
    await until(() => bed.told(published).length > 0);
    expect(server.requests.map(({ body }) => body)).toMatchObject([
      { data: { "ca.crt": "old" } },
      { data: { "ca.crt": "new" } },
    ]);
  });

  it("that cannot be put there is told once for each reason, and anew after it could", async () => {
    const problems = () => bed.told(unpublished).map(({ problem }) => problem);
    // When a request is answered, what sleeps is the pause after it, and no longer its time-out.
    const isPausing = () => (bed.clock.nextWakeMs ?? timeoutMs) < timeoutMs;
    const askedAgain = async (times: number) => {
      for (let count = server.requests.length + times; server.requests.length < count; await until(isPausing)) {
        await bed.clock.advance(bed.clock.nextWakeMs ?? 0);
      }
    };
    trust.publishAuthority("PEM");
    await until(isPausing);
    await askedAgain(2);
    expect(problems()).toEqual(["the API server refuses (404 NotFound)"]);
    answers.set(patch, { status: 403, body: { kind: "Status", reason: "Forbidden" } });
    await askedAgain(2);
    expect(problems().slice(1)).toEqual([
      expect.stringMatching(/^davit may not patch configmaps "[^"]+" in namespace/),
    ]);
    answers.set(patch, { status: 200, body: {} });
    await bed.clock.advance(bed.clock.nextWakeMs ?? 0);
    await until(() => bed.told(published).length === 1);
    answers.set(patch, { status: 403, body: { kind: "Status", reason: "Forbidden" } });
    trust.publishAuthority("renewed");
    await until(() => problems().length === 3);
  });
});
