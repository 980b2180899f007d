/** The store's listener as its clients meet it: over real sockets, with real certificates. */

import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { Agent, request } from "node:https";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { StoreService } from "../../../src/app/store/store-service.ts";
import { answerError } from "../../../src/http/errors.ts";
import { createServer } from "../../../src/http/server.ts";
import { readTlsMaterial, ServerTls } from "../../../src/http/server-tls.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { codeOf } from "../../../src/lib/errors.ts";
import { StartError } from "../../../src/lib/start-error.ts";
import { storePath } from "../../../src/store/core/node.ts";
import type { Store } from "../../../src/store/store.ts";
import { type Authority, type Certificate, makeAuthority } from "../../helpers/certificates.ts";
import { missing } from "../../helpers/requirements.ts";
import { openStore, silentLog } from "../../helpers/test-store.ts";
import { handlerOf } from "../handler-of.ts";
import { listenForKeys } from "../listen-for-keys.ts";
import { readToEnd } from "../wire.ts";

const token = "first-token-0123456789";
const otherToken = "other-token-0123456789";
const soon = { timeout: 10_000 };

let folder: string;
let store: Store;
let service: StoreService | undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-door-"));
  store = await openStore();
});

afterEach(async () => {
  await service?.stop();
  service = undefined;
  await store.stop();
  await rm(folder, { recursive: true });
});

/** Starts the listener with these options; gives its port. Warnings and errors go to `said`. */
async function start(options: readonly string[], said: string[] = []): Promise<number> {
  const started = await listenForKeys(store, ["--data-dir", folder, ...options], said);
  service = started.service;
  return started.port;
}

/** Writes a file of tokens as a whole, as an operator should. */
async function writeTokens(...lines: readonly string[]): Promise<string> {
  const path = join(folder, "tokens");
  await writeFile(`${path}.next`, lines.map((line) => `${line}\n`).join(""), { mode: 0o600 });
  await rename(`${path}.next`, path);
  return path;
}

function basic(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;
}

describe("a store with tokens", () => {
  async function ask(port: number, authorization?: string, path = "/v2/keys/", init: RequestInit = {}) {
    const headers = authorization === undefined ? {} : { authorization };
    return await fetch(`http://127.0.0.1:${port}${path}`, { ...init, headers });
  }

  it.each([
    { name: "the token as Bearer", authorization: `Bearer ${token}`, status: 200 },
    { name: "any of the tokens", authorization: `Bearer ${otherToken}`, status: 200 },
    { name: "the scheme in any case", authorization: `bEARER ${token}`, status: 200 },
    { name: "the token as the password of Basic", authorization: basic("root", token), status: 200 },
    { name: "Basic without a user", authorization: basic("", token), status: 200 },
    { name: "nothing", authorization: undefined, status: 401 },
    { name: "a wrong token", authorization: `Bearer ${token}x`, status: 401 },
    { name: "the beginning of a token", authorization: `Bearer ${token.slice(0, -1)}`, status: 401 },
    { name: "the token as the user of Basic", authorization: basic(token, ""), status: 401 },
    { name: "Basic without a colon", authorization: `Basic ${Buffer.from(token).toString("base64")}`, status: 401 },
    { name: "the token without a scheme", authorization: token, status: 401 },
    { name: "the token under another scheme", authorization: `Digest ${token}`, status: 401 },
    { name: "two tokens", authorization: `Bearer ${token} ${otherToken}`, status: 401 },
    { name: "a comment of the file", authorization: "Bearer #comment-of-the-file", status: 401 },
  ])("answers $status to $name", async ({ authorization, status }) => {
    const port = await start(["--store-token-file", await writeTokens("#comment-of-the-file", token, otherToken)]);
    expect((await ask(port, authorization)).status).toBe(status);
  });

  it("refuses as v2 servers do, and says what it would take", async () => {
    const port = await start(["--store-token-file", await writeTokens(token)]);
    const answer = await ask(port);
    expect(await answer.text()).toBe(
      '{"errorCode":110,"message":"The request requires user authentication",' +
        '"cause":"Insufficient credentials","index":0}\n',
    );
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "content-type": "application/json",
      "x-etcd-index": "0",
      "x-etcd-cluster-id": store.identity.clusterId,
      "access-control-allow-origin": "*",
      "www-authenticate": 'Bearer realm="davit", Basic realm="davit"',
    });
  });

  it.each(["/v2/keys/a", "/davit/v1/follow", "/davit/v1/backup", "/nowhere", "/v2/keys/../version"])(
    "guards %s",
    async (path) => {
      const port = await start(["--store-token-file", await writeTokens(token)]);
      expect((await ask(port, undefined, path)).status).toBe(401);
    },
  );

  it("lets anyone ask for health and version, and what a browser may send", async () => {
    const port = await start(["--store-token-file", await writeTokens(token)]);
    expect((await ask(port, undefined, "/health")).status).toBe(200);
    expect((await ask(port, undefined, "/version?x=1")).status).toBe(200);
    expect((await ask(port, undefined, "/v2/keys/a", { method: "OPTIONS" })).status).toBe(200);
  });

  it("writes nothing for those it refuses", async () => {
    const port = await start(["--store-token-file", await writeTokens(token)]);
    const body = new URLSearchParams({ value: "x" });
    expect((await ask(port, basic("root", "wrong"), "/v2/keys/a", { method: "PUT", body })).status).toBe(401);
    expect(store.indexes.storeIndex).toBe(0);
    expect((await ask(port, basic("root", token), "/v2/keys/a", { method: "PUT", body })).status).toBe(201);
    expect(store.get(storePath("/a")).node.value).toBe("x");
  });

  it("takes new tokens and no longer old ones once the file has changed, and keeps them while it is bad", async () => {
    const said: string[] = [];
    const port = await start(["--store-token-file", await writeTokens(token)], said);
    const statuses = async () => [
      (await ask(port, `Bearer ${token}`)).status,
      (await ask(port, `Bearer ${otherToken}`)).status,
    ];
    expect(await statuses()).toEqual([200, 401]);
    await writeTokens(otherToken);
    await expect.poll(statuses, soon).toEqual([401, 200]);
    await writeTokens(token, "short");
    await expect.poll(() => said.at(-1), soon).toContain("the token of line 2 is not 16 to 8192");
    expect(await statuses()).toEqual([401, 200]);
    await writeTokens("# nobody");
    await expect.poll(statuses, soon).toEqual([401, 401]);
  });

  it("cuts followers and watches whose token is taken away, and no others", async () => {
    const port = await start(["--store-token-file", await writeTokens(token, otherToken)]);
    const paths = ["/davit/v1/follow", "/v2/keys/a?wait=true", "/v2/keys/a?wait=true&stream=true"];
    const readers = async (shown: string) =>
      await Promise.all(paths.map(async (path) => (await ask(port, `Bearer ${shown}`, path)).body?.getReader()));
    const [cut, kept] = [await readers(token), await readers(otherToken)];
    await cut[0]?.read();
    await kept[0]?.read();
    await writeTokens(otherToken);
    for (const reader of cut) await expect(reader?.read()).rejects.toThrow("terminated");
    const body = new URLSearchParams({ value: "x" });
    await ask(port, `Bearer ${otherToken}`, "/v2/keys/a", { method: "PUT", body });
    for (const reader of kept.slice(1)) {
      expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toContain('"value":"x"');
    }
    for (const reader of kept) await reader?.cancel();
  });

  it("cuts backups when the tokens change", async () => {
    // More than what is on its way to a reader who does not read.
    const value = "x".repeat(1024 * 1024);
    const commands = Array.from({ length: 32 }, (_, at) => ({
      kind: "set" as const,
      path: storePath(`/${at}`),
      value,
    }));
    await store.submit({ kind: "batch", commands });
    const port = await start(["--store-token-file", await writeTokens(token)]);
    const answer = await ask(port, `Bearer ${token}`, "/davit/v1/backup");
    expect(answer.status).toBe(200);
    await writeTokens(otherToken);
    await expect.poll(async () => (await ask(port, `Bearer ${otherToken}`)).status, soon).toBe(200);
    await expect(answer.arrayBuffer()).rejects.toThrow();
  });

  it("does not start without a token in the file, or where other users can read it", async () => {
    const started = start(["--store-token-file", await writeTokens("# nobody")]);
    await expect(started).rejects.toThrow(/^Cannot use ".*tokens": it has no token$/);
    await expect(started).rejects.toThrow(StartError);
    const path = await writeTokens(token);
    await chmod(path, 0o644);
    await expect(start(["--store-token-file", path])).rejects.toThrow(`can read or write it: chmod o= "${path}"`);
  });
});

describe.skipIf(missing("openssl"))("a store with TLS", () => {
  let home: string;
  let authority: Authority;
  let stranger: Authority;
  let server: Certificate;
  let expired: Certificate;

  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), "davit-certificates-"));
    authority = makeAuthority(home);
    stranger = makeAuthority(home, "stranger");
    server = authority.issue("server");
    expired = authority.issue("expired", { isExpired: true });
  });

  afterAll(() => rm(home, { recursive: true }));

  const pair = ({ certFile, keyFile }: Certificate) => ["--store-cert-file", certFile, "--store-key-file", keyFile];

  interface Asking {
    readonly ca?: string;
    readonly with?: Certificate;
    readonly agent?: Agent;
  }

  /** The status of an answer, or the code of the error that there was instead, with the certificate that was shown. */
  async function ask(port: number, { ca = authority.cert, with: own, agent }: Asking = {}) {
    const identity = own === undefined ? {} : { cert: own.cert, key: own.key };
    const sent = request({ host: "127.0.0.1", port, path: "/v2/keys/", ca, agent: agent ?? false, ...identity });
    return await new Promise<{ outcome: number | string | undefined; serial?: string }>((resolve) => {
      sent.on("error", (error) => resolve({ outcome: codeOf(error) }));
      sent.on("response", (response) => {
        const serial = serialOf(response.socket);
        response.resume().on("end", () => resolve({ outcome: response.statusCode, serial }));
      });
      sent.end();
    });
  }

  function serialOf(socket: unknown): string {
    return isTls(socket) ? socket.getPeerCertificate().serialNumber : "";
  }

  function isTls(socket: unknown): socket is TLSSocket {
    return typeof socket === "object" && socket !== null && "getPeerCertificate" in socket;
  }

  it("answers to who trusts its authority, and to nobody else", async () => {
    const port = await start(pair(server));
    expect(service?.hasTls).toBe(true);
    expect((await ask(port)).outcome).toBe(200);
    expect((await ask(port, { ca: stranger.cert })).outcome).toBe("UNABLE_TO_VERIFY_LEAF_SIGNATURE");
  });

  it("says nothing in plain text", async () => {
    const socket = connect(await start(pair(server)), "127.0.0.1");
    socket.write("GET /v2/keys/ HTTP/1.1\r\nHost: x\r\n\r\n");
    expect((await readToEnd(socket)).toString("latin1")).not.toContain("HTTP");
  });

  it.each([
    { ciphers: "AES128-GCM-SHA256:AES256-GCM-SHA384:AES128-SHA", isTaken: false },
    { ciphers: "ECDHE-RSA-AES128-GCM-SHA256", isTaken: true },
  ])("with a key of RSA takes $ciphers in TLS 1.2: $isTaken", async ({ ciphers, isTaken }) => {
    const [cert, key] = [join(home, "rsa.crt"), join(home, "rsa.key")];
    const words = [
      "req",
      "-x509",
      "-newkey",
      "rsa:2048",
      "-nodes",
      "-subj",
      "/CN=localhost",
      "-keyout",
      key,
      "-out",
      cert,
    ];
    execFileSync("openssl", words, { stdio: "ignore" });
    const port = await start(["--store-cert-file", cert, "--store-key-file", key]);
    const socket = connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false, ciphers, maxVersion: "TLSv1.2" });
    const isConnected = once(socket, "secureConnect").then(
      () => true,
      () => false,
    );
    expect(await isConnected).toBe(isTaken);
    socket.destroy();
  });

  it("refuses what cannot be a request with 400, as without TLS", async () => {
    const socket = connectTls({ port: await start(pair(server)), host: "127.0.0.1", ca: authority.cert });
    socket.write("nonsense\r\n\r\n");
    expect((await readToEnd(socket)).toString("latin1")).toMatch(/^HTTP\/1\.1 400 /);
  });

  it("serves an expired certificate with a warning: its clients refuse it", async () => {
    const said: string[] = [];
    const port = await start(pair(expired), said);
    expect((await ask(port)).outcome).toBe("CERT_HAS_EXPIRED");
    expect(said).toEqual([expect.stringContaining("certificate has expired, clients will refuse it")]);
  });

  it("warns of a certificate that is not for the host by which clients are told to come", async () => {
    const said: string[] = [];
    await start([...pair(server), "--store-advertise-url", "https://davit-store.netboot.svc:2379"], said);
    expect(said).toEqual([
      "certificate is not for the host of --store-advertise-url, clients that come by it will refuse it " +
        JSON.stringify({
          path: server.certFile,
          host: "davit-store.netboot.svc",
          names: ["IP Address:127.0.0.1", "DNS:localhost"],
        }),
    ]);
  });

  it.each(["https://localhost:2379", "https://127.0.0.1:2379"])("says nothing of one that is for %s", async (url) => {
    const said: string[] = [];
    await start([...pair(server), "--store-advertise-url", url], said);
    expect(said).toEqual([]);
  });

  it("shows a new certificate to new connections and keeps those that stand", async () => {
    const mine = authority.issue("mine");
    const port = await start(pair(mine));
    const agent = new Agent({ keepAlive: true });
    const before = await ask(port, { agent });
    const next = authority.issue("mine");
    await expect.poll(async () => (await ask(port)).serial, soon).not.toBe(before.serial);
    expect(next.cert).not.toBe(mine.cert);
    expect(await ask(port, { agent })).toEqual(before);
    agent.destroy();
  });

  it("keeps its certificate while the new one does not belong to the key", async () => {
    const said: string[] = [];
    const mine = authority.issue("mixed");
    const port = await start(pair(mine), said);
    const before = await ask(port);
    await writeFile(mine.certFile, server.cert);
    await expect.poll(() => said, soon).toEqual([expect.stringContaining("the key is not that of the certificate")]);
    expect(await ask(port)).toEqual(before);
    await writeFile(mine.keyFile, server.key, { mode: 0o600 });
    await expect.poll(async () => (await ask(port)).serial, soon).not.toBe(before.serial);
  });

  describe("that asks for client certificates", () => {
    const guarded = () => [...pair(server), "--store-client-ca-file", authority.certFile];

    it("answers to one by its authority", async () => {
      const port = await start(guarded());
      expect((await ask(port, { with: authority.issue("client") })).outcome).toBe(200);
    });

    it("answers nothing without one, to an expired one, or to one by another authority", async () => {
      const port = await start(guarded());
      const refused = [
        await ask(port),
        await ask(port, { with: expired }),
        await ask(port, { with: stranger.issue("client") }),
      ];
      for (const { outcome } of refused) expect(outcome).toMatch(/^(ERR_SSL_|ECONNRESET|EPIPE)/);
    });

    it("asks for a token as well, where it has tokens", async () => {
      const port = await start([...guarded(), "--store-token-file", await writeTokens(token)]);
      expect((await ask(port, { with: authority.issue("client") })).outcome).toBe(401);
    });
  });

  it.each([
    {
      name: "a key of another",
      cert: () => server.cert,
      key: () => expired.key,
      said: "the key is not that of the cert",
    },
    { name: "no certificate", cert: () => "", key: () => server.key, said: "the certificate file has no certificate" },
    { name: "no key", cert: () => server.cert, key: () => server.cert, said: "the key file has no private key in PEM" },
  ])("does not start with $name, and quotes nothing", async ({ cert, key, said }) => {
    const [certFile, keyFile] = [join(folder, "cert"), join(folder, "key")];
    await Promise.all([writeFile(certFile, cert()), writeFile(keyFile, key(), { mode: 0o600 })]);
    const started = start(["--store-cert-file", certFile, "--store-key-file", keyFile]);
    await expect(started).rejects.toThrow(StartError);
    await expect(started).rejects.toThrow(new RegExp(`^Cannot use ".*cert", ".*key": ${said}`));
  });

  it("does not start with client authorities that are none", async () => {
    const caFile = join(folder, "ca");
    await writeFile(caFile, "-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n");
    const started = start([...pair(server), "--store-client-ca-file", caFile]);
    await expect(started).rejects.toThrow(/certificate 1 of the client authorities cannot be read$/);
  });

  it("ends with a handshake under way", async () => {
    const tls = new ServerTls(readTlsMaterial([server.cert, server.key]));
    const clock = { ...systemClock, sleep: async () => {} };
    const plain = createServer({ log: silentLog, clock, answerError, tls, handler: handlerOf([]) });
    const { port } = await plain.listen({ host: "127.0.0.1", port: 0, option: "--store-address" });
    const socket = connect(port, "127.0.0.1");
    await once(socket, "connect");
    const closed = once(socket, "close");
    await plain.close();
    await closed;
    expect(socket.destroyed).toBe(true);
  });
});
