/** A wall clock that is set reopens no grant: davit as a process under libfaketime, as in `wall-clock.test.ts`. */

import { writeFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { DavitProcess } from "../../tools/davit-process.ts";
import { bootOf, hourMs, InstallWorld, ledgerId } from "../helpers/install-world.ts";
import { fakeTimeLibrary, missing } from "../helpers/requirements.ts";

const soon = { timeout: 60_000, interval: 100 };
const noPermit = "503 no permit to install";

describe.skipIf(missing("faketime"))("a grant", { timeout: 180_000 }, () => {
  let world: InstallWorld;
  beforeEach(async () => {
    world = await InstallWorld.make();
    setClock("+0");
  });
  afterEach(() => world.stop());

  function setClock(offset: string): void {
    writeFileSync(world.at("clock"), offset);
  }

  async function serve(): Promise<DavitProcess> {
    const variables = {
      LD_PRELOAD: fakeTimeLibrary,
      FAKETIME_TIMESTAMP_FILE: world.at("clock"),
      FAKETIME_NO_CACHE: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
    };
    return await world.serve([], { variables });
  }

  it("that is over stays over when the clock is set back, and after a restart", async () => {
    const davit = await serve();
    const until = new Date(Date.now() + 2 * hourMs).toISOString();
    await world.write({ grant: { generation: 1, ledger: await ledgerId(davit), until } });
    await expect.poll(() => bootOf(davit, 1), soon).toBe("install");
    setClock("+3h");
    await expect.poll(() => bootOf(davit, 2), soon).toBe(noPermit);
    setClock("-1d");
    await setTimeout(3_000);
    expect(await bootOf(davit, 2)).toBe(noPermit);
    await davit.stop("SIGKILL");
    const again = await serve();
    expect(await bootOf(again, 2)).toBe(noPermit);
  });
});
