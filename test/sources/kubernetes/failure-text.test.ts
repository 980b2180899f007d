import { describe, expect, it } from "vitest";
import { ApiError } from "../../../src/sources/kubernetes/client/api-error.ts";
import { resources } from "../../../src/sources/kubernetes/client/resources.ts";
import { type ApiCall, failureText } from "../../../src/sources/kubernetes/watch/failure-text.ts";
import { toWatchFailure, WatchFailure } from "../../../src/sources/kubernetes/watch/watch-failure.ts";

const groups: ApiCall = { verb: "list", resource: resources.Group, namespace: "lab" };

describe("why something could not be read", () => {
  it.each([
    [404, groups, "The cluster does not know groups.davit.dev (404): install the CRDs, kubectl apply -f crds/"],
    [
      404,
      { ...groups, resource: resources.ConfigMap },
      "What answers does not know configmaps (404): is it a Kubernetes API server?",
    ],
    [
      401,
      groups,
      "The API server does not know who davit is (401): its token or certificate is of another cluster, or ended",
    ],
    [429, groups, "The API server has no room for davit now (429)"],
    [503, groups, "The API server cannot answer now (503)"],
    [418, groups, "the API server refuses (418)"],
  ] as const)("with status %i says what is missing", (status, asked, text) => {
    expect(failureText(new ApiError("answered", { status }), asked)).toBe(text);
  });

  it("with status 403 in a watch's stream names the missing rule", () => {
    const failure = new WatchFailure("refused", "the watch has ended", { status: 403 });
    expect(failureText(failure, { ...groups, verb: "watch" })).toBe(
      'davit may not watch groups.davit.dev in namespace "lab" (403): its Role lacks the rule {apiGroups: [davit.dev], resources: [groups], verbs: [watch]}: upgrade the chart, or see docs/internals/controller.md#rbac',
    );
  });

  it.each([
    ["unreachable", "ECONNREFUSED", /^Nothing listens .* is it running.*\(ECONNREFUSED\)$/],
    ["unreachable", "ENOTFOUND", /^The API server's name is not known.*DNS \(ENOTFOUND\)$/],
    ["unreachable", "UND_ERR_CONNECT_TIMEOUT", /firewalls \(UND_ERR_CONNECT_TIMEOUT\)$/],
    ["unreachable", "EPROTO", /^the API server cannot be reached \(EPROTO\)$/],
    ["untrusted", "CERT_HAS_EXPIRED", /certificate has expired \(CERT_HAS_EXPIRED\)$/],
    ["untrusted", "ERR_TLS_CERT_ALTNAME_INVALID", /for another name .*\(ERR_TLS_CERT_ALTNAME_INVALID\)$/],
    ["untrusted", "SELF_SIGNED_CERT_IN_CHAIN", /certificate-authority \(SELF_SIGNED_CERT_IN_CHAIN\)$/],
    ["late", undefined, /does not answer in time$/],
    ["protocol", "the answer is no list", /^What answers is no Kubernetes API server.*\(the answer is no list\)$/],
    ["credentials", "ENOENT", /^the credentials cannot be read \(ENOENT\)$/],
  ] as const)("%s %s says where to look", (failure, what, text) => {
    const error = new ApiError(failure, { what });
    expect(failureText(error, groups)).toMatch(text);
    const ofWatch = toWatchFailure(error);
    expect(ofWatch instanceof WatchFailure && failureText(ofWatch, groups)).toMatch(text);
  });

  it("is what a watch found itself, where nothing was asked", () => {
    expect(failureText(new WatchFailure("silent", "nothing came for too long"), groups)).toBe(
      "nothing came for too long",
    );
  });
});
