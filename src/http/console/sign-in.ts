/** The page that exchanges a token for a session. */

import { html } from "./html/html.ts";
import { consolePath, type Page } from "./html/layout.ts";

/** Makes the page. @param problem why the last token did not do; empty for none. */
export function signInPage(problem: string, hasCluster: boolean): Page {
  const kinds = hasCluster
    ? "a token of --ops-token-file or --ops-admin-token-file, or your Kubernetes token"
    : "a token of --ops-token-file or --ops-admin-token-file";
  const body = html`<h1>Sign in</h1>
${problem !== "" && html`<p role="alert" class="problem">${problem}</p>`}
<form method="post" action="${consolePath}/sign-in" class="sign-in">
<label for="token">Token</label>
<input id="token" name="token" type="password" required autocomplete="off" spellcheck="false">
<button>Sign in</button>
</form>
<p>Give ${kinds}. davit keeps it in memory only.</p>
${hasCluster && html`<pre tabindex="0">kubectl create token ACCOUNT --namespace NAMESPACE</pre>`}`;
  return { title: "Sign in", body };
}
