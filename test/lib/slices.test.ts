import { expect, it } from "vitest";
import { nextTurn, Turns } from "../../src/lib/slices.ts";

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

it("who comes when nobody waits any more gets a turn, too", async () => {
  const turns = new Turns();
  await turns.next();
  await nextTurn();
  await turns.next();
  expect(turns).toBeInstanceOf(Turns);
});
