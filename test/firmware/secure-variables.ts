/**
 * OVMF's variables, as its flash holds them: a certificate is added to those that the firmware or shim trusts. On a
 * real machine its setup, Redfish or shim's MokManager does that.
 *
 * The format: EDK II's VariableFormat.h, and UEFI's EFI_SIGNATURE_LIST.
 */

import { readFileSync, writeFileSync } from "node:fs";

/** As Debian has it: trusts Microsoft, which signs shim. */
const microsoftVariables = "/usr/share/OVMF/OVMF_VARS_4M.ms.fd";

/** Who shall trust a certificate. */
export type Trust = "db" | "MokList";

// GUIDs as they are in memory: the first three parts in little endian.
const certificateType = guid("a159c0a5e494a74a87b5ab155c2bf072");
const owner = guid("00000000000000000000000000000000");
// Non-volatile, for boot services only; `db` can also be read at runtime, and is authenticated by time.
const namespaces = {
  db: { vendor: guid("cbb219d73a3d9645a3bcdad00e67656f"), attributes: 0x27 },
  MokList: { vendor: guid("50ab5d6046e00043abb63dd810dd8b23"), attributes: 0x3 },
} as const satisfies Record<Trust, object>;

const magic = 0x55aa;
const added = 0x3f;
// What `added` becomes when another version of the variable is valid.
const deleted = 0x3d;
// Of the firmware volume, and of the store in it.
const volumeHeaderBytes = 0x48;
const storeHeaderBytes = 28;
const variableHeaderBytes = 60;

/**
 * Writes variables that trust Microsoft and, if given, a certificate.
 * @param certificate in DER.
 * @throws {Error} when Debian's variables are of another format.
 */
export function writeSecureVariables(file: string, trust?: Trust, certificate?: Buffer): void {
  const flash = readFileSync(microsoftVariables);
  if (trust !== undefined && certificate !== undefined) append(flash, trust, signatureList(certificate));
  writeFileSync(file, flash);
}

function append(flash: Buffer, trust: Trust, list: Buffer): void {
  const { vendor, attributes } = namespaces[trust];
  const name = Buffer.from(`${trust}\0`, "utf16le");
  let header: Buffer = Buffer.alloc(variableHeaderBytes);
  header.writeUInt16LE(magic, 0);
  header.writeUInt8(added, 2);
  header.writeUInt32LE(attributes, 4);
  vendor.copy(header, 44);
  let data = list;
  let at = volumeHeaderBytes + storeHeaderBytes;
  if (flash.readUInt16LE(at) !== magic) throw new Error("Variables of an unknown format");
  while (flash.readUInt16LE(at) === magic) {
    const nameAt = at + variableHeaderBytes;
    const dataAt = nameAt + flash.readUInt32LE(at + 36);
    const end = dataAt + flash.readUInt32LE(at + 40);
    if (flash.readUInt8(at + 2) === added && flash.subarray(nameAt, dataAt).equals(name)) {
      header = Buffer.from(flash.subarray(at, nameAt));
      data = Buffer.concat([flash.subarray(dataAt, end), list]);
      flash.writeUInt8(deleted, at + 2);
    }
    at = (end + 3) & ~3;
  }
  header.writeUInt32LE(name.length, 36);
  header.writeUInt32LE(data.length, 40);
  Buffer.concat([header, name, data]).copy(flash, at);
}

/** An EFI_SIGNATURE_LIST of one certificate. */
function signatureList(certificate: Buffer): Buffer {
  const sizes = Buffer.alloc(12);
  const signatureBytes = owner.length + certificate.length;
  sizes.writeUInt32LE(certificateType.length + sizes.length + signatureBytes, 0);
  sizes.writeUInt32LE(signatureBytes, 8);
  return Buffer.concat([certificateType, sizes, owner, certificate]);
}

function guid(hex: string): Buffer {
  return Buffer.from(hex, "hex");
}
