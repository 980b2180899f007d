/**
 * Checks that the watched namespaces exist. The API server lists a missing namespace like an empty one. So with a
 * misspelt name, or a name of another cluster, all objects would seem to be gone
 * (docs/internals/decisions/0006-an-empty-namespace-may-not-be-there.md).
 *
 * After davit has seen an object in a namespace, it believes that the namespace exists, until davit ends. Before that,
 * davit asks the API server: it creates an event as a dry run, which the API server refuses in a missing namespace.
 * davit has no right to read namespaces, but has the right to create events in every namespace that it reads.
 */

import type { Ports } from "../../../lib/ports.ts";
import type { SourceProblem } from "../../../model/objects/source.ts";
import { ApiError } from "../client/api-error.ts";
import type { ApiClient } from "../client/client.ts";
import { eventObject, eventsPath } from "../client/resources.ts";

interface ScopeNamespacesOptions extends Pick<Ports, "clock" | "log"> {
  readonly client: Pick<ApiClient, "json">;
  /** Ends every question. */
  readonly signal: AbortSignal;
  /** Called when davit begins to believe that a namespace exists, and when it has a new reason to doubt it. */
  readonly changed: () => void;
}

/** Short, because a person who has just created the namespace may be waiting. */
const askAgainMs = 10_000;

type NamespaceState =
  /** The first answer is still to come. */
  { readonly kind: "asked" } | { readonly kind: "doubted"; readonly problem: string } | { readonly kind: "believed" };

export class ScopeNamespaces {
  readonly #options: ScopeNamespacesOptions;
  /** The states of the namespaces that davit has listed at least once. */
  readonly #states = new Map<string, NamespaceState>();

  constructor(options: ScopeNamespacesOptions) {
    this.#options = options;
  }

  /** True when davit believes that all listed namespaces exist. */
  get areBelieved(): boolean {
    return [...this.#states.values()].every(({ kind }) => kind === "believed");
  }

  /**
   * True when davit believes that a namespace exists. For an unwatched namespace: true when it believes so of all
   * watched ones, because one of them may be misspelt.
   */
  isBelieved(namespace: string): boolean {
    const state = this.#states.get(namespace);
    return state === undefined ? this.areBelieved : state.kind === "believed";
  }

  /** True when each question was answered, or has failed at least once. */
  get areTried(): boolean {
    return [...this.#states.values()].every(({ kind }) => kind !== "asked");
  }

  get problems(): readonly SourceProblem[] {
    return [...this.#states].flatMap(([namespace, state]) =>
      state.kind === "doubted" ? [{ origin: `namespace "${namespace}"`, message: state.problem }] : [],
    );
  }

  /** Records that a namespace was listed, or that an object of it was seen. */
  listed(namespace: string, isEmpty: boolean): void {
    const known = this.#states.get(namespace);
    if (known?.kind === "believed") return;
    if (isEmpty) {
      if (known !== undefined) return;
      this.#states.set(namespace, { kind: "asked" });
      void this.#ask(namespace);
      return;
    }
    this.#states.set(namespace, { kind: "believed" });
    if (known !== undefined) this.#options.changed();
  }

  async #ask(namespace: string): Promise<void> {
    const { clock, signal, log, changed } = this.#options;
    for (;;) {
      const problem = await this.#problemOf(namespace);
      const before = this.#states.get(namespace);
      if (signal.aborted || before?.kind === "believed") return;
      if (problem === undefined) {
        this.#states.set(namespace, { kind: "believed" });
        changed();
        return;
      }
      if (before?.kind !== "doubted" || before.problem !== problem) {
        log.warn({ namespace, problem }, "a namespace to read has nothing in it, and may not be there");
        this.#states.set(namespace, { kind: "doubted", problem });
        changed();
      }
      await clock.sleep(askAgainMs, signal);
    }
  }

  /** Asks whether a namespace exists. @returns why davit doubts it; undefined if it exists. */
  async #problemOf(namespace: string): Promise<string | undefined> {
    const { client, clock, signal } = this.#options;
    try {
      await client.json({
        method: "POST",
        path: eventsPath(namespace),
        query: { dryRun: "All" },
        body: { contentType: "application/json", value: question(namespace, clock.nowMs()) },
        signal,
        retries: 0,
      });
      return undefined;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status === 404) return doesNotExist;
      // This version of the API server expects another form of event. It checks the namespace first, so the namespace
      // exists.
      if (error.status === 400 || error.status === 422) return undefined;
      return `${mayNotExist}: ${error.message}`;
    }
  }
}

const consequence = "until then nothing is removed that machines boot from";
const doesNotExist = `it does not exist: create it, or mend --namespace; ${consequence}`;
const mayNotExist = `it has no Profile and no Group, and whether it exists is not known; ${consequence}`;

/** Makes the event of the dry run, which the API server never stores. */
function question(namespace: string, nowMs: number): object {
  return eventObject(nowMs, {
    metadata: { namespace, name: "davit-is-this-namespace-there" },
    reportingInstance: "davit",
    action: "Look",
    reason: "Look",
    regarding: { apiVersion: "v1", kind: "Namespace", namespace, name: namespace },
    type: "Normal",
  });
}
