import type { JsonObject } from "../../../src/model/json.ts";
import { resources } from "../../../src/sources/kubernetes/client/resources.ts";
import type { MirrorChange } from "../../../src/sources/kubernetes/watch/mirror.ts";
import { ObjectWatch, type WatchLimits } from "../../../src/sources/kubernetes/watch/object-watch.ts";
import { SeenVersions } from "../../../src/sources/kubernetes/watch/seen-versions.ts";
import type { WatchFailure } from "../../../src/sources/kubernetes/watch/watch-failure.ts";
import type { WatchTarget } from "../../../src/sources/kubernetes/watch/watch-target.ts";
import { TestBed, until } from "./client-under-test.ts";
import type { FakeApiServer, NewObject } from "./fake-api-server.ts";
import { type FakeServerSuite, useFakeServer } from "./fake-server-suite.ts";

export const groupsPath = "/apis/davit.dev/v1alpha1/namespaces/default/groups";

/** A watch of the groups of a server, and everything that it told. */
export class WatchUnderTest {
  readonly bed: TestBed;
  readonly server: FakeApiServer;
  readonly watch: ObjectWatch<number>;
  /** Each call of `changed`, as `kind name`. */
  readonly changes: string[][] = [];
  readonly failures: WatchFailure[] = [];
  /** Of each object that was read: whether it was told what it was before. */
  readonly known: boolean[] = [];
  /** What davit has seen, also before. */
  readonly seen = new SeenVersions();
  listedCount = 0;
  readCount = 0;
  isConnected = false;

  constructor(server: FakeApiServer, limits: Partial<WatchLimits> = {}, target: Partial<WatchTarget> = {}) {
    this.server = server;
    this.bed = new TestBed(server.url);
    this.watch = new ObjectWatch({
      ...this.bed,
      target: { what: "groups", path: groupsPath, resource: resources.Group, namespace: "default", ...target },
      read: (_object, _meta, before) => {
        this.known.push(before !== undefined);
        return ++this.readCount;
      },
      limits: { ...this.bed.limits, ...limits },
      seen: this.seen,
      listener: {
        listed: () => {
          this.listedCount += 1;
        },
        changed: (changes) => void this.changes.push(changes.map(textOf)),
        failed: (failure) => void this.failures.push(failure),
        connected: (isConnected) => {
          this.isConnected = isConnected;
        },
      },
    });
  }

  begin(): void {
    this.watch.start();
  }

  /** Starts and waits until the first watch is open. */
  async follow(): Promise<void> {
    this.begin();
    await until(() => this.isConnected);
  }

  async stop(): Promise<void> {
    await this.watch.stop();
    await this.bed.client.stop();
  }

  names(): readonly string[] {
    return [...this.watch.all()].map(({ name }) => name).toSorted();
  }

  /** Waits until this many failures were told; then the watch sleeps. */
  async failed(count: number): Promise<void> {
    await until(() => this.failures.length >= count);
  }

  /** Waits until the server has seen this many requests of a kind. */
  async asked(kind: "list" | "watch", count: number): Promise<void> {
    await until(() => this.server.seen(kind).length >= count);
  }

  /** Has the server end the watch in good order, which is when its time is over. */
  async endInGoodOrder(): Promise<void> {
    await this.passTime();
    this.server.endWatches();
  }

  /** As long as a watch is asked for, with bookmarks. */
  async passTime(): Promise<void> {
    for (const partMs of [100_000, 100_000, 100_000]) {
      await this.bed.clock.advance(partMs);
      this.server.bookmark();
      await until(() => this.watch.heardAtMs === this.bed.clock.monotonicMs());
    }
  }

  /** Where each watch so far began. */
  versions(): readonly (string | null)[] {
    return this.server.seen("watch").map(({ query }) => query.get("resourceVersion"));
  }
}

/** A fake server for each test of a file, and watches of its Groups. */
export interface WatchSuite {
  readonly suite: FakeServerSuite;
  follower(limits?: Partial<WatchLimits>, target?: Partial<WatchTarget>): WatchUnderTest;
  group(name: string, more?: Partial<NewObject>): JsonObject;
}

/** Called at the top of a file. */
export function useWatches(): WatchSuite {
  const suite = useFakeServer();
  return {
    suite,
    follower: (limits, target) => suite.stopsLater(new WatchUnderTest(suite.server, limits, target)),
    group: (name, more) => suite.server.put({ kind: "Group", name, ...more }),
  };
}

function textOf({ kind, name }: MirrorChange): string {
  return `${kind} ${name}`;
}
