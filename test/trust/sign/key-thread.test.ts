import { afterEach, describe, expect, it } from "vitest";
import { KeyThread } from "../../../src/trust/sign/key-thread.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";

const threads: KeyThread[] = [];

afterEach(async () => {
  await Promise.all(threads.splice(0).map((thread) => thread.stop()));
});

const bytesOf = (text: string) => new TextEncoder().encode(text);

async function start(clock = new FakeClock(1_000)): Promise<KeyThread> {
  const material = { bytes: new Uint8Array(0), passphrase: undefined };
  const worker = new URL("./mortal-sign-worker.ts", import.meta.url);
  const thread = await KeyThread.start({ material, clock, worker });
  threads.push(thread);
  return thread;
}

describe("the thread of a key", () => {
  it("answers each with its own, however many ask", async () => {
    const thread = await start();
    const texts = Array.from({ length: 500 }, (_, at) => `text ${at}`);
    const signed = await Promise.all(texts.map((text) => thread.sign(bytesOf(text))));
    expect(signed.map(({ armored }) => armored)).toEqual(texts.map((text) => `${text} at 1000`));
  });

  it("that dies refuses what it has, and is started anew for what waits", async () => {
    const thread = await start();
    const texts = ["xyz", "beside it", "and this", "this, too", "behind them"];
    const asked = await Promise.allSettled(texts.map((text) => thread.sign(bytesOf(text))));
    const refused = { status: "rejected", reason: expect.objectContaining({ reason: "failed" }) };
    expect(asked.slice(0, 4)).toEqual([refused, refused, refused, refused]);
    expect(asked[4]).toMatchObject({ value: { armored: "behind them at 1000" } });
    expect((await thread.sign(bytesOf("later"))).armored).toBe("later at 1000");
  });

  it("signs what one client asks for after few of another's many", async () => {
    const thread = await start();
    const order: string[] = [];
    const sign = async (text: string, client: string) => {
      await thread.sign(bytesOf(text), { name: text, isShared: false, client });
      order.push(text);
    };
    const flood = Array.from({ length: 500 }, (_, at) => sign(`flood ${at}`, "192.0.2.66"));
    await Promise.all([...flood, sign("mine", "192.0.2.1")]);
    expect(order.indexOf("mine")).toBeLessThan(8);
  });

  it("refuses what it cannot sign, and goes on", async () => {
    const thread = await start();
    await expect(thread.sign(bytesOf("?"))).rejects.toMatchObject({ reason: "failed" });
    expect((await thread.sign(bytesOf("!"))).armored).toBe("! at 1000");
  });

  it("never says that it signed before its key was found good, though the clock steps back", async () => {
    const clock = new FakeClock(50_000);
    const thread = await start(clock);
    clock.stepWallClock(-20_000);
    expect((await thread.sign(bytesOf("a"))).armored).toBe("a at 50000");
    clock.stepWallClock(30_000);
    expect((await thread.sign(bytesOf("b"))).armored).toBe("b at 60000");
  });

  it("refuses more than may wait, and takes the next when there is room", async () => {
    const thread = await start();
    const half = () => new Uint8Array(33 * 1024 * 1024);
    const first = thread.sign(half());
    await expect(thread.sign(half())).rejects.toMatchObject({ reason: "busy" });
    await first;
    expect((await thread.sign(half())).binary.length).toBe(half().length);
  });

  it("refuses more signatures at a time than 4,096", async () => {
    const thread = await start();
    const asked = Array.from({ length: 4_097 }, (_, at) => thread.sign(bytesOf(`${at}`)));
    const outcomes = await Promise.allSettled(asked);
    expect(outcomes.map(({ status }) => status).lastIndexOf("fulfilled")).toBe(4_095);
    expect(outcomes[4_096]).toMatchObject({ status: "rejected", reason: { reason: "busy" } });
  });

  it("signs what waits before it retires, and nothing after", async () => {
    const thread = await start();
    const asked = thread.sign(bytesOf("last"));
    await thread.retire();
    expect((await asked).armored).toBe("last at 1000");
    await expect(thread.sign(bytesOf("after"))).rejects.toMatchObject({ reason: "failed" });
  });
});
