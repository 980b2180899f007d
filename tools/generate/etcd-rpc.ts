/**
 * packages/etcd-client/src/rpc_pb.ts, made of rpc.proto beside it. `npm run etcd-rpc` writes it; with `--check` it is only
 * compared.
 */

import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generate, root } from "./generated-file.ts";

const home = join(root, "packages/etcd-client/src");
const programs = join(root, "node_modules/.bin");
const plugin = {
  local: join(programs, "protoc-gen-es"),
  out: ".",
  opt: ["target=ts", "import_extension=ts", "erasable_syntax=true"],
};

async function make(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "davit-etcd-rpc-"));
  try {
    const template = JSON.stringify({ version: "v2", plugins: [plugin] });
    execFileSync(join(programs, "buf"), ["generate", home, "--template", template, "-o", folder], { cwd: folder });
    return await readFile(join(folder, "rpc_pb.ts"), "utf8");
  } finally {
    await rm(folder, { recursive: true });
  }
}

const text = await make();
await generate("packages/etcd-client/src/rpc_pb.ts", text, "npm run etcd-rpc");
