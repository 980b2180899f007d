/** Messages of DHCP (RFC 2131) and PXE (Intel, PXE 2.1), as far as a client needs them to learn what it would boot. */

import { ipv4Number } from "../lib/text/ipv4.ts";

/** What firmware says of itself. */
export interface FirmwareKind {
  readonly name: string;
  /** DHCP option 93 (IANA, Processor Architecture Types). */
  readonly architecture: number;
  /** The first word of option 60. */
  readonly vendorClass: "PXEClient" | "HTTPClient";
  /** True for iPXE, which also sends the options 77 and 175. */
  readonly isIpxe?: boolean;
}

/** What a server answers. Texts are empty if it does not say them, and may have any character. */
export interface DhcpAnswer {
  /** The address that it offers; undefined for an answer that only names what to boot. */
  readonly address: string | undefined;
  readonly server: string;
  /** The TFTP server. */
  readonly nextServer: string;
  readonly file: string;
  readonly vendorClass: string;
  /** The first entry of a PXE boot menu, whose file the client must ask for at port 4011. */
  readonly bootItem: number | undefined;
}

/** Numbers of one question. */
export interface QuestionIds {
  /** 0 to 2^32 - 1. */
  readonly transaction: number;
  /** Six bytes. */
  readonly mac: Uint8Array;
}

// The fixed part of a message, and the number behind it that begins the options.
const fixedBytes = 236;
const cookie = 0x63825363;
const padOption = 0;
const endOption = 255;

/** Subnet mask, router, vendor options, lease time, server, vendor class, TFTP server and boot file. */
const wantedOptions = [1, 3, 43, 51, 54, 60, 66, 67];

/** Returns a DHCPDISCOVER, whose answers servers broadcast. */
export function discoverMessage(kind: FirmwareKind, ids: QuestionIds): Buffer {
  return messageOf(kind, ids, { type: 1, flags: 0x8000, client: 0, options: [] });
}

/**
 * Returns a DHCPREQUEST for a boot file, to port 4011 of a PXE server.
 * @param client the IPv4 address to which the server answers.
 * @param bootItem the entry of its boot menu; undefined if it has none.
 */
export function bootServerRequest(
  kind: FirmwareKind,
  ids: QuestionIds,
  client: string,
  bootItem: number | undefined,
): Buffer {
  const item = (entry: number) => option(43, Buffer.of(71, 4, entry >> 8, entry & 0xff, 0, 0, endOption));
  const options = bootItem === undefined ? [] : [item(bootItem)];
  return messageOf(kind, ids, { type: 3, flags: 0, client: ipv4Number(client) ?? 0, options });
}

function messageOf(
  { architecture, vendorClass, isIpxe = false }: FirmwareKind,
  { transaction, mac }: QuestionIds,
  parts: Readonly<Record<"type" | "flags" | "client", number>> & { readonly options: readonly Buffer[] },
): Buffer {
  const fixed = Buffer.alloc(fixedBytes + 4);
  // A request of Ethernet, with six bytes of address.
  fixed.set([1, 1, 6, 0]);
  fixed.writeUInt32BE(transaction, 4);
  fixed.writeUInt16BE(parts.flags, 10);
  fixed.writeUInt32BE(parts.client, 12);
  fixed.set(mac, 28);
  fixed.writeUInt32BE(cookie, fixedBytes);
  const number = String(architecture).padStart(5, "0");
  return Buffer.concat([
    fixed,
    option(53, Buffer.of(parts.type)),
    option(55, Buffer.from(wantedOptions)),
    option(60, Buffer.from(`${vendorClass}:Arch:${number}:UNDI:003016`)),
    option(93, Buffer.of(architecture >> 8, architecture & 0xff)),
    option(94, Buffer.of(1, 3, 16)),
    // The zero begins a UUID, which is zero, too.
    option(97, Buffer.alloc(17)),
    // iPXE sends its user class without the length of RFC 3004. 175 has its version, as 1.21.1.
    ...(isIpxe ? [option(77, Buffer.from("iPXE")), option(175, Buffer.of(235, 3, 1, 21, 1))] : []),
    ...parts.options,
    Buffer.of(endOption),
  ]);
}

function option(code: number, value: Uint8Array): Buffer {
  return Buffer.concat([Buffer.of(code, value.length), value]);
}

/** Reads an answer to a transaction; undefined for any other bytes, such as those of another client. */
export function readDhcpAnswer(message: Buffer, transaction: number, from: string): DhcpAnswer | undefined {
  const isAnswer = message.length > fixedBytes + 4 && message[0] === 2 && message.readUInt32BE(fixedBytes) === cookie;
  if (!isAnswer || message.readUInt32BE(4) !== transaction) return undefined;
  const options = readDhcpOptions(message.subarray(fixedBytes + 4));
  const type = options.get(53)?.[0];
  // DHCPOFFER and DHCPACK.
  if (type !== 2 && type !== 5) return undefined;
  const text = (code: number) => textOf(options.get(code));
  const server = options.get(54);
  // With option 52, the fields of file and server name have options.
  const fileField = options.has(52) ? "" : textOf(message.subarray(108, fixedBytes));
  const own = addressAt(message, 16);
  const next = addressAt(message, 20);
  return {
    address: own === "0.0.0.0" ? undefined : own,
    server: server?.length === 4 ? [...server].join(".") : from,
    nextServer: next === "0.0.0.0" ? text(66) : next,
    file: text(67) || fileField,
    vendorClass: text(60),
    bootItem: firstBootItem(options.get(43)),
  };
}

function addressAt(message: Buffer, offset: number): string {
  return [...message.subarray(offset, offset + 4)].join(".");
}

/** Reads options until their end or the end of the bytes. Several of one code are one (RFC 3396). */
function readDhcpOptions(bytes: Buffer): ReadonlyMap<number, Buffer> {
  const options = new Map<number, Buffer>();
  for (let at = 0; at < bytes.length; ) {
    const code = bytes[at] ?? endOption;
    if (code === endOption) break;
    if (code === padOption) {
      at += 1;
      continue;
    }
    const length = bytes[at + 1] ?? 0;
    const value = bytes.subarray(at + 2, at + 2 + length);
    options.set(code, Buffer.concat([options.get(code) ?? Buffer.alloc(0), value]));
    at += 2 + length;
  }
  return options;
}

/** PXE 2.1, table 2-1: option 43 has the menu in its own option 9: a type, a length and a text for each entry. */
function firstBootItem(vendorOptions: Buffer | undefined): number | undefined {
  const menu = vendorOptions && readDhcpOptions(vendorOptions).get(9);
  return menu !== undefined && menu.length >= 3 ? menu.readUInt16BE(0) : undefined;
}

/** Up to the first zero, with which some servers end texts. */
function textOf(bytes: Buffer | undefined): string {
  return (bytes ?? Buffer.alloc(0)).toString("latin1").replace(/\0.*$/s, "");
}
