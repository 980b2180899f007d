{{- /* What davit may do in each namespace that it reads, and no more; docs/internals/controller.md has the same. */ -}}

{{- define "davit.rbac.rules" -}}
- apiGroups: [davit.dev]
  resources: [profiles, groups, machines]
  verbs: [get, list, watch]
- apiGroups: [davit.dev]
  resources: [profiles/status, groups/status, machines/status]
  verbs: [patch]
{{- if .Values.machines.enroll }}
- apiGroups: [davit.dev]
  resources: [machines]
  verbs: [create, delete]
{{- end }}
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end -}}

{{- /* Only Secrets that are named, each followed by a watch for its name. Takes a list of names. */ -}}
{{- define "davit.rbac.secretRule" -}}
- apiGroups: [""]
  resources: [secrets]
  resourceNames:
    {{- toYaml . | nindent 4 }}
  verbs: [get, list, watch]
{{- end -}}

{{- /* Names of rbac.secrets.names that hold in every namespace, as a YAML list. */ -}}
{{- define "davit.rbac.secretsEverywhere" -}}
{{- $names := list -}}
{{- range .Values.rbac.secrets.names }}{{ if not (contains "/" .) }}{{ $names = append $names . }}{{ end }}{{ end -}}
{{- toYaml $names -}}
{{- end -}}

{{- /* Those of one namespace. Takes root and namespace. */ -}}
{{- define "davit.rbac.secretsOf" -}}
{{- $names := list -}}
{{- $prefix := printf "%s/" .namespace -}}
{{- range .root.Values.rbac.secrets.names }}{{ if hasPrefix $prefix . }}{{ $names = append $names (trimPrefix $prefix .) }}{{ end }}{{ end -}}
{{- toYaml $names -}}
{{- end -}}

{{- define "davit.rbac.subjects" -}}
- kind: ServiceAccount
  name: {{ include "davit.serviceAccountName" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{- /* Elsewhere than at home a name says whose it is: several releases may read one namespace. Takes root and namespace. */ -}}
{{- define "davit.rbac.roleName" -}}
{{- if eq .namespace .root.Release.Namespace -}}
{{- include "davit.fullname" .root -}}
{{- else -}}
{{- printf "%s.%s" (include "davit.fullname" .root) .root.Release.Namespace -}}
{{- end -}}
{{- end -}}
