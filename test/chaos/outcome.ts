/** What machines get once nothing changes any more, held against what the objects say. */

import { systemClock } from "../../src/lib/clock.ts";
import type { Witness } from "./witness.ts";
import { type Given, givenBy, type Machine, type World } from "./world.ts";

export interface Outcome {
  readonly witness: Witness;
  readonly davits: readonly string[];
  readonly machines: readonly Machine[];
  readonly world: World;
}

const patienceMs = 120_000;

/**
 * Machines that get another boot than the objects give, once that has had time to settle; each with what it gets. A
 * machine that was answered right once is not asked again: on a busy computer, a davit may be in doubt for a second.
 */
export async function unsettled({ witness, davits, machines, world }: Outcome): Promise<readonly string[]> {
  const limit = systemClock.monotonicMs() + patienceMs;
  let asked = davits.flatMap((davit) => machines.map((machine) => ({ davit, machine, wrong: "" })));
  for (;;) {
    const left: typeof asked = [];
    for (const { davit, machine } of asked) {
      const given = givenBy(world, machine.labels);
      const { got, why } = gotFrom(await witness.answer(davit, machine, "ipxe"));
      const wrong = `${davit} ${machine.name}: ${got}${why} for ${JSON.stringify(given)}`;
      if (!isAnswer(given, got)) left.push({ davit, machine, wrong });
    }
    asked = left;
    if (asked.length === 0 || systemClock.monotonicMs() > limit) return asked.map(({ wrong }) => wrong);
    await systemClock.sleep(500);
  }
}

/** What an answer boots, or its status, with the reason of a 503. */
function gotFrom({ status, body }: { readonly status: number; readonly body: string }) {
  const kernel = /^kernel \S*\/assets\/([^\s?]+)/m.exec(body)?.[1];
  const got = kernel ?? (/^exit/m.test(body) ? "local" : status);
  return { got, why: status === 503 ? ` (${body.trim()})` : "" };
}

function isAnswer(given: Given, got: string | number): boolean {
  // What a permit still opens is the ledger's to say.
  if (typeof given === "object" && given.grants !== undefined) return [given.kernel, "local", 503].includes(got);
  if (typeof given === "object") return got === given.kernel;
  if (given === "local") return got === "local";
  if (given === "wait") return got === 503;
  return given === "unsure" || got === 404;
}
