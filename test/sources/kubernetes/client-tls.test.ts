import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { ApiError } from "../../../src/sources/kubernetes/client/api-error.ts";
import { ApiClient } from "../../../src/sources/kubernetes/client/client.ts";
import { type Authority, type Certificate, makeAuthority } from "../../helpers/certificates.ts";
import { missing } from "../../helpers/requirements.ts";
import { TestBed } from "./client-under-test.ts";

describe.skipIf(missing("openssl"))("a server's certificate that changes", () => {
  const disposals: (() => Promise<unknown>)[] = [];
  let folder: string;
  let before: Authority;
  let after: Authority;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "davit-client-tls-"));
    before = makeAuthority(folder, "before");
    after = makeAuthority(folder, "after");
  });
  afterAll(() => rm(folder, { recursive: true }));
  afterEach(async () => {
    for (const dispose of disposals.splice(0).toReversed()) await dispose();
  });

  async function serve(certificate: Certificate): Promise<Server> {
    const server = createServer({ key: certificate.key, cert: certificate.cert }, (_, response) => response.end("{}"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    disposals.push(async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    });
    return server;
  }

  /** A client that trusts one authority, and after a renewal the other. */
  function clientOf(server: Server, renewed: Authority) {
    const { port } = server.address() as AddressInfo;
    const bed = new TestBed("http://unused");
    let trusted = before;
    let renewals = 0;
    const access = {
      server: `https://127.0.0.1:${port}`,
      namespace: "default",
      credentials: () => Promise.resolve({ headers: {}, tls: { ca: trusted.cert } }),
      renew: () => {
        renewals += 1;
        trusted = renewed;
      },
    };
    const client = new ApiClient({ ...bed, access, version: "1.2.3", limits: {} });
    disposals.push(() => client.stop());
    const ask = () => client.json({ path: "/version", signal: AbortSignal.timeout(10_000), retries: 0 });
    return { ask, renewals: () => renewals };
  }

  it("is trusted by what the credentials say after they are read anew, over new connections", async () => {
    const server = await serve(before.issue("first"));
    const { ask, renewals } = clientOf(server, after);
    await ask();
    server.setSecureContext(after.issue("second"));
    server.closeAllConnections();
    await expect(ask()).rejects.toThrow(ApiError);
    expect(renewals()).toBe(1);
    await expect(ask()).resolves.toEqual({});
    expect(renewals()).toBe(1);
  });

  it.each([
    { name: "of another authority", make: () => after.issue("other"), code: "UNABLE_TO_VERIFY_LEAF_SIGNATURE" },
    { name: "that has expired", make: () => before.issue("old", { isExpired: true }), code: "CERT_HAS_EXPIRED" },
  ])("to one $name is told by its code, and never trusted", async ({ make, code }) => {
    const server = await serve(make());
    const { ask, renewals } = clientOf(server, before);
    for (let attempt = 1; attempt <= 2; attempt++) {
      await expect(ask()).rejects.toThrow(`the API server's certificate is not trusted (${code})`);
      expect(renewals()).toBe(attempt);
    }
  });
});
