/** What DHCP servers answer to each kind of firmware, for a person. */

import { visible } from "../lib/text/visible.ts";
import type { DhcpAnswer, FirmwareKind } from "./message.ts";

/** The kinds of firmware that `davit doctor` plays (DHCP option 93: IANA, Processor Architecture Types). */
export const firmwareKinds: readonly FirmwareKind[] = [
  { name: "BIOS, PXE", architecture: 0, vendorClass: "PXEClient" },
  { name: "BIOS, iPXE", architecture: 0, vendorClass: "PXEClient", isIpxe: true },
  { name: "UEFI, PXE", architecture: 7, vendorClass: "PXEClient" },
  { name: "UEFI, iPXE", architecture: 7, vendorClass: "PXEClient", isIpxe: true },
  { name: "UEFI, HTTP Boot", architecture: 16, vendorClass: "HTTPClient" },
  { name: "arm64, PXE", architecture: 11, vendorClass: "PXEClient" },
  { name: "arm64, iPXE", architecture: 11, vendorClass: "PXEClient", isIpxe: true },
  { name: "arm64, HTTP Boot", architecture: 19, vendorClass: "HTTPClient" },
];

/**
 * Returns a row for each answer, with the kind, the server, the address and the boot file, and one for each kind that
 * nobody answers. Texts of servers are made visible.
 */
export function answerRows(answers: readonly (readonly DhcpAnswer[])[]): readonly (readonly string[])[] {
  return firmwareKinds.flatMap(({ name }, at) => {
    const own = answers[at] ?? [];
    if (own.length === 0) return [[name, "nobody"]];
    return own.map((answer) => [name, answer.server, answer.address ?? "", bootText(answer)]);
  });
}

function isUrl({ file }: Pick<DhcpAnswer, "file">): boolean {
  return /^https?:\/\//.test(file);
}

function bootText({ file, nextServer }: DhcpAnswer): string {
  if (file === "") return "";
  return isUrl({ file }) ? visible(file) : `${visible(file)} by TFTP from ${visible(nextServer) || "nowhere"}`;
}

/** Returns what keeps machines from a boot, one sentence each. */
export function answerProblems(answers: readonly (readonly DhcpAnswer[])[]): readonly string[] {
  const giving = serversThat(answers, ({ address }) => address !== undefined);
  const naming = serversThat(answers, ({ file }) => file !== "");
  const silent = firmwareKinds.filter(({ isIpxe }, at) => isIpxe === true && !answers[at]?.some(isUrl));
  return [
    ...(giving.length === 0 ? ["No server gives addresses: start a DHCP server, or davit serve --dhcp FROM,TO"] : []),
    ...(giving.length > 1 ? [`Several servers give addresses: ${giving.join(", ")}: stop all but one`] : []),
    ...(naming.length === 0 ? ["No server names what to boot: start davit serve --dhcp proxy"] : []),
    ...(naming.length > 1
      ? [`Several servers name what to boot: ${naming.join(", ")}: a machine takes either of them; stop all but one`]
      : []),
    ...(naming.length > 0 && silent.length > 0
      ? [`No URL for iPXE: ${silent.map(({ name }) => name).join("; ")}: without it iPXE loads itself again and again`]
      : []),
  ];
}

function serversThat(
  answers: readonly (readonly DhcpAnswer[])[],
  holds: (answer: DhcpAnswer) => boolean,
): readonly string[] {
  return [
    ...new Set(
      answers
        .flat()
        .filter(holds)
        .map(({ server }) => server),
    ),
  ].toSorted();
}
