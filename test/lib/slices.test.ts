import { expect, it } from "vitest";
import { inSlices, nextTurn, Turns } from "../../src/lib/slices.ts";

it("of several who take turns one gets on each time, and all of them alike", async () => {
  const turns = new Turns();
  const seen: string[] = [];
  const work = async (name: string) => {
    for (let slice = 0; slice < 3; slice++) {
      await turns.next();
      seen.push(name);
    }
  };
  const others = async () => {
    for (let turn = 0; turn < 6; turn++) {
      await nextTurn();
      seen.push("-");
    }
  };
  await Promise.all([work("a"), work("b"), others()]);
  expect(seen.join("").replaceAll(/-+/g, "-").replace(/^-|-$/g, "")).toBe("a-b-a-b-a-b");
});

it("a turn has as much work as its size allows, and larger work has a turn of its own", async () => {
  const turns = new Turns(10);
  let others = 0;
  let isOver = false;
  const counting = (async () => {
    for (; !isOver; others++) await nextTurn();
  })();
  const costs = [4, 6, 1, 10, 25, 5, 5];
  const seen = await Promise.all(costs.map((cost) => turns.next(cost).then(() => others)));
  isOver = true;
  await counting;
  expect(seen.map((at) => at - (seen[0] ?? 0))).toEqual([0, 0, 1, 2, 3, 4, 4]);
});

it("who comes when nobody waits any more gets a turn, too", async () => {
  const turns = new Turns();
  await turns.next();
  await nextTurn();
  await turns.next();
  expect(turns).toBeInstanceOf(Turns);
});

it("work in slices lets others have their turn at each of its yields, and only there", async () => {
  function* work(yields: number) {
    for (let slice = 0; slice < yields; slice++) yield undefined;
    return "done";
  }
  let turns = 0;
  const others = async () => {
    for (; turns < 10; turns++) await nextTurn();
  };
  expect(inSlices(work(0))).toBe("done");
  const running = others();
  expect(await inSlices(work(3))).toBe("done");
  expect(turns).toBeGreaterThanOrEqual(2);
  expect(turns).toBeLessThan(10);
  await running;
});
