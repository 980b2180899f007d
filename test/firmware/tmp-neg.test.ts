import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFailed } from "vitest";
import { type DavitProcess, startDavit } from "../helpers/davit-process.ts";
import { missing } from "../helpers/requirements.ts";
import { bootMachine, hostSeenByMachine, quickstartMachine, type Typist, tail } from "./machine.ts";

// A boot takes 10 seconds without hardware virtualisation, and several times that beside busy neighbours.
const bootLimitMs = 180_000;
const testLimitMs = bootLimitMs + 30_000;

const { mac, uuid } = quickstartMachine;

// davit.check=1 makes the guest fetch its configs, check them and power off (guest/init.sh).
const checkManifest = `
apiVersion: davit.dev/v1alpha1
kind: Profile
metadata:
  name: check
spec:
  boot:
    kernel: /assets/quickstart/vmlinuz
    initrd: [/assets/quickstart/initrd.gz]
    args:
      - console=ttyS0
      - panic=-1
      - davit.url={{davit.url}}
      - davit.check=1
      - role={{role}}
      - booted=\${mac:hexhyp}
  ignition:
    inline: |
      {"ignition": {"version": "3.4.0"}, "role": {{json role}} }
  generic:
    inline: |
      {"uuid": {{json request.query.uuid}}, "mac": "00:00:00:00:00:00", "rawQuery": {{json request.raw_query}} }
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata:
  name: this-machine
spec:
  profileRef:
    name: check
  selector:
    matchLabels:
      mac: "${mac}"
  metadata:
    role: web
    rack:
      row: 7
`;

describe.skipIf(missing("qemu", "ipxe-rom", "cloud-kernel", "busybox-static"))("a BIOS machine with iPXE", () => {
  const folder = mkdtempSync(join(tmpdir(), "davit-firmware-"));
  const assets = join(folder, "assets");
  let davit: DavitProcess | undefined;

  beforeAll(() => {
    execFileSync(join(import.meta.dirname, "boot-assets.sh"), [join(assets, "quickstart")]);
  }, 60_000);

  afterEach(async () => {
    await davit?.stop();
    davit = undefined;
  });

  afterAll(() => rmSync(folder, { recursive: true }));

  async function boot(
    manifests: string,
    typist?: Typist,
  ): Promise<{ readonly transcript: string; readonly port: string }> {
    const dataDir = mkdtempSync(join(folder, "data-"));
    davit = await startDavit({ manifests, dataDir, args: ["--assets-dir", assets] });
    const { port } = new URL(davit.bootUrl);
    const bootfile = `http://${hostSeenByMachine}:${port}/boot.ipxe`;
    const options = { timeoutMs: bootLimitMs, ...(typist && { typist }) };
    const transcript = await bootMachine({ ...quickstartMachine, bootfile }, options);
    onTestFailed(() => void process.stderr.write(`${tail(transcript)}\n`));
    return { transcript, port };
  }

  it(
    "boots Linux from its Profile, and finds its own configs in it",
    async () => {
      const manifests = join(folder, "manifests");
      mkdirSync(manifests);
      writeFileSync(join(manifests, "check.yaml"), checkManifest);

      const { transcript, port } = await boot(manifests);

      expect(linesWith(transcript, "CHECK failed")).toEqual([]);
      expect(transcript).toContain("DAVIT-CHECK PASSED");
      const commandLine = `console=ttyS0 panic=-1 davit.url=http://127.0.0.1:${port} davit.check=1 role=web`;
      expect(linesWith(transcript, "KERNEL-COMMAND-LINE")).toEqual([
        `KERNEL-COMMAND-LINE ${commandLine} booted=${mac.replaceAll(":", "-")}`,
      ]);
      expect(JSON.parse(body(transcript, "ignition"))).toEqual({ ignition: { version: "3.4.0" }, role: "web" });
      expect(JSON.parse(body(transcript, "generic"))).toEqual({ uuid, mac, rawQuery: `uuid=${uuid}&mac=${mac}` });
      expect(body(transcript, "metadata").split("\n")).toEqual([
        "RACK_ROW=7",
        "ROLE=web",
        `MAC=${mac}`,
        `REQUEST_QUERY_MAC=${mac}`,
        `REQUEST_QUERY_UUID=${uuid}`,
        `REQUEST_RAW_QUERY=uuid=${uuid}&mac=${mac}`,
      ]);
    },
    testLimitMs,
  );

  it(
    "boots the quickstart to a shell prompt",
    async () => {
      const quickstart = join(import.meta.dirname, "../../manifests/quickstart");

      const { transcript } = await boot(quickstart, { waitsFor: "davit:/# ", types: "uname -o; exit\n" });

      expect(transcript).toContain("booted by davit");
      expect(transcript).toContain(`  MAC=${mac}\n`);
      expect(transcript).toContain("davit:/# uname -o; exit\nGNU/Linux\n");
    },
    testLimitMs,
  );
});

function linesWith(transcript: string, text: string): readonly string[] {
  return transcript.split("\n").filter((line) => line.includes(text));
}

/** What the guest got for one of its requests. */
function body(transcript: string, name: string): string {
  const [, text = ""] = new RegExp(`^BEGIN ${name}\n(.*?)\nEND ${name}$`, "ms").exec(transcript) ?? [];
  return text.trimEnd();
}
