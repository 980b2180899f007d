/**
 * Asks the DHCP servers of a network as firmware does: from UDP port 68, by broadcast. It asks for offers only, so it
 * takes no address.
 */

import { createSocket, type Socket } from "node:dgram";
import type { Clock } from "../lib/clock.ts";
import { codeOf } from "../lib/errors.ts";
import { StartError } from "../lib/start-error.ts";
import {
  bootServerRequest,
  type DhcpAnswer,
  discoverMessage,
  type FirmwareKind,
  type QuestionIds,
  readDhcpAnswer,
} from "./message.ts";

interface AskOptions {
  /** The computer's own address in the network. */
  readonly address: string;
  readonly kinds: readonly FirmwareKind[];
  /** How long servers have time. Many ping an address for up to 3 s before they offer it. */
  readonly waitMs: number;
  /** Ends the wait early. */
  readonly isEnough?: (answer: DhcpAnswer) => boolean;
  readonly clock: Pick<Clock, "sleep">;
  readonly random: () => number;
  /** Ends the wait early, too. */
  readonly stop?: AbortSignal;
}

const clientPort = 68;
const serverPort = 67;
const bootServerPort = 4011;
/** A server that was busy gets the question again. */
const repeatMs = 1_500;
const causes: Readonly<Record<string, string>> = {
  EACCES: "Cannot ask as a DHCP client, from UDP port 68: run this as root",
  EADDRINUSE: "UDP port 68 is in use: stop the DHCP client of this computer meanwhile",
};
/** More answers to one question are dropped. */
const maxAnswers = 16;

/**
 * Returns the answers to each kind of firmware, in the order of `kinds`.
 * @throws {StartError} if this computer cannot ask from port 68.
 */
export async function askNetwork(options: AskOptions): Promise<readonly (readonly DhcpAnswer[])[]> {
  const { address, kinds, waitMs, isEnough = () => false, clock, random, stop } = options;
  const end = new AbortController();
  const ending = AbortSignal.any([end.signal, ...(stop === undefined ? [] : [stop])]);
  // A locally administered address, which no card has. All questions have one: a server then pings one address only.
  const mac = Uint8Array.of(2, ...Array.from({ length: 5 }, () => Math.floor(random() * 256)));
  const questions = kinds.map(
    (kind) => new FirmwareQuestion(kind, { transaction: Math.floor(random() * 2 ** 32), mac }),
  );
  const heard = (message: Buffer, from: { readonly address: string }) => {
    const answers = questions.flatMap((question) => question.take(message, from.address) ?? []);
    if (answers.some(isEnough)) end.abort();
  };
  // Answers are broadcasts, which only a socket without an address gets. The other one chooses the network to ask.
  const receiver = await openSocket("0.0.0.0", heard);
  const sender = await openSocket(address, heard).catch((error: unknown) => {
    receiver.close();
    throw error;
  });
  try {
    sender.setBroadcast(true);
    const send = (message: Buffer, port: number, to: string) => sender.send(message, port, to, () => undefined);
    for (let leftMs = waitMs; leftMs > 0 && !ending.aborted; leftMs -= repeatMs) {
      for (const question of questions) question.send(address, send);
      await clock.sleep(Math.min(repeatMs, leftMs), ending);
    }
  } finally {
    receiver.close();
    sender.close();
  }
  return questions.map(({ answers }) => answers);
}

/** What one kind of firmware asks, and what it hears. */
class FirmwareQuestion {
  readonly #kind: FirmwareKind;
  readonly #ids: QuestionIds;
  readonly #answers = new Map<string, DhcpAnswer>();

  constructor(kind: FirmwareKind, ids: QuestionIds) {
    this.#kind = kind;
    this.#ids = ids;
  }

  get answers(): readonly DhcpAnswer[] {
    return [...this.#answers.values()];
  }

  /** Sends the question, and requests to those PXE servers that have not named the file yet, but may at port 4011. */
  send(client: string, send: (message: Buffer, port: number, to: string) => void): void {
    send(discoverMessage(this.#kind, this.#ids), serverPort, "255.255.255.255");
    for (const { server, file, vendorClass, bootItem } of this.answers) {
      if (file !== "" || vendorClass !== "PXEClient") continue;
      send(bootServerRequest(this.#kind, this.#ids, client, bootItem), bootServerPort, server);
    }
  }

  /** Returns the answer if it is to this question. A later answer of a server adds the file that the first lacks. */
  take(message: Buffer, from: string): DhcpAnswer | undefined {
    const answer = readDhcpAnswer(message, this.#ids.transaction, from);
    if (answer === undefined) return undefined;
    const { server, file, nextServer } = answer;
    const known = this.#answers.get(server);
    if (known === undefined && this.#answers.size >= maxAnswers) return undefined;
    // The answer to a request has the address that the client sent, and no menu.
    this.#answers.set(server, known === undefined ? answer : { ...known, ...(file !== "" && { file, nextServer }) });
    return answer;
  }
}

async function openSocket(
  address: string,
  heard: (message: Buffer, from: { readonly address: string }) => void,
): Promise<Socket> {
  // A DHCP client of this computer may have the port, too: each gets all broadcasts.
  const socket = createSocket({ type: "udp4", reuseAddr: true });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.once("error", reject);
  socket.bind({ port: clientPort, address, exclusive: true }, resolve);
  try {
    await promise;
  } catch (error) {
    socket.close();
    const code = codeOf(error) ?? "unknown error";
    throw new StartError(causes[code] ?? `Cannot ask from UDP port 68 (${code}): check the interface`, {
      cause: error,
    });
  }
  // An ICMP error of one server must not end the rest.
  socket.on("error", () => undefined).on("message", heard);
  return socket;
}
