import { expect, it } from "vitest";
import { FairQueue, Places } from "../../src/lib/fair-queue.ts";

function drained(queue: FairQueue<string>): string {
  const items: string[] = [];
  for (let item = queue.shift(); item !== undefined; item = queue.shift()) items.push(item);
  return items.join(" ");
}

it("gives each name its turn, and first come first served within a name", () => {
  const queue = new FairQueue<string>();
  for (const item of ["a1", "a2", "a3", "b1", "c1", "c2"]) queue.push([item.slice(0, 1)], item);
  expect(queue.length).toBe(6);
  expect(drained(queue)).toBe("a1 b1 c1 a2 c2 a3");
  expect(queue.length).toBe(0);
});

it("gives turns within a turn: a tenant with many clients has no more than one with few", () => {
  const queue = new FairQueue<string>();
  for (const client of ["x", "y", "z"]) for (const at of [1, 2]) queue.push(["many", client], `${client}${at}`);
  queue.push(["few", "p"], "p1");
  queue.push(["few", "p"], "p2");
  expect(drained(queue)).toBe("x1 p1 y1 p2 z1 x2 y2 z2");
});

it("who comes later than others of a name waits behind them, and who comes new goes first in his turn", () => {
  const queue = new FairQueue<string>();
  queue.push(["a"], "a1");
  queue.push(["a"], "a2");
  expect(queue.shift()).toBe("a1");
  queue.push(["b"], "b1");
  queue.push(["a"], "a3");
  expect(drained(queue)).toBe("a2 b1 a3");
});

it("is empty when it is", () => {
  expect(new FairQueue<string>().shift()).toBeUndefined();
});

it("lets no more in than there are places, and the next one as soon as one has left", async () => {
  const places = new Places(2);
  const entered: number[] = [];
  const enter = async (name: number) => {
    const leave = await places.hold([]);
    entered.push(name);
    return leave;
  };
  const [first, second] = [await enter(1), await enter(2)];
  expect(places.tryEnter()).toBe(false);
  const others = [enter(3), enter(4)];
  await Promise.resolve();
  expect([entered, places.waiting]).toEqual([[1, 2], 2]);
  first();
  first();
  await others[0];
  expect(entered).toEqual([1, 2, 3]);
  second();
  await others[1];
  expect([entered, places.waiting]).toEqual([[1, 2, 3, 4], 0]);
  for (const _ of [3, 4]) places.leave();
  expect([places.tryEnter(), places.tryEnter(), places.tryEnter()]).toEqual([true, true, false]);
});

it("frees the place of work that fails", async () => {
  const places = new Places(1);
  await expect(places.run([], () => Promise.reject(new Error("failed")))).rejects.toThrow("failed");
  expect(await places.run([], async () => "done")).toBe("done");
});
