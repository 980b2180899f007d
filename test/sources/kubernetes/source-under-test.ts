import type { JsonObject } from "../../../src/model/json.ts";
import type { ObjectName } from "../../../src/model/objects/source.ts";
import { ClusterSource } from "../../../src/sources/kubernetes/source/cluster-source.ts";
import { TestBed, until } from "./client-under-test.ts";
import type { FakeApiServer } from "./fake-api-server.ts";
import { type FakeServerSuite, useFakeServer } from "./fake-server-suite.ts";

export interface SourceOptions {
  readonly namespaces?: readonly string[] | "all";
  /** As often as never unless given: its waits would be in the way of those that tests look at. */
  readonly proveMs?: number;
}

const neverMs = 86_400_000;

/** A cluster source over a fake API server, and everything that it told. */
export class SourceUnderTest {
  readonly bed: TestBed;
  readonly source: ClusterSource;
  /** Names in the order in which they were told, as `Kind/namespace/name`. */
  readonly changed: string[] = [];
  readonly replaced: string[] = [];
  /** For each call of `listed` whether the view was complete. */
  readonly listed: boolean[] = [];

  constructor(server: Pick<FakeApiServer, "url">, { namespaces = ["default"], proveMs = neverMs }: SourceOptions = {}) {
    this.bed = new TestBed(server.url);
    this.source = new ClusterSource({ ...this.bed, namespaces, proveMs });
    this.source.onHeard((name, isReplaced) => {
      if (isReplaced) this.replaced.push(textOf(name));
    });
  }

  async start(): Promise<void> {
    await this.source.start({
      listed: () => void this.listed.push(this.source.view.complete),
      changed: (names) => void this.changed.push(...names.map(textOf)),
    });
  }

  /** Starts and waits for the first list. */
  async list(): Promise<void> {
    await this.start();
    await until(() => this.listed.length > 0);
  }

  /** Waits until a name is told that was not told before this call. */
  async tells(name: string, act: () => unknown): Promise<void> {
    const count = this.changed.length;
    act();
    await until(() => this.changed.slice(count).includes(name));
  }

  async stop(): Promise<void> {
    await this.source.stop();
    await this.bed.client.stop();
  }
}

/** A fake server for each test of a file, and sources of its objects. */
export interface SourceSuite {
  readonly suite: FakeServerSuite;
  sourceOf(options?: SourceOptions): SourceUnderTest;
}

/** Called at the top of a file. */
export function useSources(): SourceSuite {
  const suite = useFakeServer();
  return { suite, sourceOf: (options) => suite.stopsLater(new SourceUnderTest(suite.server, options)) };
}

export function groupOf(name: string, spec: JsonObject = {}, more: { namespace?: string; generation?: number } = {}) {
  const content = { spec: { profileRef: { name: "web" }, selector: { matchLabels: { role: name } }, ...spec } };
  return { kind: "Group", name, content, ...more };
}

export function profileOf(name: string, spec: JsonObject, generation = 1) {
  return { kind: "Profile", name, content: { spec: { boot: { kernel: "/assets/vmlinuz" }, ...spec } }, generation };
}

export function fromConfigMap(name: string, key = "text"): JsonObject {
  return { templateFrom: { configMapKeyRef: { name, key } } };
}

export function fromSecret(name: string, key = "text"): JsonObject {
  return { templateFrom: { secretKeyRef: { name, key } } };
}

export function secretOf(name: string, text: string, labels = { "davit.dev/allow-template": "true" }) {
  return { kind: "Secret", name, labels, content: { data: { text: Buffer.from(text).toString("base64") } } };
}

function textOf({ kind, namespace, name }: ObjectName): string {
  return `${kind}/${namespace}/${name}`;
}
