import { afterEach, describe, expect, it } from "vitest";
import type { PartJob } from "../../src/boot/making/boot-maker.ts";
import { RenderThread } from "../../src/boot/making/render-thread.ts";
import { FakeClock } from "../helpers/fake-clock.ts";

const stops: (() => Promise<void>)[] = [];

afterEach(async () => {
  while (stops.length > 0) await stops.pop()?.();
});

const standIn = new URL("./slow-worker.ts", import.meta.url);

function startThread(worker?: URL): { readonly thread: RenderThread; readonly clock: FakeClock } {
  const clock = new FakeClock();
  const thread = new RenderThread({ clock, ...(worker && { worker }) });
  stops.push(() => thread.stop());
  return { thread, clock };
}

function job(text: string, metadata = {}): PartJob {
  const group = { metadata, selector: { role: "web" } };
  const asking = { labels: new Map([["serial", "7"]]), rawQuery: "serial=7" };
  return {
    kind: "part",
    part: "generic",
    text,
    raw: false,
    group,
    defaults: { os: "x" },
    davitUrl: "http://d",
    ...asking,
  };
}

const customer = { namespace: "lab", client: "192.0.2.1" };

describe("the thread", () => {
  it("makes what the main thread would, of all that there is", async () => {
    const { thread } = startThread();
    const made = job("{{a}} {{os}} {{role}} {{davit.url}}", { a: { b: [1] } });
    expect(await thread.run(made, customer)).toMatchObject({
      made: { rendered: { body: "[object Object] x web http://d" } },
      isOfRequest: false,
    });
    expect(await thread.run(job("{{request.query.serial}}"), customer)).toMatchObject({
      made: { rendered: { body: "7" } },
      isOfRequest: true,
    });
  });

  it("says where a template fails", async () => {
    const { thread } = startThread();
    const outcome = await thread.run(job("a\n {{absent}}"), customer);
    expect(outcome).toMatchObject({
      refused: { reason: "undefinedVariable", position: { line: 2, column: 4 }, variable: "absent" },
      isFinal: true,
    });
  });

  it("is replaced when it dies over a job, and the job has failed", async () => {
    const { thread } = startThread(standIn);
    expect(await thread.run(job("dies"), customer)).toMatchObject({ refused: { reason: "stopped" }, isFinal: false });
    expect(await thread.run(job("a"), customer)).toMatchObject({ made: { rendered: { body: "a" } } });
  });

  it("is replaced when a job takes too long", async () => {
    const { thread, clock } = startThread(standIn);
    const outcome = thread.run(job("never ends"), customer);
    await clock.advance(10_000);
    expect(await outcome).toMatchObject({ refused: { reason: "stopped" }, isFinal: false });
    expect(await thread.run(job("a"), customer)).toMatchObject({ made: { rendered: { body: "a" } } });
  });

  it("has turns for tenants: one waits for one job of another's, however many those are", async () => {
    const { thread } = startThread(standIn);
    const order: string[] = [];
    const many = ["a1", "a2", "a3", "a4"].map((text) =>
      thread.run(job(text), { namespace: "a", client: text }).then(() => order.push(text)),
    );
    const one = thread.run(job("b1"), { namespace: "b", client: "b" }).then(() => order.push("b1"));
    await Promise.all([...many, one]);
    expect(order).toEqual(["a1", "a2", "b1", "a3", "a4"]);
  });

  it("refuses the client who asks for most once half of the places are taken, and no other", async () => {
    const { thread } = startThread(standIn);
    const asked = Array.from({ length: 40 }, (_, at) =>
      thread.run(job(`${at}`), { namespace: `n${at % 2}`, client: "greedy" }).then(
        () => "made",
        (error) => error.reason,
      ),
    );
    const other = thread.run(job("other"), { namespace: "n2", client: "modest" });
    expect(await other).toMatchObject({ made: { rendered: { body: "other" } } });
    const ends = await Promise.all(asked);
    expect(ends).toEqual([...Array(32).fill("made"), ...Array(8).fill("busy")]);
  });

  it("refuses those who wait when it is stopped, and everybody after that", async () => {
    const { thread } = startThread(standIn);
    const waiting = ["a", "b"].map((text) => thread.run(job(text), customer).catch((error) => error.reason));
    await thread.stop();
    expect(await Promise.all(waiting)).toEqual(["notReady", "notReady"]);
    await expect(thread.run(job("c"), customer)).rejects.toMatchObject({ reason: "notReady" });
  });
});
