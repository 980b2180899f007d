{{- /*
  A StatefulSet that waits for each pod in turn never replaces one that was never ready, whatever becomes of its template.
  There is one pod, so there is no turn to wait for. The field of a StatefulSet that is there cannot be changed: what it
  has is looked up, and stays. `helm template` sees no cluster and no difference to `helm install`, so both make new ones.
*/ -}}
{{- define "davit.podManagementPolicy" -}}
{{- .Values.podManagementPolicy | default (include "davit.installedPodManagementPolicy" .) | default "Parallel" -}}
{{- end -}}

{{- /* That of the StatefulSet that is there; "" without one. */ -}}
{{- define "davit.installedPodManagementPolicy" -}}
{{- with lookup "apps/v1" "StatefulSet" .Release.Namespace (include "davit.fullname" .) -}}
{{- dig "spec" "podManagementPolicy" "" . -}}
{{- end -}}
{{- end -}}
