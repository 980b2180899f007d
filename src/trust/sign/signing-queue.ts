/**
 * The queue of orders for signatures. It has two lanes: one for bodies that are the same for every request, and one for
 * all other bodies. The lanes take turns, and so do the clients of a lane. So nobody waits for all orders of another
 * client. When half of a lane's places are taken, the client with the most places is the first to be refused.
 *
 * Shared bodies have their own lane because many machines can wait for one of them: it must not wait behind the bodies
 * for single machines.
 */

import { FairQueue } from "../../lib/fair-queue.ts";
import { Shares } from "../../lib/shares.ts";
import { SigningError } from "./signing-error.ts";

/** A client's wish for the signature of a body. */
export interface SignatureWish {
  /** Identifies the body; empty for a body that only this client can ask for. */
  readonly name: string;
  /** True if the body is the same for every request, so that many clients can ask for it. */
  readonly isShared: boolean;
  /** The client's name; undefined for a client without a share of its own (see `Shares`). */
  readonly client: string | undefined;
}

interface SigningLimits {
  /** The most orders that wait or are being signed. */
  readonly maxCount: number;
  /** The most bytes of the bodies of these orders. */
  readonly maxBytes: number;
}

/** A full queue takes about 25 s: RSA-4096 makes about 200 signatures a second. GRUB waits for more than a minute. */
const ownLimits: SigningLimits = { maxCount: 4_096, maxBytes: 64 * 1024 * 1024 };
const sharedLimits: SigningLimits = { maxCount: 1_024, maxBytes: 32 * 1024 * 1024 };

/** An order in the queue. It keeps its place until `leave`, also while it is being signed. */
export interface QueuePlace<Order> {
  readonly order: Order;
  readonly wish: SignatureWish;
  readonly sizeBytes: number;
  /** The clients that wait for this signature. */
  readonly clients: Set<string>;
  /** True after `next` returned this place. */
  isTaken: boolean;
}

export class SigningQueue<Order> {
  readonly #turns = new FairQueue<QueuePlace<Order>>();
  readonly #own = new Lane(ownLimits);
  readonly #shared = new Lane(sharedLimits);
  readonly #named = new Map<string, QueuePlace<Order>>();

  /**
   * Adds an order to its lane.
   * @throws {SigningError} busy, if the lane has no place for this client.
   */
  enter(order: Order, sizeBytes: number, wish: SignatureWish): void {
    this.#laneOf(wish).take(wish.client, sizeBytes);
    const place: QueuePlace<Order> = { order, wish, sizeBytes, clients: new Set(), isTaken: false };
    if (wish.name !== "") this.#named.set(nameOf(wish), place);
    this.#line(place, wish.client);
  }

  /**
   * Notes that another client asks for a waiting signature. The order is taken when the first of its clients has its
   * turn.
   */
  join(wish: SignatureWish): void {
    const place = this.#named.get(nameOf(wish));
    if (place !== undefined && !place.isTaken) this.#line(place, wish.client);
  }

  /** Takes the next order in turn; undefined if none waits. */
  next(): QueuePlace<Order> | undefined {
    for (let place = this.#turns.shift(); place !== undefined; place = this.#turns.shift()) {
      if (place.isTaken) continue;
      place.isTaken = true;
      return place;
    }
    return undefined;
  }

  /** Frees the place of an order that is signed or abandoned. */
  leave({ wish, sizeBytes }: QueuePlace<Order>): void {
    this.#laneOf(wish).release(wish.client, sizeBytes);
    this.#named.delete(nameOf(wish));
  }

  #line(place: QueuePlace<Order>, client = ""): void {
    if (place.clients.has(client)) return;
    place.clients.add(client);
    this.#turns.push([laneName(place.wish), client], place);
  }

  #laneOf({ isShared }: SignatureWish): Lane {
    return isShared ? this.#shared : this.#own;
  }
}

function laneName({ isShared }: SignatureWish): string {
  return isShared ? "shared" : "own";
}

function nameOf(wish: SignatureWish): string {
  return `${laneName(wish)} ${wish.name}`;
}

/** The places of one lane, and which clients have them. */
class Lane {
  readonly #places: Shares;
  readonly #bytes: Shares;

  constructor({ maxCount, maxBytes }: SigningLimits) {
    this.#places = new Shares({ limit: maxCount });
    this.#bytes = new Shares({ limit: maxBytes });
  }

  /**
   * Takes a place, and the bytes of the order's body.
   * @throws {SigningError} busy, if there is no room for this client.
   */
  take(client: string | undefined, sizeBytes: number): void {
    if (!this.#places.admits(client) || !this.#bytes.admits(client, sizeBytes)) throw new SigningError("busy");
    this.#places.add(client, 1);
    this.#bytes.add(client, sizeBytes);
  }

  release(client: string | undefined, sizeBytes: number): void {
    this.#places.release(client);
    this.#bytes.release(client, sizeBytes);
  }
}
