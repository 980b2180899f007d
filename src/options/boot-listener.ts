/** The options of the boot listener, for HTTP and HTTPS. */

import type { Address } from "../lib/text/address.ts";
import type { Option } from "./parsing.ts";
import { fileOption, one, readAddress, readThreads, switchOption } from "./readers.ts";

const listener = { name: "bootTlsAddress", lack: "No listener", example: "[::]:8443" };

export const bootListenerOptions = {
  advertiseAddress: {
    flag: "advertise-address",
    value: "HOST:PORT",
    help:
      "the address at which machines reach the boot service, as in {{davit.url}}; default: the boot address; " +
      "if that is a wildcard, the first global address",
    read: one(readAddress),
  } satisfies Option<Address>,
  bootThreads: {
    flag: "boot-threads",
    value: "N|auto",
    preset: "1",
    help:
      "threads that answer machines, each with its own index of all objects; auto: one for each processor that davit " +
      "may use",
    read: one(readThreads),
  } satisfies Option<number>,
  bootTlsAddress: {
    flag: "boot-tls-address",
    value: "HOST:PORT",
    help:
      "serve machines by HTTPS on this address, too; it needs --boot-tls-cert-file or --boot-tls-own-certificate; " +
      "default: by HTTP only",
    read: one(readAddress),
  } satisfies Option<Address>,
  advertiseTlsAddress: {
    flag: "advertise-tls-address",
    value: "HOST:PORT",
    help:
      "the address at which machines reach the boot service by HTTPS; the certificate must be for its host; " +
      "default: the host of --advertise-address with the port of --boot-tls-address",
    read: one(readAddress),
    needs: [listener],
  } satisfies Option<Address>,
  bootTlsCertFile: {
    ...fileOption(
      "boot-tls-cert-file",
      "TLS certificate of this listener with its chain, PEM, with an RSA key: most firmware knows no other; davit " +
        "follows changes of the file",
    ),
    needs: [listener, { name: "bootTlsKeyFile" }],
  },
  bootTlsKeyFile: {
    ...fileOption("boot-tls-key-file", "private key of that certificate, PEM"),
    needs: [{ name: "bootTlsCertFile" }],
  },
  bootTlsClientCaFile: {
    ...fileOption(
      "boot-tls-client-ca-file",
      "authorities, PEM; by HTTPS, configs other than boot scripts need a client certificate of one of them",
    ),
    needs: [listener],
  },
};

/** Only of `davit serve`: an authority of each follower would be one more for machines to trust. */
export const bootTlsOwnCertificate = {
  ...switchOption(
    "boot-tls-own-certificate",
    "TLS of --boot-tls-address with a certificate that davit makes and renews; machines trust the authority in " +
      "DATA-DIR/boot-certificate/ca.pem; not with --store-etcd-endpoints",
  ),
  needs: [listener],
  excludes: { name: "bootTlsCertFile", excess: "Two certificates of the boot service" },
};
