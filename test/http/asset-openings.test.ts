import { expect, it } from "vitest";
import { Openings } from "../../src/http/assets/streams.ts";

it("lets no more in than its limit, and the next one as soon as one has left", async () => {
  const openings = new Openings(2);
  const entered: number[] = [];
  const enter = async (name: number) => {
    const leave = await openings.enter();
    entered.push(name);
    return leave;
  };
  const [first, second] = [await enter(1), await enter(2)];
  const others = [enter(3), enter(4)];
  await Promise.resolve();
  expect(entered).toEqual([1, 2]);
  first();
  first();
  await others[0];
  expect(entered).toEqual([1, 2, 3]);
  second();
  await others[1];
  expect(entered).toEqual([1, 2, 3, 4]);
});
