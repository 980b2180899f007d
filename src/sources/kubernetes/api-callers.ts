/**
 * Asks the API server with the token of a person who uses the console. The API server decides what this person may do,
 * and its audit log names the person. davit's own credentials are never part of these requests.
 */

import type { CallerReview, ClusterCallers, MachinePatch, PatchRefusal } from "../../model/cluster-callers.ts";
import { isJsonObject, type JsonObject, objectOf } from "../../model/json.ts";
import { ApiError } from "./client/api-error.ts";
import { ApiClient, type ApiClientOptions } from "./client/client.ts";
import type { ClusterAccess } from "./client/kube-config.ts";
import { objectPath, resources } from "./client/resources.ts";

interface ApiCallersOptions extends ApiClientOptions {
  /** The namespaces that davit reads. */
  readonly namespaces: readonly string[] | "all";
}

const authentication = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const authorization = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
/** A person waits for the answer. */
const timeoutMs = 5_000;
/** The console shows all three kinds. */
const shownKinds = ["Profile", "Group", "Machine"] as const;

export class ApiCallers implements ClusterCallers {
  readonly #options: ApiCallersOptions;
  readonly #stopping = new AbortController();

  constructor(options: ApiCallersOptions) {
    this.#options = options;
  }

  /** Asks who the owner of a token is, and whether this person may list Profiles, Groups and Machines. */
  async review(token: string): Promise<CallerReview> {
    return await this.#as(token, async (client) => {
      const { status } = await this.#post(client, authentication, reviewOf("authentication", "SelfSubjectReview", {}));
      const user = objectOf(objectOf(status).userInfo);
      const name = typeof user.username === "string" ? user.username : "an account without a name";
      const missing = await this.#missingRight(client);
      if (missing === undefined) return { kind: "admitted", name } as const;
      return {
        kind: "forbidden",
        why: `${name} may not ${missing}: bind davit's viewer role to this account.`,
      } as const;
    }).catch((error: unknown) => {
      if (!(error instanceof ApiError)) throw error;
      if (error.status === 401) return { kind: "unknown" } as const;
      return { kind: "away", why: `The token cannot be checked now: ${error.message}.` } as const;
    });
  }

  /** Asks whether the owner of a token may patch Machines of a namespace. Undefined if it cannot be asked now. */
  async mayPatchMachines(token: string, namespace: string): Promise<boolean | undefined> {
    return await this.#as(token, (client) =>
      this.#isAllowed(client, { resource: resources.Machine.plural, verb: "patch", namespace }),
    ).catch((error: unknown) => {
      if (error instanceof ApiError) return undefined;
      throw error;
    });
  }

  /**
   * Changes the spec of a Machine as the owner of the token.
   * @returns undefined if it is changed, otherwise why it is not.
   */
  async patchMachine(token: string, patch: MachinePatch): Promise<PatchRefusal | undefined> {
    const { machine, seen } = patch;
    const [namespace = "", name = "", more] = machine.split("/");
    if (!isName(namespace) || !isName(name) || more !== undefined) {
      return { why: "there is no Machine of this name", isForbidden: false };
    }
    try {
      const path = objectPath(resources.Machine, namespace, name);
      const body = bodyOf(patch);
      const query = { fieldManager: "davit-console" };
      await this.#as(token, (client) =>
        client.json({ method: "PATCH", path, query, body, retries: 0, signal: this.#stopping.signal }),
      );
      return undefined;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return { why: patchProblem(error, namespace, seen !== undefined), isForbidden: error.status === 403 };
    }
  }

  /** Ends every request. Idempotent. */
  stop(): void {
    this.#stopping.abort();
  }

  async #missingRight(client: ApiClient): Promise<string | undefined> {
    const { namespaces } = this.#options;
    const places = namespaces === "all" ? [undefined] : namespaces;
    const lists = shownKinds.flatMap((kind) => places.map((place) => ({ plural: resources[kind].plural, place })));
    for (const { plural, place } of lists) {
      const wanted = { resource: plural, verb: "list", ...(place && { namespace: place }) };
      if (await this.#isAllowed(client, wanted)) continue;
      return `list ${plural}.davit.dev in ${place === undefined ? "all namespaces" : `namespace "${place}"`}`;
    }
    return undefined;
  }

  async #isAllowed(client: ApiClient, wanted: Readonly<Record<string, string>>): Promise<boolean> {
    const resourceAttributes = { group: "davit.dev", ...wanted };
    const review = reviewOf("authorization", "SelfSubjectAccessReview", { spec: { resourceAttributes } });
    const { status } = await this.#post(client, authorization, review);
    return isJsonObject(status) && status.allowed === true;
  }

  async #post(client: ApiClient, path: string, value: object): Promise<JsonObject> {
    const body = { contentType: "application/json", value };
    return await client.json({ method: "POST", path, body, retries: 0, signal: this.#stopping.signal });
  }

  async #as<Result>(token: string, work: (client: ApiClient) => Promise<Result>): Promise<Result> {
    const access = accessBy(token, this.#options.access);
    const client = new ApiClient({ ...this.#options, access, limits: { timeoutMs } });
    try {
      return await work(client);
    } finally {
      await client.stop();
    }
  }
}

/** A JSON patch tests the version that the person has seen, and changes the spec, in one step. */
function bodyOf({ spec, seen }: MachinePatch) {
  if (seen === undefined) return { contentType: "application/merge-patch+json", value: { spec } };
  const tests = [
    { op: "test", path: "/metadata/uid", value: seen.uid },
    { op: "test", path: "/metadata/generation", value: seen.generation },
  ];
  const changes = Object.entries(spec).map(([name, value]) => ({ op: "add", path: `/spec/${name}`, value }));
  return { contentType: "application/json-patch+json", value: [...tests, ...changes] };
}

function patchProblem({ status, message }: ApiError, namespace: string, isTested: boolean): string {
  // The API server answers alike to a failed test and to a result that the CRD refuses.
  if (status === 422 && isTested) return "it has changed since the page was loaded, or is invalid: look at it again";
  if (status === 401) return "the API server no longer knows your token: sign in again";
  if (status === 403) return `your account may not patch machines.davit.dev in namespace "${namespace}"`;
  if (status === 404) return "the cluster has no Machine of this name";
  return message;
}

function reviewOf(group: "authentication" | "authorization", kind: string, rest: object): object {
  return { apiVersion: `${group}.k8s.io/v1`, kind, ...rest };
}

/** The connection of davit with the login of somebody else: neither davit's token nor its certificate is sent. */
function accessBy(token: string, access: ClusterAccess): ClusterAccess {
  const { server, proxy, namespace } = access;
  return {
    server,
    namespace,
    ...(proxy !== undefined && { proxy }),
    credentials: async () => {
      const { tls } = await access.credentials();
      const { cert: _cert, key: _key, passphrase: _passphrase, ...trust } = tls;
      return { headers: { authorization: `Bearer ${token}` }, tls: trust };
    },
    renew: () => {},
  };
}

function isName(text: string): boolean {
  return /^[a-z\d]([a-z\d.-]{0,251}[a-z\d])?$/.test(text);
}
