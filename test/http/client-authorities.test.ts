/** A change of the authorities of clients: no connection outlives the authority that let it in. */

import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect as connectTcp, createServer as createTcpServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { bootHandler } from "../../src/http/boot/routes.ts";
import { answerError } from "../../src/http/errors.ts";
import type { Exchange, Handled } from "../../src/http/exchange.ts";
import { Guard } from "../../src/http/guard/guard.ts";
import { type StoreGuard, storeRow } from "../../src/http/guard/store-guard.ts";
import { createServer } from "../../src/http/server.ts";
import { readTlsMaterial, ServerTls, type TlsClients, TlsFiles } from "../../src/http/server-tls.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createMetrics } from "../../src/lib/metrics/metrics.ts";
import { type Authority, type Certificate, makeAuthority } from "../helpers/certificates.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { missing } from "../helpers/requirements.ts";
import { silentLog } from "../helpers/test-store.ts";

const folder = mkdtempSync(join(tmpdir(), "davit-authorities-"));
afterAll(() => rmSync(folder, { recursive: true }));

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

describe.skipIf(missing("openssl"))("clients whose authority is no longer one", () => {
  let [authority, old, next]: readonly Authority[] = [];
  let [server, client]: readonly Certificate[] = [];
  beforeAll(() => {
    [authority, old, next] = ["authority", "old", "next"].map((name) => makeAuthority(folder, name));
    server = authority?.issue("server");
    client = old?.issue("client");
  });

  const materialOf = (by: Authority | undefined) =>
    readTlsMaterial([server?.cert ?? "", server?.key ?? "", by?.cert ?? ""]);

  /** A server that answers whether it has verified the client. */
  async function serve(clients: TlsClients) {
    const tls = new ServerTls(materialOf(old), clients);
    const answer = ({ request }: { readonly request: { readonly socket: Socket } }) => ({
      status: 200,
      headers: [],
      body: `verified: ${Reflect.get(request.socket, "authorized")}`,
    });
    const handler = { begin: () => undefined, handle: answer };
    const listener = createServer({ log: silentLog, clock: systemClock, answerError, tls, handler });
    ends.push(() => listener.close());
    const { port } = await listener.listen({ host: "127.0.0.1", port: 0, option: "--boot-tls-address" });
    return { tls, port };
  }

  function open(port: number, more: object = { cert: client?.cert, key: client?.key }): TLSSocket {
    const socket = connect({ host: "127.0.0.1", port, ca: authority?.cert ?? "", ...more });
    ends.push(() => socket.destroy());
    return socket.on("error", () => undefined);
  }

  /** Asks on a connection. @returns the answer's body; `closed` if it is closed instead. */
  async function ask(socket: TLSSocket): Promise<string> {
    const closed = once(socket, "close").then(() => "closed");
    socket.write("GET / HTTP/1.1\r\nHost: davit\r\n\r\n");
    const answer = await Promise.race([once(socket, "data").then(String), closed]);
    return answer.slice(answer.lastIndexOf("\n") + 1);
  }

  it.each(["machines", "programs"] as const)("lose their connections: %s", async (clients) => {
    const { tls, port } = await serve(clients);
    const socket = open(port);
    expect(await ask(socket)).toBe("verified: true");
    const closed = once(socket, "close");
    tls.renew(materialOf(next));
    expect(await ask(socket)).toBe("closed");
    await closed;
  });

  it.each(["TLSv1.2", "TLSv1.3"] as const)("resume no session of before: %s", async (maxVersion) => {
    const { tls, port } = await serve("machines");
    const first = open(port, { cert: client?.cert, key: client?.key, maxVersion });
    const resumable = once(first, "session");
    expect(await ask(first)).toBe("verified: true");
    const [session] = await resumable;
    const resumed = open(port, { session, maxVersion });
    expect(await ask(resumed)).toBe("verified: true");
    expect(resumed.isSessionReused()).toBe(true);
    tls.renew(materialOf(next));
    const again = open(port, { session, maxVersion });
    expect(await ask(again)).toBe("verified: false");
    expect(again.isSessionReused()).toBe(false);
  });

  it("end no handshake that began before", async () => {
    const { tls, port } = await serve("machines");
    const held: Buffer[] = [];
    const holding = Promise.withResolvers<void>();
    let release = () => {};
    // Passes on the first flight of the client, and keeps the second one, which has its certificate.
    const between = createTcpServer((near) => {
      const far = connectTcp(port, "127.0.0.1").on("error", () => near.destroy());
      ends.push(() => far.destroy());
      near.on("error", () => far.destroy());
      far.pipe(near);
      near.once("data", (hello) => {
        far.write(hello);
        near.on("data", (flight) => {
          held.push(flight);
          holding.resolve();
        });
      });
      release = () => void far.write(Buffer.concat(held));
    });
    between.listen(0, "127.0.0.1");
    ends.push(() => between.close());
    await once(between, "listening");
    // The client has finished its handshake, and the server has not.
    const { port: there = 0 } = Object(between.address());
    const socket = open(there);
    const answered = ask(socket);
    await holding.promise;
    tls.renew(materialOf(next));
    release();
    expect(await answered).toBe("closed");
  });

  it("leave the others alone: those without a certificate, and all if only davit's certificate changes", async () => {
    const { tls, port } = await serve("machines");
    const [bare, verified] = [open(port, {}), open(port)];
    expect(await ask(bare)).toBe("verified: false");
    expect(await ask(verified)).toBe("verified: true");
    tls.renew(materialOf(old));
    expect(await ask(verified)).toBe("verified: true");
    tls.renew(materialOf(next));
    expect(await ask(bare)).toBe("verified: false");
  });

  describe.each(["TLSv1.2", "TLSv1.3"] as const)("get nothing once their certificate has expired: %s", (maxVersion) => {
    let clock: FakeClock;
    beforeEach(() => {
      clock = new FakeClock(Date.now());
    });

    /** Asks before and after the certificate expires, on one connection and on one with the resumed session. */
    async function askAgain(port: number, path: string): Promise<readonly string[]> {
      const given = { cert: client?.cert, key: client?.key, maxVersion };
      const statusOf = async (socket: TLSSocket) => {
        socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
        return String((await once(socket, "data"))[0]).slice(9, 12);
      };
      const first = open(port, given);
      const resumable = once(first, "session");
      const before = await statusOf(first);
      const [session] = await resumable;
      const resumed = open(port, { ...given, session });
      const statuses = [before, await statusOf(resumed)];
      expect(resumed.isSessionReused()).toBe(true);
      // A certificate expires by the wall clock.
      clock.stepWallClock(3 * 24 * 3_600_000);
      const again = open(port, { ...given, session });
      return [...statuses, ...(await Promise.all([first, resumed, again].map(statusOf)))];
    }

    it("from the listener for machines", async () => {
      const rendered = { body: "config", contentType: "text/plain", isShared: true } as const;
      const render = () => ({ rendered, group: "lab/all", profile: "lab/web", scriptSha256: undefined });
      const handler = bootHandler({ configs: { render }, transport: "https", asksForCertificate: true, clock });
      const tls = new ServerTls(materialOf(old), "machines");
      const listener = createServer({ log: silentLog, clock: systemClock, answerError, tls, handler });
      ends.push(() => listener.close());
      const { port } = await listener.listen({ host: "127.0.0.1", port: 0, option: "--boot-tls-address" });
      expect(await askAgain(port, "/generic?mac=52-54-00-00-00-01")).toEqual(["200", "200", "403", "403", "403"]);
    });

    /** A listener of the store whose requests the guard judges. @returns its port. */
    async function serveStore(handleBy: (guard: StoreGuard) => (exchange: Exchange) => Handled): Promise<number> {
      const files = { certFile: server?.certFile, keyFile: server?.keyFile, clientCaFile: old?.certFile };
      const around = { clock, log: silentLog };
      const guard = await Guard.open(storeRow({ ...files, ...around, metrics: createMetrics("test") }), around);
      const { certFile = "", keyFile = "", clientCaFile } = files;
      const paths = { certFile, keyFile, clientCaFile };
      const opened = await TlsFiles.open({ ...paths, clients: "programs", accept: () => undefined, ...around });
      ends.push(
        () => guard.stop(),
        () => opened.stop(),
      );
      const handler = { begin: () => undefined, handle: handleBy(guard) };
      const listener = createServer({ log: silentLog, clock: systemClock, answerError, tls: opened.tls, handler });
      ends.push(() => listener.close());
      const { port } = await listener.listen({ host: "127.0.0.1", port: 0, option: "--store-address" });
      return port;
    }

    it("from the store's listener", async () => {
      const port = await serveStore((guard) => async ({ request }) => {
        const refusal = await guard.refusalOf(request, "read");
        return { status: refusal === undefined ? 200 : 401, headers: [], body: "keys" };
      });
      expect(await askAgain(port, "/v2/keys/")).toEqual(["200", "200", "401", "401", "401"]);
    });

    it("nor by a watch of the store that is open", async () => {
      const port = await serveStore((guard) => ({ request, response }) => {
        guard.follow(request, response);
        response.writeHead(200).write("watching");
        return undefined;
      });
      const watch = open(port, { cert: client?.cert, key: client?.key, maxVersion });
      const closed = once(watch, "close");
      watch.on("error", () => undefined).write("GET /v2/keys/?wait=true HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
      await once(watch, "data");
      watch.resume();
      await clock.advance(1_000);
      expect(watch.destroyed).toBe(false);
      clock.stepWallClock(3 * 24 * 3_600_000);
      await clock.advance(1_000);
      await closed;
    });
  });
});
