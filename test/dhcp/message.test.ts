import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { answerProblems, answerRows, firmwareKinds } from "../../src/dhcp/findings.ts";
import { bootServerRequest, type DhcpAnswer, discoverMessage, readDhcpAnswer } from "../../src/dhcp/message.ts";

const ids = { transaction: 0xdecafbad, mac: Uint8Array.of(2, 1, 2, 3, 4, 5) };
const uefi = { name: "UEFI", architecture: 7, vendorClass: "PXEClient" } as const;

/** A server's answer to `ids`, with these options. */
function answerWith(options: readonly (readonly [code: number, value: string | readonly number[]])[]): Buffer {
  const message = discoverMessage(uefi, ids).subarray(0, 240);
  message[0] = 2;
  message.set([192, 0, 2, 120], 16);
  const parts = options.map(([code, value]) => {
    const bytes = Buffer.from(typeof value === "string" ? Buffer.from(value, "latin1") : [...value]);
    return Buffer.concat([Buffer.of(code, bytes.length), bytes]);
  });
  return Buffer.concat([message, ...parts, Buffer.of(255)]);
}

const read = (message: Buffer) => readDhcpAnswer(message, ids.transaction, "192.0.2.66");

describe("a question", () => {
  it("says what the firmware is, as a card does", () => {
    const text = discoverMessage({ ...uefi, isIpxe: true }, ids).toString("latin1");
    expect(text).toContain("\x5d\x02\x00\x07");
    expect(text).toContain("PXEClient:Arch:00007:UNDI:003016");
    expect(text).toContain("\x4d\x04iPXE");
    expect(discoverMessage(uefi, ids).toString("latin1")).not.toContain("iPXE");
  });

  it("to a PXE server names the entry of its menu", () => {
    const message = bootServerRequest(uefi, ids, "192.0.2.10", 0x8004);
    expect(message.subarray(12, 16)).toEqual(Buffer.of(192, 0, 2, 10));
    expect(message.includes(Buffer.of(43, 7, 71, 4, 0x80, 4, 0, 0, 255))).toBe(true);
  });
});

describe("an answer", () => {
  it("has the address, the server and the file", () => {
    const options = [
      [53, [2]],
      [54, [192, 0, 2, 1]],
      [60, "PXEClient\0"],
      [67, "snponly.efi\0rest"],
    ] as const;
    expect(read(answerWith(options))).toEqual({
      address: "192.0.2.120",
      server: "192.0.2.1",
      nextServer: "",
      file: "snponly.efi",
      vendorClass: "PXEClient",
      bootItem: undefined,
    });
  });

  it("may have a menu", () => {
    const menu = [9, 7, 0x80, 4, 4, 105, 80, 88, 69, 255];
    expect(
      read(
        answerWith([
          [53, [2]],
          [43, menu],
        ]),
      )?.bootItem,
    ).toBe(0x8004);
  });

  it("is no answer if it is to another client, a question, a refusal or too short", () => {
    const offer = answerWith([[53, [2]]]);
    expect(readDhcpAnswer(offer, 1, "192.0.2.66")).toBeUndefined();
    expect(read(discoverMessage(uefi, ids))).toBeUndefined();
    expect(read(answerWith([[53, [6]]]))).toBeUndefined();
    for (let length = 0; length < 241; length++) expect(read(offer.subarray(0, length))).toBeUndefined();
  });

  it("of any bytes throws nothing", () => {
    const fixed = answerWith([[53, [2]]]).subarray(0, -1);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
        const answer = read(Buffer.concat([fixed, bytes]));
        expect(answer?.server.length ?? 0).toBeLessThan(16);
      }),
    );
  });
});

describe("the table of answers", () => {
  const good: DhcpAnswer = {
    address: "192.0.2.120",
    server: "192.0.2.1",
    nextServer: "192.0.2.1",
    file: "http://192.0.2.10:8080/chain.ipxe",
    vendorClass: "",
    bootItem: undefined,
  };
  const all = (...answers: readonly DhcpAnswer[]) => firmwareKinds.map(() => answers);

  it("shows texts of a foreign server inert", () => {
    const [row] = answerRows(all({ ...good, file: "\x1b[2Jevil\r\n", nextServer: "\x9b31m" }));
    expect(row?.[3]).toBe("\\u{1b}[2Jevil\\u{d}\\u{a} by TFTP from \\u{9b}31m");
  });

  it("finds nothing wrong with one server", () => {
    expect(answerProblems(all(good))).toEqual([]);
  });

  it("finds nothing wrong with a proxy beside a server", () => {
    const proxy = { ...good, server: "192.0.2.10", address: undefined };
    expect(answerProblems(all({ ...good, file: "" }, proxy))).toEqual([]);
  });

  it.each([
    ["no server", all(), "No server gives addresses"],
    ["two servers with addresses", all(good, { ...good, server: "192.0.2.2", file: "" }), "192.0.2.1, 192.0.2.2"],
    ["two servers with files", all(good, { ...good, server: "192.0.2.2", address: undefined }), "either of them"],
    ["no server with files", all({ ...good, file: "" }), "No server names what to boot"],
    ["iPXE that gets iPXE", all({ ...good, file: "undionly.kpxe" }), "No URL for iPXE: BIOS, iPXE"],
  ])("finds %s", (_name, answers, told) => {
    expect(answerProblems(answers).join("\n")).toContain(told);
  });
});
