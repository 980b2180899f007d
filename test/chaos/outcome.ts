/** What machines get once nothing changes any more, held against what the objects say. */

import { systemClock } from "../../src/lib/clock.ts";
import type { Machine, Witness } from "./witness.ts";
import { type Given, givenBy, type World } from "./world.ts";

export interface Outcome {
  readonly witness: Witness;
  readonly davits: readonly string[];
  readonly machines: readonly Machine[];
  readonly world: World;
}

const patienceMs = 120_000;

/** Machines that get another boot than the objects give, once that has had time to settle; each with what it gets. */
export async function unsettled(outcome: Outcome): Promise<readonly string[]> {
  const limit = systemClock.monotonicMs() + patienceMs;
  for (;;) {
    const wrong = await wrongAnswers(outcome);
    if (wrong.length === 0 || systemClock.monotonicMs() > limit) return wrong;
    await systemClock.sleep(500);
  }
}

async function wrongAnswers({ witness, davits, machines, world }: Outcome): Promise<readonly string[]> {
  const wrong: string[] = [];
  for (const davit of davits) {
    for (const machine of machines) {
      const given = givenBy(world, machine.labels);
      const { got, why } = gotFrom(await witness.answer(davit, machine, "ipxe"));
      if (!isAnswer(given, got)) wrong.push(`${davit} ${machine.name}: ${got}${why} for ${JSON.stringify(given)}`);
    }
  }
  return wrong;
}

/** What an answer boots, or its status, with the reason of a 503. */
function gotFrom({ status, body }: { readonly status: number; readonly body: string }) {
  const kernel = /^kernel \S*\/assets\/(\S+)/m.exec(body)?.[1];
  const got = kernel ?? (/^exit/m.test(body) ? "local" : status);
  return { got, why: status === 503 ? ` (${body.trim()})` : "" };
}

function isAnswer(given: Given, got: string | number): boolean {
  if (typeof given === "object") return got === given.kernel;
  if (given === "local") return got === "local";
  if (given === "wait") return got === 503;
  return given === "unsure" || got === 404;
}
