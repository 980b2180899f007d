/**
 * `/machines` lists the machines that objects or the ledger name, or that the history has seen. `/machines/<machine>`
 * shows one of them, and `/ledger` shows the ledger. A machine is named by its MAC address, its uuid, its serial
 * number, or its Machine's name, with or without the namespace.
 */

import { Readable } from "node:stream";
import type { FastifyPluginAsync } from "fastify";
import { toRfc3339 } from "../../lib/clock.ts";
import { nextTurn, Slices } from "../../lib/slices.ts";
import type { Labels } from "../../model/labels/labels.ts";
import { identitiesOf } from "../../model/objects/machine.ts";
import { kindOf } from "../../model/permits/permit.ts";
import { mayBeSightingOf } from "../../model/sighting.ts";
import type { History } from "../../records/history/history.ts";
import type { HistoryView, RecordedMachine } from "../../records/history/history-view.ts";
import { RequestError } from "../errors.ts";
import type { MachineBook } from "./machine-book.ts";
import {
  findMachine,
  grantJson,
  identityOf,
  ledgerJson,
  type MachineSubject,
  machineDetailsJson,
  machineJson,
  subjectOf,
  subjectsOf,
} from "./machine-report.ts";
import { rawQueryOf, show } from "./server.ts";

interface MachineRoutesOptions {
  readonly book: MachineBook;
  /** Has the machines that were seen. */
  readonly history: Pick<History, "current">;
}

/** How many machines are described before other work gets its turn: about 5 ms. */
const sliceMachines = 200;

export const machineRoutes: FastifyPluginAsync<MachineRoutesOptions> = async (app, { book, history }) => {
  app.get("/machines", async (request, reply) => {
    const view = await history.current();
    // A HEAD request has no body to make.
    return show(reply, { json: () => (request.method === "HEAD" ? "" : Readable.from(listText(book, view))) });
  });
  app.get<{ Params: { "*": string } }>("/machines/*", async (request, reply) => {
    const view = await history.current();
    return show(reply, { json: () => namedMachineJson(book, view, request.params["*"]), indent: 2 });
  });
  app.get("/ledger", async (request, reply) => {
    const key = new URLSearchParams(rawQueryOf(request)).get("grant");
    const grant = key === null ? undefined : await grantDetails(book, key);
    return show(reply, { json: () => ({ ...ledgerJson(book), grant }), indent: 2 });
  });
};

/** Yields the list's text. It makes the list while the client reads it, so a long list needs little memory. */
async function* listText(book: MachineBook, view: HistoryView): AsyncGenerator<string> {
  const slices = new Slices(sliceMachines);
  const reading = seenMachines(view);
  let read = reading.next();
  for (; read.done !== true; read = reading.next()) if (slices.isOver(1)) await nextTurn();
  yield `{"ledger":${JSON.stringify(book.ledger.id ?? null)},"machines":[`;
  let lines: string[] = [];
  let mark = "\n";
  for (const joined of joinedMachines(book, read.value)) {
    lines.push(mark, JSON.stringify(joinedJson(book, joined)));
    mark = ",\n";
    if (!slices.isOver(1)) continue;
    yield lines.join("");
    lines = [];
    await nextTurn();
  }
  yield `${lines.join("")}\n]}\n`;
}

/**
 * The object's grant, and the highest generation that the ledger has seen of a grant of this kind: a machine may come
 * from another Group, and spends no generation twice.
 */
async function grantDetails(book: MachineBook, key: string): Promise<object> {
  const { ledger } = book;
  const slices = new Slices(sliceMachines * 50);
  let highest = ledger.endedGeneration(key);
  for (const { spent } of ledger.entries.values()) {
    const ofKind = Object.entries(spent).filter(([other]) => other.startsWith(kindOf(key)));
    highest = Math.max(highest, ...ofKind.map(([, generation]) => generation));
    if (slices.isOver(1)) await nextTurn();
  }
  const found = book.grantOf(key);
  const grant = found.kind === "object" ? found.grant : undefined;
  return {
    key,
    isKnown: found.kind === "object",
    spentGeneration: highest,
    object: grant && grantJson(ledger, { key, grant }),
  };
}

/** How many machines with the same uuid, serial number or host name this looks at. */
export const mostAlike = 50;

/** A machine; it has at least one of the two. */
interface JoinedMachine {
  readonly subject: MachineSubject | undefined;
  readonly seen: RecordedMachine | undefined;
}

/** The machines of the history. Each object or entry takes those with its identities; the rest are listed alone. */
class SeenMachines {
  readonly #byIdentity = new Map<string, RecordedMachine[]>();
  readonly #left = new Set<RecordedMachine>();

  add(seen: RecordedMachine): void {
    this.#left.add(seen);
    for (const identity of identitiesOf(seen.labels)) {
      const known = this.#byIdentity.get(identity);
      if (known === undefined) this.#byIdentity.set(identity, [seen]);
      else known.push(seen);
    }
  }

  /** Takes all machines with these identities. Returns the one seen last, without those that contradict them. */
  take(identities: readonly string[]): RecordedMachine | undefined {
    const found = identities.flatMap((identity) => this.#byIdentity.get(identity) ?? []);
    const own = found.filter(({ labels }) => mayBeSightingOf({ identities: identitiesOf(labels) }, identities));
    for (const each of own) this.#left.delete(each);
    return own.toSorted((one, other) => other.lastSeenAtMs - one.lastSeenAtMs)[0];
  }

  left(): Iterable<RecordedMachine> {
    return this.#left;
  }
}

/** Reads the machines of the history. It yields after each one, so that the caller can let other work in between. */
export function* seenMachines(view: HistoryView | undefined): Generator<undefined, SeenMachines> {
  const seen = new SeenMachines();
  for (const each of view?.recordedMachines() ?? []) {
    seen.add(each);
    yield;
  }
  return seen;
}

/** Yields the machines of objects and of the ledger, each with its history. Then come those of the history alone. */
export function* joinedMachines(book: MachineBook | undefined, seen: SeenMachines): Generator<JoinedMachine> {
  for (const subject of book === undefined ? [] : subjectsOf(book)) {
    yield { subject, seen: seen.take(subject.identities) };
  }
  for (const left of seen.left()) yield { subject: undefined, seen: left };
}

/** Returns the line of a machine in the list. */
function joinedJson(book: MachineBook, { subject, seen }: JoinedMachine): object {
  const found = seen && { ...seen, addresses: [seen.address] };
  const known = subject === undefined ? seenOnlyJson(seen) : machineJson(book, withSent(subject, seen));
  return { ...known, seen: found && seenJson(found) };
}

/**
 * Returns everything about the machine of a name: the name of its Machine with or without the namespace, a MAC address,
 * a uuid, or the serial number that it has sent.
 * @throws {RequestError} if the name means no machine, or several.
 */
function namedMachineJson(book: MachineBook, view: HistoryView | undefined, name: string): object {
  const subject = findMachine(book, name) ?? findByPlainName(book, name);
  if (subject !== undefined) return withSeen(book, subject, view);
  const identity = identityOf(name);
  const asked = identity === undefined ? new Map([["serial", name]]) : labelsOf(identity);
  const [found, ...others] = view?.find(asked, 2) ?? [];
  if (found === undefined) throw new RequestError("noSuchMachine");
  if (others.length > 0) throw new RequestError("severalSeen");
  const identities = identitiesOf(found.labels);
  const known = identities.map((each) => findMachine(book, textAfterKind(each))).find((each) => each !== undefined);
  if (known !== undefined) return withSeen(book, known, view);
  const group = found.requests.findLast((each) => each.group !== undefined)?.group;
  const boot = book.bootOf(identities);
  // By labels that the ledger does not know, the machine may get another Group.
  const isSure = boot?.plan !== undefined && boot.group === group;
  const details = isSure
    ? machineDetailsJson(book, { object: undefined, identities, entries: [] })
    : seenOnlyJson({ labels: found.labels, group });
  return { ...details, seen: seenJson(found) };
}

function findByPlainName(book: MachineBook, name: string): MachineSubject | undefined {
  const [found, ...others] = [...book.machines()].filter((object) => object.name.endsWith(`/${name}`));
  if (others.length > 0) throw new RequestError("severalNamed");
  return found && subjectOf(book, found);
}

/** The machine with its latest history by one of its identities. */
function withSeen(book: MachineBook, subject: MachineSubject, view: HistoryView | undefined): object {
  const { identities } = subject;
  const found = identities.flatMap((identity) => view?.find(labelsOf(identity), mostAlike) ?? []);
  const own = found.filter(({ labels }) => mayBeSightingOf({ identities: identitiesOf(labels) }, identities));
  const [latest] = own.toSorted((a, b) => b.lastSeenAtMs - a.lastSeenAtMs);
  return { ...machineDetailsJson(book, withSent(subject, latest)), seen: latest && seenJson(latest) };
}

function withSent(subject: MachineSubject, seen: Pick<RecordedMachine, "labels"> | undefined): MachineSubject {
  const sent = seen === undefined ? [] : identitiesOf(seen.labels);
  return sent.length === 0 ? subject : { ...subject, sent };
}

/** A machine without an object, an entry and a phase. Its Group is that of its last request. */
function seenOnlyJson(seen: Pick<RecordedMachine, "labels" | "group"> | undefined) {
  return { identities: seen === undefined ? [] : identitiesOf(seen.labels), group: seen?.group };
}

interface SeenFacts {
  readonly labels: Labels;
  readonly addresses: readonly string[];
  readonly lastSeenAtMs: number;
}

function seenJson({ labels, addresses, lastSeenAtMs }: SeenFacts) {
  return { at: toRfc3339(lastSeenAtMs), addresses, labels: Object.fromEntries(labels) };
}

function labelsOf(identity: string): Labels {
  return new Map([[identity.slice(0, identity.indexOf("/")), textAfterKind(identity)]]);
}

function textAfterKind(identity: string): string {
  return identity.slice(identity.indexOf("/") + 1);
}
