/** The screen of davit's own health. */

import { describe, expect, it } from "vitest";
import { plotHtml } from "../../../src/http/console/pages/health-page.ts";
import { maxSamples, sampleMs, sampleRequests } from "../../../src/http/console/state/request-rates.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { createMetrics } from "../../../src/lib/metrics/metrics.ts";
import { nextTurn } from "../../../src/lib/slices.ts";
import { soleMembership } from "../../../src/store/core/log-port.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { entry } from "../fake-machines.ts";
import { consoleListener, soleStore } from "./console-listener.ts";

const listener = consoleListener();
const hostile = `"><img src=x>`;

describe("the health screen", () => {
  it("has the answers of /readyz and what needs a person", async () => {
    const { ask } = await listener.start({ attention: [`store: ${hostile}`] });
    const { body } = await ask("/console/health");
    expect(body).toContain('davit 1.2.3 is <span class="state booting">ready</span>');
    expect(body).toContain("<li>boot: ok</li>");
    expect(body).toContain("store: &quot;&gt;&lt;img src=x&gt;");
    expect(body).not.toContain("<img");
  });

  it("says why davit is not ready", async () => {
    const { ask } = await listener.start({ notReady: "the source's first list is not in the store" });
    const { body } = await ask("/console/health");
    expect(body).toContain('<span class="state failed">not ready</span>');
    expect(body).toContain("the source&#39;s first list is not in the store");
  });

  it("has the store with its size, the ledger, and the history", async () => {
    listener.fake.entries.push(entry("1", {}), entry("2", {}));
    listener.fake.problems.push("the mark of the ledger is missing");
    const { ask } = await listener.start();
    const { body } = await ask("/console/health");
    expect(body).toContain("512 KiB of 1 MiB, 50 %");
    expect(body).toMatch(/<meter min="0" max="1048576" high="838861" value="524288"\s+aria-label="Size of the store">/);
    expect(body).toContain("<dt>Machines</dt><dd>2</dd>");
    expect(body).toContain("the mark of the ledger is missing");
    expect(body).toContain("<dt>Requests that are not in it</dt><dd>none</dd>");
    expect(body).toContain("This davit alone writes the store.");
    expect(body).toContain("No davit boot follows this davit now.");
  });

  it("has the members, and the followers with what they lack", async () => {
    const member = (id: string) => ({ id, name: `davit-${id}`, clientUrls: [`https://davit-${id}.example:2379`] });
    const members = [member("1"), member("2"), { ...member("3"), name: hostile }];
    const completeAtMs = systemClock.monotonicMs();
    const membership = { ...soleMembership(() => 0), isLeader: false, leaderId: "2", completeAtMs, members };
    const sinceMs = systemClock.monotonicMs();
    const { ask } = await listener.start({
      store: { ...soleStore, membership },
      followers: [
        { name: "davit-boot-0", address: "192.0.2.7", sinceMs, behind: 0, isReading: true },
        { name: undefined, address: hostile, sinceMs, behind: undefined, isReading: false },
      ],
    });
    const { body } = await ask("/console/health");
    expect(body).toMatch(/davit-1 \(this one\)<\/th>\n<td>follows the leader<\/td>\n<td>\d s<\/td>/);
    expect(body).toMatch(/davit-2<\/th>\n<td>leads<\/td>/);
    expect(body).toMatch(/davit-boot-0<\/th>\n<td>192\.0\.2\.7<\/td>\n<td><time [^>]*>\d s<\/time><\/td>\n<td>0<\/td>/);
    expect(body).toContain("it gets everything now");
    expect(body).not.toContain("<img");
  });

  it("of a follower has the davit that it follows, and no store", async () => {
    const [gone, connected] = [await listener.start({ follows: true }), await followerAt(7)];
    expect((await gone.ask("/console/health")).body).toContain("machines are answered from the last copy");
    const { body } = await connected.ask("/console/health");
    expect(body).toContain("https://davit.example:2379");
    expect(body).toContain("index 7");
    expect(body).not.toContain("<h2>Store</h2>");
  });

  it("has the last warnings and errors, and no line of another level", async () => {
    const { ask, log } = await listener.start();
    log.info({}, "nothing to see");
    log.warn({ name: hostile }, "a machine is odd");
    const { body } = await ask("/console/health");
    expect(body).toContain("a machine is odd");
    expect(body).toContain("name=&quot;&gt;&lt;img");
    expect(body).not.toContain("nothing to see");
    expect(body).not.toContain("<img");
  });

  it("needs nothing that its content policy forbids", async () => {
    const { ask } = await listener.start();
    const { body, headers } = await ask("/console/health");
    expect(headers["content-security-policy"]).toContain("default-src 'none'");
    expect(body).not.toMatch(/\sstyle=|\son\w+=|<style|<script(?! type="module" src="\/console\/console\.js")/);
  });
});

function followerAt(index: number) {
  const followed = { isConnected: true, isWithheld: false, index, ageSeconds: 1, provenAtMs: 0 };
  return listener.start({ follows: true, followed });
}

describe("the rates of requests", () => {
  function sampled() {
    const metrics = createMetrics("1");
    const clock = new FakeClock();
    const stop = new AbortController();
    const samples = sampleRequests({ metrics, clock, signal: stop.signal });
    const pass = async (count = 1) => {
      for (let at = 0; at < count; at++) {
        while (clock.sleeping === 0) await nextTurn();
        await clock.advance(sampleMs);
      }
      while (clock.sleeping === 0) await nextTurn();
    };
    return { metrics, samples, pass, stop: () => stop.abort() };
  }

  it("are those of each ten seconds, and slow assets are no slow answers", async () => {
    const { metrics, samples, pass, stop } = sampled();
    await pass();
    for (let at = 0; at < 20; at++) {
      metrics.bootRequests.inc({ endpoint: "ipxe", code: at < 5 ? 503 : 200 });
      metrics.bootRequestSeconds.observe({ endpoint: "ipxe" }, 0.002);
    }
    metrics.bootRequestSeconds.observe({ endpoint: "assets" }, 100);
    await pass();
    await pass();
    expect(samples).toEqual([
      { rate: 0, failedRate: 0, p99Seconds: undefined },
      { rate: 2, failedRate: 0.5, p99Seconds: 0.0025 },
      { rate: 0, failedRate: 0, p99Seconds: undefined },
    ]);
    stop();
  });

  it("are kept for an hour", async () => {
    const { samples, pass, stop } = sampled();
    await pass(maxSamples + 3);
    expect(samples).toHaveLength(maxSamples);
    stop();
  });
});

describe("a plot", () => {
  it("has its numbers in words, and a gap where there is no value", () => {
    const drawn = String(plotHtml({ title: hostile, values: [1, undefined, 2, Number.POSITIVE_INFINITY], width: 10 }));
    expect(drawn).toContain('role="img" aria-label="&quot;&gt;&lt;img src=x&gt;"');
    expect(drawn).toContain('d="M6 30h1M8 0h1L9 0h1"');
  });

  it("is flat without requests", () => {
    expect(String(plotHtml({ title: "x", values: [0, 0], width: 2 }))).toContain('d="M0 60h1L1 60h1"');
  });
});
