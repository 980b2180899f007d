/**
 * The queue for signatures. Bodies that are the same for every request have their own lane, since many machines may
 * need one. The two lanes take turns, and so do the clients of a lane, so nobody waits for all requests of another
 * client. Once half of a lane's places are taken, the client with the most places is refused first.
 */

import { FairQueue } from "../lib/fair-queue.ts";
import { Shares } from "../lib/shares.ts";
import { SigningError } from "./signing-error.ts";

/** The asking client, and the body. */
export interface SignatureWish {
  /** Identifies the body; empty for a body that only this client can ask for. */
  readonly name: string;
  /** True if the body is the same for every request, so that many may ask for it. */
  readonly isShared: boolean;
  /** The client's name; undefined for one without a share of its own. */
  readonly client: string | undefined;
}

export interface SigningLimits {
  /** The most orders that wait or are being signed, and the most bytes of their bodies. */
  readonly maxCount: number;
  readonly maxBytes: number;
}

/** RSA-4096 makes about 200 signatures a second, and GRUB waits for more than a minute. */
const ownLimits: SigningLimits = { maxCount: 4_096, maxBytes: 64 * 1024 * 1024 };
const sharedLimits: SigningLimits = { maxCount: 1_024, maxBytes: 32 * 1024 * 1024 };

/** A place in the queue, until `leave`. */
export interface QueuePlace<Order> {
  readonly order: Order;
  readonly wish: SignatureWish;
  readonly sizeBytes: number;
  /** The clients that wait for it. */
  readonly clients: Set<string>;
  isTaken: boolean;
}

export class SigningQueue<Order> {
  readonly #turns = new FairQueue<QueuePlace<Order>>();
  readonly #own = new Lane(ownLimits);
  readonly #shared = new Lane(sharedLimits);
  readonly #named = new Map<string, QueuePlace<Order>>();

  /** @throws {SigningError} busy */
  enter(order: Order, sizeBytes: number, wish: SignatureWish): void {
    this.#laneOf(wish).take(wish.client, sizeBytes);
    const place: QueuePlace<Order> = { order, wish, sizeBytes, clients: new Set(), isTaken: false };
    if (wish.name !== "") this.#named.set(nameOf(wish), place);
    this.#line(place, wish.client);
  }

  /** Another client asks for a waiting signature: it gets the better turn of the two. */
  join(wish: SignatureWish): void {
    const place = this.#named.get(nameOf(wish));
    if (place !== undefined && !place.isTaken) this.#line(place, wish.client);
  }

  /** The next in turn; undefined when none waits. */
  next(): QueuePlace<Order> | undefined {
    for (let place = this.#turns.shift(); place !== undefined; place = this.#turns.shift()) {
      if (place.isTaken) continue;
      place.isTaken = true;
      return place;
    }
    return undefined;
  }

  /** Frees the place of a signed or abandoned order. */
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

/** The places of one lane, and who has them. */
class Lane {
  readonly #places: Shares;
  readonly #bytes: Shares;

  constructor({ maxCount, maxBytes }: SigningLimits) {
    this.#places = new Shares({ limit: maxCount });
    this.#bytes = new Shares({ limit: maxBytes });
  }

  /** @throws {SigningError} busy */
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
