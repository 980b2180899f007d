/** The machines and groups of the benchmark: each machine has a group of its own that selects by its MAC. */

import { groupDocument, profileDocument, syncedDocument } from "../boot/feed-documents.ts";

/** Documents with this many groups of one Profile. */
export function* benchDocuments(groups: number): Generator<readonly [string, string]> {
  yield profileDocument("lab/linux", {
    displayName: "Linux",
    boot: {
      kind: "kernel",
      kernel: "/assets/debian/12/vmlinuz",
      initrd: ["/assets/debian/12/initrd.img"],
      args: [
        "console=ttyS0",
        "hostname={{hostname}}",
        `ignition.config.url={{davit.url}}/ignition?uuid=\${uuid}&mac=\${mac:hexhyp}`,
      ],
      efiInitrd: false,
    },
  });
  for (let at = 0; at < groups; at++) {
    yield groupDocument(`lab/node-${at}`, {
      profile: "linux",
      selector: { mac: mac(at, ":") },
      metadata: { hostname: `node-${at}`, rack: `r${at % 50}` },
    });
  }
  yield syncedDocument();
}

const targetCount = 1_000;

/**
 * What machines ask, as iPXE writes it: 1,000 different requests, spread evenly over all groups, so that the number of
 * groups is all that differs between two runs.
 */
export function ipxeTargets(groups: number): readonly string[] {
  return Array.from({ length: targetCount }, (_, at) => {
    const machine = Math.floor((at * groups) / targetCount);
    const uuid = `a1b2c3d4-0000-4000-8000-${String(at).padStart(12, "0")}`;
    return `/ipxe?uuid=${uuid}&mac=${mac(machine, "-")}&domain=lab.test&hostname=&serial=S${at}`;
  });
}

function mac(machine: number, separator: string): string {
  const digits = machine.toString(16).padStart(8, "0");
  return ["52", "54", digits.slice(0, 2), digits.slice(2, 4), digits.slice(4, 6), digits.slice(6)].join(separator);
}
