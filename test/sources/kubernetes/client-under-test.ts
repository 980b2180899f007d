import type { Log } from "../../../src/lib/log.ts";
import { createLog } from "../../../src/lib/logging/create-log.ts";
import { createMetrics } from "../../../src/lib/metrics/metrics.ts";
import { type JsonObject, parseJsonObject } from "../../../src/model/json.ts";
import { ApiClient } from "../../../src/sources/kubernetes/client/client.ts";
import type { ClusterAccess } from "../../../src/sources/kubernetes/client/kube-config.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";

/** Everything that a part needs to talk to a server: a client, a clock that a test moves, a log that it reads. */
export class TestBed {
  readonly clock = new FakeClock();
  readonly metrics = createMetrics("1.2.3");
  readonly random = () => 0;
  /** Of watches. */
  readonly limits = { silenceMs: 150_000 };
  readonly logLines: string[] = [];
  readonly log: Log = createLog({
    level: "debug",
    format: "json",
    destination: { write: (line: string) => void this.logLines.push(line) },
  });
  readonly client: ApiClient;
  renewals = 0;
  token = "first";

  constructor(url: string, limits: { readonly timeoutMs?: number; readonly maxBodyBytes?: number } = {}) {
    const access: ClusterAccess = {
      server: url,
      namespace: "default",
      credentials: () => Promise.resolve({ headers: { authorization: `Bearer ${this.token}` }, tls: {} }),
      renew: () => {
        this.renewals += 1;
        this.token = "second";
      },
    };
    this.client = new ApiClient({ ...this, access, version: "1.2.3", limits });
  }

  /** Lines of the log with this message. */
  told(message: string): readonly JsonObject[] {
    const lines = this.logLines.map(parseJsonObject).filter((line) => line !== undefined);
    return lines.filter(({ msg }) => msg === message);
  }

  /** The lines of a metric that are not zero, sorted. */
  async measured(name: string): Promise<readonly string[]> {
    const lines = (await this.metrics.text()).split("\n").filter((line) => line.startsWith(name));
    return lines.filter((line) => !line.endsWith(" 0")).toSorted();
  }
}

/** Lets events run until a fact holds. */
export async function until(fact: () => boolean): Promise<void> {
  while (!fact()) await new Promise((resolve) => setImmediate(resolve));
}
