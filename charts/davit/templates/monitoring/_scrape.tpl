{{- /* How both kinds of monitors scrape the operations port. Takes the monitor's values. */ -}}
{{- define "davit.monitoring.endpoint" -}}
port: operations
path: /metrics
honorLabels: {{ .honorLabels }}
{{- with .interval }}
interval: {{ . }}
{{- end }}
{{- with .scrapeTimeout }}
scrapeTimeout: {{ . }}
{{- end }}
{{- with .relabelings }}
relabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .metricRelabelings }}
metricRelabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* Metadata of an object that may live in the namespace of the monitoring. Takes root, values, name. */ -}}
{{- define "davit.monitoring.metadata" -}}
name: {{ .name | default (include "davit.fullname" .root) }}
namespace: {{ .values.namespace | default .root.Release.Namespace }}
labels:
  {{- include "davit.labels" (dict "root" .root "component" "operations") | nindent 2 }}
  {{- with .values.labels }}
  {{- tpl (toYaml .) $.root | nindent 2 }}
  {{- end }}
{{- with include "davit.annotations" (dict "root" .root "annotations" .values.annotations) }}
{{ . }}
{{- end }}
{{- end -}}
