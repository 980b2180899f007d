import type {
  ObjectKind,
  ObjectName,
  OwnName,
  ProfileObject,
  Refusal,
  Source,
  SourceListener,
  SourceObject,
  SourceProblem,
  SourceVersions,
  SourceView,
} from "../../src/model/objects/source.ts";

/** A source that a test fills: it tells what changed when it is told to. */
export class FakeSource implements Source, SourceView {
  readonly kind = "fake";
  readonly view = this;
  readonly problems: readonly SourceProblem[] = [];
  complete = true;
  isChanging = false;
  provenAtMs: number | undefined = 0;
  isFollowed = true;
  withheld: readonly ObjectName[] = [];
  /** The only Profile that is not in view yet. */
  pending: ProfileObject | undefined;
  readonly unheard = new Set<string>();
  versions?: SourceVersions;
  /** What it was told at its start. */
  seen: SourceVersions | undefined;
  readonly #objects = new Map<string, SourceObject>();
  readonly #refusals = new Map<string, Refusal>();
  #listener: SourceListener | undefined;

  get isHalf(): boolean {
    return !this.complete;
  }

  start(listener: SourceListener, seen: SourceVersions): Promise<void> {
    this.#listener = listener;
    this.seen = seen;
    return Promise.resolve();
  }

  stop(): Promise<void> {
    return Promise.resolve();
  }

  get<Kind extends ObjectKind>(kind: Kind, namespace: string, name: string) {
    const object = this.#objects.get(`${kind}/${namespace}/${name}`);
    return object !== undefined && isOf(kind, object) ? object : undefined;
  }

  pendingOf({ kind, name }: ObjectName): ProfileObject | undefined {
    return kind === "Profile" && this.pending?.name === name ? this.pending : undefined;
  }

  *all<Kind extends ObjectKind>(kind: Kind): Iterable<Extract<SourceObject, { kind: Kind }>> {
    for (const object of this.#objects.values()) if (isOf(kind, object)) yield object;
  }

  get refusals(): Iterable<Refusal> {
    return this.#refusals.values();
  }

  refusalOf({ kind, namespace, name }: ObjectName): Refusal | undefined {
    return this.#refusals.get(`${kind}/${namespace}/${name}`);
  }

  isGone(name: ObjectName): boolean {
    const isThere = this.refusalOf(name) ?? this.pendingOf(name);
    const isKnown = this.complete && isThere === undefined;
    return isKnown && this.get(name.kind, name.namespace, name.name) === undefined;
  }

  isLeaving({ kind, namespace, name }: ObjectName): boolean {
    return this.withheld.some((each) => each.kind === kind && each.namespace === namespace && each.name === name);
  }

  /** Refuses the newest version of an object, or no more, without telling. */
  refuse(
    { kind, namespace, name }: OwnName,
    message: string | undefined,
    read: Partial<Omit<Refusal, keyof OwnName>> = {},
  ): this {
    const key = `${kind}/${namespace}/${name}`;
    if (message === undefined) this.#refusals.delete(key);
    else
      this.#refusals.set(key, {
        kind,
        namespace,
        name,
        uid: "uid-1",
        generation: 7,
        origin: "web.yaml",
        message,
        ...read,
      });
    return this;
  }

  /** Holds an object without telling. */
  put(...objects: readonly SourceObject[]): this {
    for (const object of objects) this.#objects.set(`${object.kind}/${object.namespace}/${object.name}`, object);
    return this;
  }

  /** Drops an object without telling. */
  drop(...names: readonly ObjectName[]): this {
    for (const { kind, namespace, name } of names) this.#objects.delete(`${kind}/${namespace}/${name}`);
    return this;
  }

  /** Sets whether there are changes that the view lacks, and tells it. */
  tellChanging(isChanging: boolean): void {
    this.isChanging = isChanging;
    this.#listener?.stirred?.();
  }

  tellListed(): void {
    this.#listener?.listed();
  }

  tellChanged(...names: readonly ObjectName[]): void {
    this.#listener?.changed(names);
  }
}

function isOf<Kind extends ObjectKind>(
  kind: Kind,
  object: SourceObject,
): object is Extract<SourceObject, { kind: Kind }> {
  return object.kind === kind;
}
