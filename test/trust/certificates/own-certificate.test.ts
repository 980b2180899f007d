import { X509Certificate } from "node:crypto";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:https";
import { isIP } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { diskFiles } from "../../../src/lib/files/files.ts";
import { StartError } from "../../../src/lib/start-error.ts";
import { OwnCertificate } from "../../../src/trust/certificates/own-certificate.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { silentLog } from "../../helpers/test-store.ts";

const dayMs = 24 * 60 * 60_000;
let folder: string;
let clock: FakeClock;
let told: string[];
const running: OwnCertificate[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-certificate-"));
  // Real time: clients of the certificate have no other.
  clock = new FakeClock(Date.now());
  told = [];
});

afterEach(async () => {
  for (const certificate of running.splice(0)) await certificate.stop();
  await rm(folder, { recursive: true });
});

async function start(hosts: readonly string[] = ["127.0.0.1", "::1", "store.lab.svc"]): Promise<OwnCertificate> {
  const certificate = new OwnCertificate({
    files: diskFiles,
    directory: join(folder, "certificate"),
    hosts,
    clock,
    log: silentLog,
    part: "store",
    keys: "ec",
    authorityChanged: (cert) => told.push(cert),
  });
  running.push(certificate);
  await certificate.start();
  return certificate;
}

const read = (name: string) => readFile(join(folder, "certificate", name), "utf8");

/** What is there when davit has looked once more: its last look may have begun before the clock moved. */
async function anHourLater<Value>(value: () => Value): Promise<Awaited<Value>> {
  await clock.advance(60 * 60_000);
  return await value();
}

/** What a client says who trusts this authority alone, and asks for this host. */
async function handshake(ca: string, host: string): Promise<string> {
  const server = createServer({ cert: await read("cert.pem"), key: await read("key.pem") });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" ? (address?.port ?? 0) : 0;
  return await new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1", ca, ...(isIP(host) === 0 && { servername: host }) });
    const end = (result: string) => {
      socket.destroy();
      server.close();
      resolve(result);
    };
    socket.on("secureConnect", () => end("trusted"));
    socket.on("error", (error) => end("code" in error ? String(error.code) : "refused"));
  });
}

describe("davit's own certificate", () => {
  it("is trusted by who trusts its authority, for the hosts that it names", async () => {
    const { authority } = await start();
    expect(await handshake(authority, "store.lab.svc")).toBe("trusted");
    expect(await handshake(authority, "127.0.0.1")).toBe("trusted");
    expect(await handshake(authority, "other.lab.svc")).toBe("ERR_TLS_CERT_ALTNAME_INVALID");
    expect(new X509Certificate(await read("cert.pem")).ca).toBe(false);
    expect(new X509Certificate(authority).ca).toBe(true);
  });

  it("lies in files that nobody else may read", async () => {
    await start();
    const names = await readdir(join(folder, "certificate"));
    expect(names.toSorted()).toEqual(["ca-key.pem", "ca.pem", "cert.pem", "key.pem"]);
    for (const name of names) expect((await stat(join(folder, "certificate", name))).mode & 0o777).toBe(0o600);
  });

  it("stays over a restart", async () => {
    await start();
    const before = [await read("ca.pem"), await read("cert.pem")];
    await start();
    expect([await read("ca.pem"), await read("cert.pem")]).toEqual(before);
    expect(told).toEqual([before[0], before[0]]);
  });

  it("is made anew for other hosts, by the same authority", async () => {
    const { authority } = await start(["old.lab.svc"]);
    await start(["new.lab.svc"]);
    expect(await read("ca.pem")).toBe(authority);
    expect(await handshake(authority, "new.lab.svc")).toBe("trusted");
    expect(await handshake(authority, "old.lab.svc")).toBe("ERR_TLS_CERT_ALTNAME_INVALID");
  });

  it("is renewed 30 days before its end, while davit runs", async () => {
    await start();
    const before = await read("cert.pem");
    await clock.advance(59 * dayMs);
    expect(await read("cert.pem")).toBe(before);
    await clock.advance(dayMs);
    await expect.poll(() => anHourLater(() => read("cert.pem"))).not.toBe(before);
    expect(told).toHaveLength(1);
  });

  it("has an authority that is renewed with its key, so that old and new one vouch for the same", async () => {
    const { authority: old } = await start();
    await clock.advance(9 * 365 * dayMs);
    await expect.poll(() => anHourLater(() => told.length)).toBe(2);
    const [, renewed = ""] = told;
    expect(new X509Certificate(renewed).publicKey.equals(new X509Certificate(old).publicKey)).toBe(true);
    expect(new X509Certificate(await read("cert.pem")).verify(new X509Certificate(old).publicKey)).toBe(true);
    expect(await read("ca.pem")).toBe(renewed);
  });

  it("made by a clock that was a day ahead is made anew within an hour after the clock is set, by the same key", async () => {
    clock.stepWallClock(dayMs);
    const { authority: early } = await start();
    expect(await handshake(early, "store.lab.svc")).toBe("CERT_NOT_YET_VALID");
    clock.stepWallClock(-dayMs);
    await clock.advance(60 * 60_000);
    await expect.poll(() => told.length).toBe(2);
    const [, mended = ""] = told;
    await expect.poll(() => handshake(mended, "store.lab.svc")).toBe("trusted");
    expect(new X509Certificate(mended).publicKey.equals(new X509Certificate(early).publicKey)).toBe(true);
  });

  it("stays when the clock is set by an hour, back and forth", async () => {
    const { authority } = await start();
    const before = await read("cert.pem");
    for (const stepMs of [-60, 60, 60, -60].map((minutes) => minutes * 60_000)) {
      clock.stepWallClock(stepMs);
      await clock.advance(60 * 60_000);
    }
    expect([await read("ca.pem"), await read("cert.pem")]).toEqual([authority, before]);
    expect(await handshake(authority, "store.lab.svc")).toBe("trusted");
  });

  it.each([
    ["ca-key.pem", "garbage"],
    ["ca.pem", "garbage"],
    ["key.pem", "garbage"],
    ["cert.pem", ""],
  ])("is made anew when %s is %j", async (name, text) => {
    await start();
    await writeFile(join(folder, "certificate", name), text);
    const { authority } = await start();
    expect(await handshake(authority, "store.lab.svc")).toBe("trusted");
  });

  it("that cannot be kept ends the start", async () => {
    await writeFile(join(folder, "certificate"), "a file");
    await expect(start()).rejects.toThrow(StartError);
  });
});
