/** Requests as each firmware and Ignition send them, byte by byte. */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { groupDocument, profileDocument } from "../boot/feed-documents.ts";
import { headerOf, parseAnswer, sendRaw, statusOf, type WireAnswer } from "../http/wire.ts";
import { type BootServer, kernelBoot, startBootServer, template } from "./boot-server.ts";

const folder = mkdtempSync(join(tmpdir(), "davit-clients-"));
const kernel = "0123456789";
const plainTexts = ["a.txt", "a.ipxe", "a.cfg", "a.yaml", "a.asc"];

let server: BootServer;
beforeAll(async () => {
  mkdirSync(join(folder, "debian", "12"), { recursive: true });
  for (const name of ["debian/12/vmlinuz", "debian/12/initrd.img", "page.html", ...plainTexts]) {
    writeFileSync(join(folder, name), kernel);
  }
  server = await startBootServer(
    [
      profileDocument("lab/web", {
        boot: kernelBoot({ kernel: "/assets/debian/12/vmlinuz" }),
        templates: { ignition: template('{"ignition":{"version":"3.4.0"}}') },
      }),
      groupDocument("lab/web", { selector: { mac: "52:54:00:a1:9c:ae" } }),
    ],
    folder,
  );
});
afterAll(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});

const query = "mac=52-54-00-a1-9c-ae";

/** Sends these lines as one request; the answer is read to the end of the connection. */
async function exchange(...lines: readonly string[]): Promise<WireAnswer> {
  return parseAnswer(await sendRaw(server.port, [...lines, "", ""].join("\r\n")));
}

/** What GRUB and UEFI need of every answer: a length in this spelling, not as the first header, and no chunks. */
function expectReadable({ headerLines, body }: WireAnswer): void {
  expect(headerLines[0]).not.toMatch(/^content-length/i);
  expect(headerLines).toContain(`Content-Length: ${body.length}`);
  expect(headerLines.join("\n")).not.toMatch(/transfer-encoding|content-encoding|location/i);
}

it("iPXE: script, kernel and initrd on one connection", async () => {
  const host = ["Connection: keep-alive", "User-Agent: iPXE/1.0.0+", `Host: 127.0.0.1:${server.port}`, "", ""];
  const chain = `/ipxe?uuid=a1b2c3d4-0000-4000-8000-00000000abcd&${query}&domain=lab.test&hostname=node1&serial=`;
  const requests = ["/boot.ipxe", chain, "/assets/debian/12/vmlinuz", "/assets/debian/12/initrd.img"]
    .map((target) => [`GET ${target} HTTP/1.1`, ...host].join("\r\n"))
    .join("");
  const bytes = await sendRaw(server.port, `${requests}GET / HTTP/1.1\r\nHost: d\r\nConnection: close\r\n\r\n`);
  expect(bytes.toString().match(/HTTP\/1\.1 200 OK/g)).toHaveLength(5);
  expect(bytes.toString()).toContain("#!ipxe\nkernel /assets/debian/12/vmlinuz\nboot\n");
});

describe("GRUB: no port in Host", () => {
  const agent = ["Host: 127.0.0.1", "User-Agent: GRUB 2.06-13+deb12u1", "Connection: close"];

  it("its config names plain paths", async () => {
    const answer = await exchange(`GET /grub?mac=52:54:00:a1:9c:ae&uuid=a1b2 HTTP/1.1`, ...agent);
    expectReadable(answer);
    expect(answer.body.toString()).toContain('linuxefi "/assets/debian/12/vmlinuz"\n');
  });

  it("its seek in a kernel is a part", async () => {
    const answer = await exchange("GET /assets/debian/12/vmlinuz HTTP/1.1", ...agent, "Range: bytes=4-");
    expectReadable(answer);
    expect([statusOf(answer), headerOf(answer, "Content-Range")]).toEqual([206, "bytes 4-9/10"]);
    expect(answer.body.toString()).toBe("456789");
  });

  it.each(["/grub?mac=52:54:00:00:00:00", "/nothing"])("the error at %s is readable", async (target) => {
    const answer = await exchange(`GET ${target} HTTP/1.1`, ...agent);
    expect(statusOf(answer)).toBe(404);
    expectReadable(answer);
  });

  it.each(["/assets/none", "/assets/debian"])("an error at %s is no file", async (target) => {
    const request = [`GET ${target} HTTP/1.1`, ...agent, "", ""].join("\r\n");
    expect((await sendRaw(server.port, request)).toString()).toBe("");
  });
});

it("UEFI HTTP boot: HEAD, then GET, without port in Host", async () => {
  const lines = ["Host: 127.0.0.1", "User-Agent: UefiHttpBoot/1.0", "Connection: close"];
  for (const target of ["/assets/debian/12/vmlinuz", `/ipxe?${query}`, "/boot.ipxe"]) {
    const head = await exchange(`HEAD ${target} HTTP/1.1`, ...lines);
    const get = await exchange(`GET ${target} HTTP/1.1`, ...lines);
    expectReadable(get);
    expect([statusOf(head), headerOf(head, "Content-Length")]).toEqual([200, String(get.body.length)]);
    expect(head.body.length).toBe(0);
  }
});

it("Ignition: JSON whatever its Accept says, never compressed", async () => {
  const accept = "Accept: application/vnd.coreos.ignition+json;version=3.4.0, */*;q=0.1";
  for (const encoding of ["identity", "gzip, deflate, br"]) {
    const answer = await exchange(
      `GET /ignition?${query} HTTP/1.1`,
      ...["Host: d", "User-Agent: Ignition/2.15.0", accept, `Accept-Encoding: ${encoding}`, "Connection: close"],
    );
    expectReadable(answer);
    expect(headerOf(answer, "Content-Type")).toBe("application/json");
  }
});

describe("an asset", () => {
  it.each(plainTexts)("`%s` is plain text", async (name) => {
    expect(headerOf(await server.get(`/assets/${name}`), "Content-Type")).toBe("text/plain; charset=utf-8");
  });

  it("of unknown type is never a page", async () => {
    expect(headerOf(await server.get("/assets/page.html"), "Content-Type")).toBe("application/octet-stream");
  });

  it("is never compressed, and has a length", async () => {
    const answer = await server.get("/assets/debian/12/vmlinuz", { headers: ["Accept-Encoding: gzip, br"] });
    expectReadable(answer);
    expect(answer.body.toString()).toBe(kernel);
  });

  it("lies beside other versions in its tree, under its own path alone", async () => {
    expect(statusOf(await server.get("/assets/debian/12/vmlinuz"))).toBe(200);
    expect(statusOf(await server.get("/assets/debian/13/vmlinuz"))).toBe(404);
  });
});
