/**
 * What expressions cost a request: 5,000 machines of one Group that lists them beside 5,000 that each have a Group, and
 * the list beside 1,000 Groups of patterns.
 */

import { bootContender, startBoot, threadOptions, withStops } from "./boot-contenders.ts";
import { compared, measureAll, type Pace } from "./boot-speed.ts";
import type { AddFigure } from "./run.ts";

const machines = 5_000;

export async function measureExpressions(pace: Pace & { readonly threads: number }, add: AddFigure): Promise<void> {
  await withStops(async (stops) => {
    const start = async (shape: "labels" | "list" | "patterns") =>
      bootContender("ipxe", await startBoot(machines, { stops, shape, options: threadOptions(pace.threads) }));
    const labels = await start("labels");
    const list = await start("list");
    const patterns = await start("patterns");
    const speedOf = await measureAll([labels, list, patterns], pace, stops);
    const peer = "5,000 Groups of one machine each";
    const { cpu, ...speed } = compared(speedOf(list), speedOf(labels));
    const goal = { of: "ratio", atMost: 1.11 } as const;
    add({ what: "one Group that lists 5,000 machines", peer, ...speed, cpu: { ...cpu, goal } });
    const what = "the same beside 1,000 Groups of `serial Prefix`";
    add({ what, peer, ...compared(speedOf(patterns), speedOf(labels)) });
  });
}
