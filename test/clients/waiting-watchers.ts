/** How many watches wait on a server of the key API. */
export async function waitingWatchers(port: number): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${port}/v2/stats/store`);
  const { watchers }: { watchers: number } = JSON.parse(await answer.text());
  return watchers;
}
