import type { ObjectName, ObjectStatus } from "../../../src/model/objects/source.ts";
import { ClusterSource } from "../../../src/sources/kubernetes/source/cluster-source.ts";
import { EventRecorder } from "../../../src/sources/kubernetes/status/event-recorder.ts";
import {
  StatusWriter,
  type StatusWriterOptions,
  statusPace,
} from "../../../src/sources/kubernetes/status/status-writer.ts";
import { TestBed, until } from "./client-under-test.ts";
import type { useFakeServer } from "./fake-server-suite.ts";

type Suite = ReturnType<typeof useFakeServer>;
type Pace = NonNullable<StatusWriterOptions["pace"]>;

/** A writer over a source that follows the same server. */
export class WriterUnderTest {
  readonly bed: TestBed;
  readonly source: ClusterSource;
  readonly events: EventRecorder;
  readonly writer: StatusWriter;

  private constructor(suite: Suite, pace: Pace) {
    const bed = new TestBed(suite.server.url);
    const source = new ClusterSource({ ...bed, namespaces: ["default"], proveMs: 86_400_000 });
    const events = new EventRecorder({ ...bed, instance: "davit-0" });
    this.bed = bed;
    this.source = source;
    this.events = events;
    this.writer = new StatusWriter({ ...bed, events, seen: (name) => source.seen(name), pace });
  }

  static async start(suite: Suite, pace: Pace = statusPace): Promise<WriterUnderTest> {
    const under = new WriterUnderTest(suite, pace);
    suite.stopsLater(under);
    const { promise, resolve } = Promise.withResolvers<void>();
    under.source.onHeard((name, isReplaced) => under.writer.recheck(name, isReplaced));
    await under.source.start({ listed: resolve, changed: () => {} });
    await promise;
    await until(() => suite.server.openWatches === 4);
    return under;
  }

  write(name: string, status: ObjectStatus): Promise<void> {
    return this.writer.write(groupName(name), status);
  }

  /** Waits until the watch shows a status of this generation. */
  async shows(name: string, observedGeneration = 1): Promise<void> {
    await until(() => this.source.seen(groupName(name))?.value.status.observedGeneration === observedGeneration);
  }

  /** Takes its status away, as somebody else may. */
  async wipe(name: string): Promise<void> {
    const path = `/apis/davit.dev/v1alpha1/namespaces/default/groups/${name}/status`;
    const body = { contentType: "application/merge-patch+json", value: { status: {} } };
    await this.bed.client.json({ method: "PATCH", path, body, signal: new AbortController().signal });
  }

  /** Lets as much time pass as an object may wait for another before an event tells of it. */
  async passGrace(): Promise<void> {
    await this.bed.clock.advance(5_000);
  }

  /** Waits until no request is under way: what sleeps then are the watches, for minutes. */
  async isIdle(): Promise<void> {
    await until(() => (this.bed.clock.nextWakeMs ?? 0) > 30_000);
  }

  async stop(): Promise<void> {
    await this.writer.stop();
    await this.events.stop();
    await this.source.stop();
    await this.bed.client.stop();
  }
}

/** A Group of the default namespace. */
export function groupName(name: string): ObjectName {
  return { kind: "Group", namespace: "default", name };
}
