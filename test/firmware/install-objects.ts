/** A directory of manifests with installers that need permits, and Groups that grant them to one machine each. */

import { mkdirSync, mkdtempSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LocalBoot } from "../../src/model/permits/permit.ts";

interface Install {
  readonly mac: string;
  /** The file below `/assets/images/` that goes over the disk. */
  readonly image: string;
  /** How the machine boots from its disk afterwards. */
  readonly way: LocalBoot;
  /** Absent: the Group grants nothing. */
  readonly grant?: { readonly generation: number; readonly ledger: string };
  /** How long the installer stops when half of the disk is written. */
  readonly pauseSeconds?: number;
}

const ways = ["exit", "sanboot", "notFound"] as const satisfies readonly LocalBoot[];
const grantMs = 24 * 3_600_000;

export class InstallObjects {
  readonly #folder = mkdtempSync(join(tmpdir(), "davit-installs-"));
  readonly directory = join(this.#folder, "manifests");

  constructor() {
    mkdirSync(this.directory);
    for (const way of ways) this.#write(nameOf(way), profileText(way));
  }

  /** Writes the Group of a machine, or a newer version of it. */
  set(install: Install): void {
    const name = this.groupOf(install.mac);
    this.#write(name, groupText(name, install));
  }

  /** The name of a machine's Group. */
  groupOf(mac: string): string {
    return `machine-${dashed(mac)}`;
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true });
  }

  // Moved in, and old: davit reads it without a wait.
  #write(name: string, text: string): void {
    const elsewhere = join(this.#folder, name);
    writeFileSync(elsewhere, text);
    utimesSync(elsewhere, 1, 1);
    renameSync(elsewhere, join(this.directory, `${name}.yaml`));
  }
}

/** The installer of tools/firmware/guest/init.sh, whose config is a shell script. */
function profileText(way: LocalBoot): string {
  return `apiVersion: davit.dev/v1alpha1
kind: Profile
metadata:
  name: ${nameOf(way)}
spec:
  effect: Install
  install: {then: ${way}, timeout: 1h}
  metadata: {pause: 0}
  boot:
    kernel: /assets/quickstart/vmlinuz
    initrd: [/assets/quickstart/initrd.gz]
    efiInitrd: true
    # Linux panics where a busy computer gives the machine no timer in time.
    args: [console=ttyS0, panic=-1, no_timer_check, "davit.url={{davit.url}}", davit.install=1]
  generic:
    inline: |
      report() { wget -q -O /dev/null --post-data "$1" {{davit.report}} && echo "REPORTED $1"; }
      write() { dd if=/tmp/image of=/dev/vda bs=512 conv=notrunc "$@" 2>/dev/null && sync; }
      report state=installing
      wget -q -O /tmp/image {{davit.url}}/assets/images/{{image}}
      half=$(($(stat -c %s /tmp/image) / 1024))
      write count=$half
      echo "HALF WRITTEN"
      sleep {{pause}}
      write skip=$half seek=$half
      report state=installed
`;
}

function groupText(name: string, { mac, image, way, grant, pauseSeconds }: Install): string {
  const until = new Date(Date.now() + grantMs).toISOString();
  const spec = {
    profileRef: { name: nameOf(way) },
    selector: { matchLabels: { mac } },
    ...(grant && { install: { ...grant, until } }),
    metadata: { image, ...(pauseSeconds !== undefined && { pause: pauseSeconds }) },
  };
  return `apiVersion: davit.dev/v1alpha1\nkind: Group\nmetadata: {name: ${name}}\nspec: ${JSON.stringify(spec)}\n`;
}

function dashed(mac: string): string {
  return mac.replaceAll(":", "-");
}

function nameOf(way: LocalBoot): string {
  return `install-then-${way.toLowerCase()}`;
}
