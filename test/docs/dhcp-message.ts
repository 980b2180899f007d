/** Messages of DHCP (RFC 2131), as far as it takes to ask a server what a machine shall boot. */

/** What the firmware of a machine says of itself. */
export interface Firmware {
  /** Option 93, RFC 4578. */
  readonly architecture: number;
  /** The first word of option 60. Default: PXEClient. */
  readonly vendorClass?: "PXEClient" | "HTTPClient";
  /** Option 77 as iPXE sends it: a bare text, without the lengths of RFC 3004. */
  readonly userClass?: string;
}

/** What a server tells a machine to boot. Empty for what it does not say. */
export interface BootOffer {
  readonly file: string;
  /** Where the file is to be had by TFTP. */
  readonly nextServer: string;
  readonly vendorClass: string;
}

// The fixed part of a message, and the number behind it that says: options follow.
const fixedBytes = 236;
const cookie = 0x63825363;
const endOption = 255;

/** What network cards ask for: mask, routers, vendor options, lease, server, vendor class, TFTP server, boot file. */
const wanted = [1, 3, 43, 51, 54, 60, 66, 67];

/**
 * A DISCOVER as a relay passes it on.
 * @param number tells machines and answers apart: 0 to 255.
 * @param relay the relay's address, to which the server answers.
 */
export function discover(number: number, { architecture, vendorClass, userClass }: Firmware, relay: string): Buffer {
  const message = Buffer.alloc(fixedBytes);
  // A request on Ethernet, with six bytes of address, past one relay.
  message.set([1, 1, 6, 1]);
  message.writeUInt32BE(number, 4);
  message.set(relay.split(".").map(Number), 24);
  message.set([0x52, 0x54, 0, 0, 0, number], 28);
  const kind = String(architecture).padStart(5, "0");
  const options = [
    option(53, [1]),
    option(55, wanted),
    option(60, Buffer.from(`${vendorClass ?? "PXEClient"}:Arch:${kind}:UNDI:003001`)),
    option(93, [architecture >> 8, architecture & 0xff]),
    option(94, [1, 3, 1]),
    ...(userClass === undefined ? [] : [option(77, Buffer.from(userClass))]),
  ];
  const start = Buffer.alloc(4);
  start.writeUInt32BE(cookie);
  return Buffer.concat([message, start, ...options, Buffer.of(endOption)]);
}

function option(code: number, value: Iterable<number>): Buffer {
  const bytes = Buffer.from([...value]);
  return Buffer.concat([Buffer.of(code, bytes.length), bytes]);
}

/** The number of the request that a message answers. */
export function numberOf(message: Buffer): number {
  return message.readUInt32BE(4);
}

export function readOffer(message: Buffer): BootOffer {
  const options = readOptions(message);
  const text = (code: number) => textOf(options.get(code) ?? Buffer.of());
  return {
    // Firmware takes either.
    file: text(67) || textOf(message.subarray(108, fixedBytes)),
    nextServer: [...message.subarray(20, 24)].join("."),
    vendorClass: text(60),
  };
}

function readOptions(message: Buffer): ReadonlyMap<number, Buffer> {
  const options = new Map<number, Buffer>();
  for (let at = fixedBytes + 4; at < message.length; ) {
    const code = message.readUInt8(at);
    if (code === endOption) break;
    // 0 pads, and has no length.
    const length = code === 0 ? -1 : message.readUInt8(at + 1);
    options.set(code, message.subarray(at + 2, at + 2 + Math.max(length, 0)));
    at += 2 + length;
  }
  return options;
}

/** Up to the first 0, with which some servers end texts. */
function textOf(bytes: Buffer): string {
  return bytes.toString("latin1").replace(/\0.*$/s, "");
}
