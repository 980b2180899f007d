/** When a live page is made again. */

import { expect, it } from "vitest";
import { liveStream } from "../../../src/http/console/routes.ts";
import { nextTurn } from "../../../src/lib/slices.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";

it("a page that was made of rows from before the last change is made again at the next turn", async () => {
  const clock = new FakeClock();
  const stopping = new AbortController();
  const pages = ["before", "after", "after"];
  let made = 0;
  const stream = liveStream({
    revision: () => (made === 0 ? undefined : "one"),
    render: () => Promise.resolve(pages[made++]),
    clock,
    signal: stopping.signal,
  });
  let got = "";
  stream.on("data", (piece) => {
    got += String(piece);
  });
  await untilSleeping(clock);
  expect(got).toBe("retry: 2000\n\ndata: before\n\n");
  for (let turn = 0; turn < 4; turn++) {
    await clock.advance(500);
    await untilSleeping(clock);
  }
  expect(got).toBe("retry: 2000\n\ndata: before\n\ndata: after\n\n");
  expect(made).toBe(2);
  stopping.abort();
});

async function untilSleeping(clock: FakeClock): Promise<void> {
  do await nextTurn();
  while (clock.sleeping === 0);
}
