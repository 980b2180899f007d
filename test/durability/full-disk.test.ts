/** A disk that fills up under 64 writers, as a disk does: in the middle of writes, of which it takes a part. */

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startDavit } from "../../tools/davit-process.ts";
import { seededPick } from "../helpers/fault-files.ts";
import { missing } from "../helpers/requirements.ts";
import { KeysClient } from "./keys-client.ts";
import { Writer } from "./writer.ts";

const writerCount = 64;
const mebibyte = 1024 * 1024;

describe.skipIf(missing("tmpfs"))("on a disk of 16 MiB", () => {
  let disk: string;
  beforeEach(() => {
    disk = mkdtempSync(join(tmpdir(), "davit-full-"));
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=16m", "tmpfs", disk]);
  });
  afterEach(() => {
    execFileSync("umount", [disk]);
    rmdirSync(disk);
  });

  it.each([
    { name: "davit as it is", program: {} },
    { name: "with snapshots that fail, too", program: { program: join(import.meta.dirname, "davit-small-files.ts") } },
  ])(
    "64 writers are told by error 300, lose nothing, and go on when there is room: $name",
    async ({ program }) => {
      const filler = join(disk, "filler");
      writeFileSync(filler, Buffer.alloc(10 * mebibyte));
      const manifests = join(import.meta.dirname, "../../manifests/quickstart");
      const options = { manifests, dataDir: join(disk, "data"), ...program };
      const davit = await startDavit(options);
      const writers = Array.from({ length: writerCount }, (_, number) => {
        return new Writer(`${number}`, { pick: seededPick(number), maxValueChars: 8_000, onAcknowledged: () => {} });
      });
      const clients = writers.map(() => new KeysClient(davit.storeUrl));
      const writeUntil = (isOver: (writer: Writer) => boolean) =>
        Promise.all(writers.map((writer, number) => writer.run(clients[number] ?? fail(), () => isOver(writer))));
      const check = (client: KeysClient) => Promise.all(writers.map((writer) => writer.check(client)));

      await writeUntil(() => writers.every(({ refused }) => refused > 0));
      expect((await fetch(`${davit.storeUrl}/health`)).status).toBe(503);
      await check(clients[0] ?? fail());
      rmSync(filler);
      const before = new Map(writers.map((writer) => [writer, writer.acknowledged]));
      await writeUntil((writer) => writer.acknowledged >= (before.get(writer) ?? 0) + 5);
      await davit.stop("SIGKILL");
      for (const client of clients) client.close();

      const again = await startDavit(options);
      const client = new KeysClient(again.storeUrl);
      // A write that was refused for want of room is not there: nothing else than what was acknowledged is.
      expect(new Set(await check(client))).toEqual(new Set(["none in flight"]));
      client.close();
      await again.stop();
      const count = (name: "acknowledged" | "refused") => writers.reduce((sum, writer) => sum + writer[name], 0);
      process.stdout.write(`full disk: ${count("acknowledged")} writes acknowledged, ${count("refused")} refused\n`);
    },
    120_000,
  );
});

function fail(): never {
  throw new Error("Every writer has a client");
}
