/**
 * The format in which batches are written. A davit reads every format up to the one that it knows, and the key of each
 * member says which one that is. When all members know a later one, the leader raises the level, a key in etcd: from
 * then on members write it. A davit that knows less does not start. So members of two versions can share a store while
 * they are replaced one after the other. The level never falls.
 */

import { newerFormat, WalError } from "../core/log-port.ts";
import { numberFrom } from "../core/stored-json.ts";
import { batchVersion } from "./batch-frame.ts";
import type { EtcdClient } from "./client/etcd-client.ts";
import { bytesOf, type EtcdKey } from "./client/messages.ts";
import type { Layout } from "./layout.ts";
import { fieldsOf, orUnreadable } from "./member-fields.ts";

interface FormatPlace {
  readonly client: EtcdClient;
  readonly layout: Layout;
}

const firstFormat = 1;

export class FormatLevel {
  /** The latest format that this davit reads and writes. */
  readonly known: number;
  #level = firstFormat;

  /** @param known given only by tests. */
  constructor(known = batchVersion) {
    this.known = known;
  }

  /** The format of new batches. */
  get level(): number {
    return this.#level;
  }

  /** Takes the key of the level. @throws {WalError} newerFormat, if this davit does not know the format. */
  take({ value }: EtcdKey): void {
    const level = Number(Buffer.from(value).toString());
    // davit wrote no such level, and goes on with the one that it knows.
    if (!Number.isInteger(level)) return;
    if (level > this.known) throw newerFormat("the log in etcd", level, this.known);
    this.#level = Math.max(level, this.#level);
  }

  /** Takes the key of the level while this davit runs. @param unknown called when it does not know the format. */
  hear(key: EtcdKey, unknown: (error: WalError) => void): void {
    try {
      this.take(key);
    } catch (error) {
      if (!(error instanceof WalError)) throw error;
      unknown(error);
    }
  }

  /** Reads the level. Call it as a member: then nobody raises it beyond what this davit knows. @throws see `take`. */
  async read({ client, layout }: FormatPlace): Promise<void> {
    const [key] = (await client.range({ key: layout.level })).keys;
    if (key !== undefined) this.take(key);
  }

  /**
   * Raises the level, if all members know a later one.
   * @param leaderRevision the fence of this member.
   * @param seen the members that it knows. Those in etcd decide; one that joins meanwhile makes it fail.
   * @throws {EtcdError}
   */
  async raise(place: FormatPlace, leaderRevision: number, seen: Iterable<{ readonly format: number }>): Promise<void> {
    const { client, layout } = place;
    if (Math.min(this.known, ...[...seen].map(({ format }) => format)) <= this.#level) return;
    const { keys, header } = await client.range(layout.members);
    // A member whose key cannot be read may be of any version.
    const formats = keys.map((key) => orUnreadable(() => formatIn(fieldsOf(key)?.format)) ?? firstFormat);
    const next = Math.min(this.known, ...formats);
    if (next <= this.#level || keys.length === 0) return;
    await client.txn(
      {
        when: [
          { key: layout.leader, is: "equal", createRevision: leaderRevision },
          { ...layout.members, is: "less", createRevision: header.revision + 1 },
        ],
        success: [{ put: { key: layout.level, value: bytesOf(String(next)) } }],
      },
      { repeat: true },
    );
  }
}

/** The format in a member's key. */
export function formatIn(field: unknown): number {
  return field === undefined ? firstFormat : numberFrom(field);
}
