/** The iPXE script of docs/reference/firmware.md that asks davit again until a boot succeeds, and a TFTP directory with it. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Loader } from "../../tools/firmware/machine.ts";

/** @param authority `host:port` of davit's boot service, as machines reach it. */
export function patientScript(authority: string): string {
  return `#!ipxe
:again
chain http://${authority}/boot.ipxe || goto failed
exit
:failed
echo No boot from davit, asking again in 5 seconds
sleep 5
imgfree
goto again
`;
}

export function makePatientLoader(directory: string, authority: string): Loader {
  writeFileSync(join(directory, "davit.ipxe"), patientScript(authority));
  return { kind: "tftp", directory, file: "davit.ipxe" };
}
