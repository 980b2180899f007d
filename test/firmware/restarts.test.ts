import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Loader, quickstartMachine } from "../../tools/firmware/machine.ts";
import { readPage } from "../helpers/page-examples.ts";
import { missing } from "../helpers/requirements.ts";
import type { Asked } from "./boot-line.ts";
import { expectDiskBoot } from "./disk-boot.ts";
import { addIgnitionAssets, expectProvisioned } from "./ignition-guest.ts";
import { type LinedServer, startLinedServer } from "./lined-server.ts";
import { bootTestLimitMs, startLimitMs } from "./machine-boot.ts";
import { recordOutcome, situations } from "./outcome-table.ts";
import { makePatientLoader, patientScript } from "./patient-script.ts";

const guestIsMissing = missing("qemu", "ipxe-rom", "cloud-kernel", "busybox-static", "ignition");
const kernel = "/assets/quickstart/vmlinuz";
const lastInitrd = "/assets/guests/ignition.gz";

/** What a boot asks for when nothing goes wrong. */
const script = ["/boot.ipxe 200", "/ipxe 200"];
const linux = [`${kernel} 200`, "/assets/quickstart/initrd.gz 200", `${lastInitrd} 200`];
const provisioned = "Linux, provisioned";
const provisioning = ["/ignition 200", "/assets/guests/tool 200"];

describe.skipIf(guestIsMissing)("a machine that boots meanwhile", () => {
  let server: LinedServer;
  let objects: Objects;

  beforeAll(async () => {
    objects = new Objects();
    // What is on disk is not to be served while the objects are away.
    server = await startLinedServer(["--manifests", objects.directory, "--limit", "source-grace=1h"]);
    addIgnitionAssets(server.assets);
    return async () => {
      await server.stop();
      objects.remove();
    };
  }, startLimitMs);
  beforeEach(() => objects.hold(false));

  it(
    "gets through a held Group, two crashes of davit and a time without objects",
    async () => {
      objects.hold(true);
      let isBack = Promise.resolve();
      server.line.expect(
        { path: "/ipxe", status: 503, when: "delivered", does: async () => objects.hold(false) },
        { path: "/ipxe", status: 200, when: "arrived", does: () => restart(server) },
        { path: lastInitrd, status: 200, when: "delivered", does: () => goAway(server) },
        { path: "/ignition", status: 503, when: "delivered", does: async () => objects.bring() },
      );
      // Ignition has found nobody, and asks again.
      const onlooker = {
        waitsFor: "attempt #2",
        does: () => {
          objects.takeAway();
          isBack = Promise.all([server.line.open(), server.startAgain()]).then(() => {});
        },
      };

      const { screen, seconds } = await server.boot(machine(server.loader), onlooker);
      await isBack;

      expectProvisioned(screen);
      expect(summary(server.line.asked)).toEqual([
        "/boot.ipxe 200",
        "/ipxe 503",
        "/ipxe 200",
        ...linux,
        "/ignition 503",
        ...provisioning,
      ]);
      recordOutcome(situations.story, "biosIpxe", { result: provisioned, seconds });
    },
    bootTestLimitMs,
  );

  describe.skipIf(missing("all-firmware"))("and alone", () => {
    it(
      "waits until davit has its objects",
      async () => {
        await server.crash();
        objects.takeAway();
        const isBack = server.startAgain();
        server.line.expect({ path: "/ipxe", status: 503, when: "delivered", does: async () => objects.bring() });

        const { screen, seconds } = await server.boot(machine(server.loader));
        await isBack;

        expectProvisioned(screen);

        expect(summary(server.line.asked)).toEqual([
          "/boot.ipxe 200",
          "/ipxe 503",
          "/ipxe 200",
          ...linux,
          ...provisioning,
        ]);
        recordOutcome(situations.notReady, "biosIpxe", { result: provisioned, seconds });
      },
      bootTestLimitMs,
    );

    it(
      "goes on with its disk when davit ends in the middle of the kernel",
      async () => {
        server.line.expect({ path: kernel, status: 200, when: "begun", does: () => restart(server) });

        const { loader } = server;
        const boot = { situation: situations.broken, kind: "biosIpxe", loader, result: "disk" } as const;
        const screen = await expectDiskBoot(server, boot);

        expect(screen).toMatch(/vmlinuz\.\.\..*Input\/output error/);
        expect(summary(server.line.asked)).toEqual([...script, `${kernel} 0`]);
      },
      bootTestLimitMs,
    );

    it(
      "begins anew by the script that asks again, when davit ends in the middle of the kernel",
      async () => {
        server.line.expect({ path: kernel, status: 200, when: "begun", does: () => restart(server) });
        const loader = makePatientLoader(server.makeDirectory(), server.authoritySeenByMachine);

        const { screen, seconds } = await server.boot(machine(loader));

        expectProvisioned(screen);
        expect(screen).toContain("No boot from davit, asking again in 5 seconds\n");
        expect(summary(server.line.asked)).toEqual([...script, `${kernel} 0`, ...script, ...linux, ...provisioning]);
        recordOutcome(situations.patient, "biosIpxe", { result: provisioned, seconds });
      },
      bootTestLimitMs,
    );
  });
});

it("docs/reference/firmware.md shows the script that asks again", () => {
  expect(readPage("reference/firmware.md")).toContain(patientScript("DAVIT:8080").replaceAll(/^(?=.)/gm, "    "));
});

/** A directory with the Profile and the Group of `guests/ignition`, which may be held, or away. */
class Objects {
  readonly #folder = mkdtempSync(join(tmpdir(), "davit-objects-"));
  readonly directory = join(this.#folder, "manifests");
  readonly #file = join(this.directory, "ignition.yaml");
  readonly #elsewhere = join(this.#folder, "ignition.yaml");

  constructor() {
    mkdirSync(this.directory);
    copyFileSync(join(import.meta.dirname, "guests/ignition/ignition.yaml"), this.#file);
  }

  hold(isHeld: boolean): void {
    const text = readFileSync(this.#file, "utf8");
    writeFileSync(this.#elsewhere, text.replace(/hold: \w+/, `hold: ${isHeld}`));
    this.bring();
  }

  takeAway(): void {
    renameSync(this.#file, this.#elsewhere);
  }

  bring(): void {
    renameSync(this.#elsewhere, this.#file);
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true });
  }
}

async function restart(server: LinedServer): Promise<void> {
  await server.crash();
  await server.startAgain();
}

async function goAway(server: LinedServer): Promise<void> {
  await server.crash();
  await server.line.close();
}

function machine(loader: Loader) {
  return { ...quickstartMachine, firmware: "bios", loader } as const;
}

/** Paths with statuses. What was asked again with the same result is there once; what Ignition asked nobody is not. */
function summary(asked: readonly Asked[]): readonly string[] {
  const lines = asked.map(({ target, status }) => `${target.split("?")[0]} ${status}`);
  return lines.filter((line, index) => line !== lines[index - 1] && line !== "/ignition 0");
}
