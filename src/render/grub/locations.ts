/**
 * Writes locations of kernels and initrds as GRUB reads them. GRUB loads files by HTTP and by TFTP, without user names
 * (net/net.c, grub_net_open_real). Any other text of iPXE would become a path on davit, so davit refuses it.
 */

import { parseInitrd } from "../boot/initrd.ts";
import type { RenderReason } from "../core/render-error.ts";

/** A file as GRUB names it. */
type GrubFile =
  /** On the server that sent the config. The path begins with a slash. */
  | { readonly kind: "own"; readonly path: string }
  | { readonly kind: "http"; readonly host: string; readonly path: string }
  /** A location with GRUB's own device, such as `(tftp,192.0.2.1)/f`. */
  | { readonly kind: "device"; readonly text: string };

/**
 * Reads a location. A relative one is below the root of the server, as it is to an iPXE that reads `/ipxe`.
 * @returns undefined if GRUB cannot load it.
 */
export function grubFile(location: string): GrubFile | undefined {
  if (/^\([^()]+\)/.test(location)) return { kind: "device", text: location };
  if (/^\/(?!\/)/.test(location)) return { kind: "own", path: location };
  const [, scheme = "", host = "", path = ""] = url.exec(location) ?? [];
  switch (scheme.toLowerCase()) {
    case "http":
      return { kind: "http", host, path: path.startsWith("/") ? path : `/${path}` };
    case "tftp":
      return tftpFile(host, path);
    default:
      return relative.test(location) ? { kind: "own", path: `/${location}` } : undefined;
  }
}

/**
 * The reason why `/grub` refuses a kernel or initrd; undefined if it does not.
 * @param text of the Profile. A tag of a template and a token of iPXE count as a part of a name.
 */
export function foreignLocation(text: string, field: string): RenderReason | undefined {
  if (/\{\{~?[#/^]/.test(text)) return undefined;
  const { location, rest } = parseInitrd(text.replaceAll(/\{\{.*?\}\}|\$\{[^}]*\}/gs, "1"));
  if (field !== "kernel" && rest !== "") return "grubInitrdWords";
  return grubFile(location) === undefined ? "grubLocation" : undefined;
}

const url = /^(https?|tftp):\/\/([^\s/?#@(),]+)(|[/?][^#]*)$/i;
const relative = /^[^./?#:()-][^:#]*(?:\?[^#]*)?$/;

// GRUB 2.06 asks port 69 alone (net/tftp.c). Before 2.12, it takes the brackets of an IPv6 address for a name. iPXE
// decodes a TFTP path, and GRUB does not.
function tftpFile(host: string, path: string): GrubFile | undefined {
  const [, name] = /^([^:[\]]+)(?::69)?$/.exec(host) ?? [];
  if (name === undefined || /[?%]/.test(path) || path.length < 2) return undefined;
  return { kind: "device", text: `(tftp,${name})${path}` };
}
