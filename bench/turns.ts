/** Runs rounds in which all contenders take turns, so that other work disturbs all of them alike. */

/** @returns the results of each contender, in the order of the rounds. */
export async function takeTurns<Contender, Found>(
  contenders: readonly Contender[],
  rounds: number,
  measure: (contender: Contender) => Promise<Found>,
): Promise<(contender: Contender) => readonly Found[]> {
  const found = new Map(contenders.map((contender): [Contender, Found[]] => [contender, []]));
  for (let round = 0; round < rounds; round++) {
    // A different one begins each round, because the first one finds a cooler machine.
    const first = round % contenders.length;
    for (const contender of [...contenders.slice(first), ...contenders.slice(0, first)]) {
      found.get(contender)?.push(await measure(contender));
    }
  }
  return (contender) => found.get(contender) ?? [];
}
