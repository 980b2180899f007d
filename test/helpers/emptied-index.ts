import { agentFor, sendRaw } from "./raw-request.ts";

/** Removes every visible key and tells the index that the store then has. */
export async function emptiedIndex(port: number): Promise<number> {
  const agent = agentFor();
  const ask = async (method: string, target: string) =>
    (await sendRaw({ port, agent, method, target, headers: {}, body: undefined })).whole();
  const keys = [...(await ask("GET", "/v2/keys/")).body.matchAll(/"key":("(?:[^"\\]|\\.)*")/g)];
  for (const [, key = '""'] of keys) {
    await ask("DELETE", `/v2/keys/${encodeURIComponent(String(JSON.parse(key)).slice(1))}?recursive=true`);
  }
  const { headers } = await ask("GET", "/v2/keys/");
  agent.destroy();
  return Number(headers.get("x-etcd-index"));
}
