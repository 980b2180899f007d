/**
 * Asks a DHCP server for several machines at once, and writes its offers as JSON. It runs in a network of its own:
 *   node dhcp-client-worker.ts RELAY SERVER FIRMWARE...
 */

import { createSocket } from "node:dgram";
import { once } from "node:events";
import { type BootOffer, discover, numberOf, readOffer } from "./dhcp-message.ts";

const port = 67;
const [relay = "", server = "", ...firmware] = process.argv.slice(2);
const socket = createSocket("udp4");
socket.bind(port, relay);
await once(socket, "listening");
for (const [number, text] of firmware.entries()) socket.send(discover(number, JSON.parse(text), relay), port, server);
const offers: BootOffer[] = [];
const waiting = new Set(firmware.keys());
socket.on("message", (message) => {
  const number = numberOf(message);
  offers[number] = readOffer(message);
  waiting.delete(number);
  if (waiting.size > 0) return;
  socket.close();
  process.stdout.write(JSON.stringify(offers));
});
