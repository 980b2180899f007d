/** One server of the cluster: its connection, and the services over it. */

import { type Client, createClient } from "@connectrpc/connect";
import { EtcdConnection, type EtcdConnectionOptions } from "./connection.ts";
import { grpcTransport } from "./grpc-transport.ts";
import { Auth, KV, Lease, Maintenance, Watch } from "./rpc_pb.ts";

export class EtcdEndpoint {
  /** Scheme, host and port, for messages. */
  readonly origin: string;
  readonly connection: EtcdConnection;
  readonly kv: Client<typeof KV>;
  readonly watch: Client<typeof Watch>;
  readonly lease: Client<typeof Lease>;
  readonly maintenance: Client<typeof Maintenance>;
  readonly auth: Client<typeof Auth>;

  constructor(options: EtcdConnectionOptions) {
    this.origin = options.url.origin;
    this.connection = new EtcdConnection(options);
    const transport = grpcTransport(this.connection);
    this.kv = createClient(KV, transport);
    this.watch = createClient(Watch, transport);
    this.lease = createClient(Lease, transport);
    this.maintenance = createClient(Maintenance, transport);
    this.auth = createClient(Auth, transport);
  }
}

/** The endpoints. davit asks always the same one first, until it fails or another one is preferred. */
export class EtcdEndpoints {
  readonly all: readonly EtcdEndpoint[];
  #preferred: number;

  /** @param random chooses the first one, so that members of davit spread over those of etcd. */
  constructor(all: readonly EtcdEndpoint[], random: () => number) {
    this.all = all;
    this.#preferred = Math.floor(random() * all.length);
  }

  /** The one to ask. */
  get preferred(): EtcdEndpoint {
    const endpoint = this.all[this.#preferred];
    if (endpoint === undefined) throw new RangeError("etcd has no endpoint");
    return endpoint;
  }

  /** Asks this one first from now on. */
  prefer(endpoint: EtcdEndpoint): void {
    this.#preferred = this.all.indexOf(endpoint);
  }

  /** Prefers the next one, unless another request has done so already. */
  failed(endpoint: EtcdEndpoint): void {
    if (endpoint === this.preferred) this.#preferred = (this.#preferred + 1) % this.all.length;
  }
}
