import { describe, expect, it } from "vitest";
import { type SignatureWish, SigningQueue } from "../../../src/trust/sign/signing-queue.ts";

const own = (client: string, name = ""): SignatureWish => ({ name, isShared: false, client });
const shared = (client: string, name = ""): SignatureWish => ({ name, isShared: true, client });

/** Whatever waits, in the order in which it is signed. */
function all(queue: SigningQueue<string>): readonly string[] {
  const orders: string[] = [];
  for (let place = queue.next(); place !== undefined; place = queue.next()) {
    orders.push(place.order);
    queue.leave(place);
  }
  return orders;
}

describe("the queue for signatures", () => {
  it("lets clients take turns, however many one asks for", () => {
    const queue = new SigningQueue<string>();
    for (let at = 0; at < 500; at++) queue.enter(`flood ${at}`, 1, own("192.0.2.66"));
    queue.enter("mine", 1, own("192.0.2.1"));
    expect(all(queue).indexOf("mine")).toBe(1);
  });

  it("has a lane for what no request changes, which takes turns with the other", () => {
    const queue = new SigningQueue<string>();
    for (let client = 0; client < 100; client++) queue.enter(`own ${client}`, 1, own(`192.0.2.${client}`));
    for (let at = 0; at < 3; at++) queue.enter(`shared ${at}`, 1, shared("198.51.100.1"));
    expect(all(queue).slice(0, 6)).toEqual(["own 0", "shared 0", "own 1", "shared 1", "own 2", "shared 2"]);
  });

  it("signs what two ask for once, at the better turn of the two", () => {
    const queue = new SigningQueue<string>();
    for (let at = 0; at < 500; at++) queue.enter(`flood ${at}`, 1, own("192.0.2.66"));
    queue.enter("both want this", 1, own("192.0.2.66", "digest"));
    queue.join(own("192.0.2.1", "digest"));
    queue.join(own("192.0.2.1", "digest"));
    const order = all(queue);
    expect([order.indexOf("both want this"), order.lastIndexOf("both want this"), order.length]).toEqual([1, 1, 501]);
  });

  it("refuses a client that has half of the places of a lane, and nobody else", () => {
    const queue = new SigningQueue<string>();
    const enter = (wish: SignatureWish, sizeBytes = 1) => queue.enter("one", sizeBytes, wish);
    for (let at = 0; at < 2_048; at++) enter(own("192.0.2.66"));
    expect(() => enter(own("192.0.2.66"))).toThrow(expect.objectContaining({ reason: "busy" }));
    enter(own("192.0.2.1"));
    enter(shared("192.0.2.66"));
    const place = queue.next();
    if (place !== undefined) queue.leave(place);
    enter(own("192.0.2.66"));
    expect(() => enter(shared("192.0.2.66"), 17 * 1024 * 1024 * 2)).toThrow("too many signatures");
  });
});
