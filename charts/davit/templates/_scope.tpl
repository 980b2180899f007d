{{- /* Which namespaces are read. */ -}}

{{- /* A YAML list; of cluster scope it is empty, which means all of them. */ -}}
{{- define "davit.watchedNamespaces" -}}
{{- if eq .Values.scope "cluster" -}}
[]
{{- else -}}
{{- toYaml (.Values.watchNamespaces | default (list .Release.Namespace)) -}}
{{- end -}}
{{- end -}}

{{- /* "" where there is one namespace: matchAll and priority count in it. */ -}}
{{- define "davit.adminNamespace" -}}
{{- if .Values.adminNamespace -}}
{{- .Values.adminNamespace -}}
{{- else if include "davit.hasSeveralNamespaces" . -}}
{{- .Release.Namespace -}}
{{- end -}}
{{- end -}}

{{- define "davit.hasSeveralNamespaces" -}}
{{- if or (eq .Values.scope "cluster") (gt (len (.Values.watchNamespaces | default list)) 1) -}}true{{- end -}}
{{- end -}}
