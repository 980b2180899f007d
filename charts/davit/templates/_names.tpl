{{- /* Names and labels. Parts are named after the full name, so that it leaves room for the longest ending that there is. */ -}}

{{- define "davit.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 45 | trimSuffix "-" -}}
{{- end -}}

{{- /*
  45: pods of the StatefulSet have a label with this, a hyphen and a hash of ten; 63 is what a label may have. A release may
  have dots in its name, and a Service may not.
*/ -}}
{{- define "davit.fullname" -}}
{{- $name := include "davit.name" . -}}
{{- $full := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{- .Values.fullnameOverride | default $full | replace "." "-" | trunc 45 | trimSuffix "-" -}}
{{- end -}}

{{- /* The ConfigMap that marks this release's ledger: two releases in one namespace have two ledgers. */ -}}
{{- define "davit.ledgerMark" -}}
{{- printf "%s-ledger" (include "davit.fullname" .) -}}
{{- end -}}

{{- /* Of what has no namespace. Takes root and part. A full name has no dot, so that no two releases share one. */ -}}
{{- define "davit.clusterName" -}}
{{- printf "%s-%s.%s" (include "davit.fullname" .root) .part .root.Release.Namespace -}}
{{- end -}}

{{- /* Labels of an object. Takes root and component. */ -}}
{{- define "davit.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "davit.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: davit
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- with .root.Values.commonLabels }}
{{ tpl (toYaml .) $.root }}
{{- end }}
{{- end -}}

{{- /* What selects the pods of a component. It never changes: a StatefulSet's selector cannot. */ -}}
{{- define "davit.selectorLabels" -}}
app.kubernetes.io/name: {{ include "davit.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- /* What selects the pods that run davit itself, of both kinds; not the helpers beside them: the test's pod, dnsmasq. */ -}}
{{- define "davit.serverLabels" -}}
app.kubernetes.io/name: {{ include "davit.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
davit.dev/server: "true"
{{- end -}}

{{- /* Labels of a pod: no version among them, so that nothing restarts for a label's sake. Takes root and component. */ -}}
{{- define "davit.podLabels" -}}
{{ include "davit.selectorLabels" . }}
app.kubernetes.io/part-of: davit
{{- with .root.Values.commonLabels }}
{{ tpl (toYaml .) $.root }}
{{- end }}
{{- end -}}

{{- define "davit.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (include "davit.fullname" .) -}}
{{- end -}}

{{- define "davit.boot.serviceAccountName" -}}
{{- .Values.boot.serviceAccount.name | default (printf "%s-boot" (include "davit.fullname" .)) -}}
{{- end -}}

{{- /* "true" when davit boot runs, "" when not. */ -}}
{{- define "davit.hasFollowers" -}}
{{- if or .Values.boot.autoscaling.enabled (gt (int .Values.boot.replicas) 0) -}}true{{- end -}}
{{- end -}}

{{- /* "true" when followers may come in, be there any or not: what davit serve has for them is the same then. */ -}}
{{- define "davit.admitsFollowers" -}}
{{- if or .Values.boot.prepared (include "davit.hasFollowers" .) -}}true{{- end -}}
{{- end -}}

{{- /* "true" when the store listens off loopback, "" when not. */ -}}
{{- define "davit.hasStore" -}}
{{- if or .Values.store.expose (include "davit.admitsFollowers" .) -}}true{{- end -}}
{{- end -}}

{{- /* REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@DIGEST. Takes image and defaultTag. */ -}}
{{- define "davit.image" -}}
{{- with .image.registry }}{{ . }}/{{ end -}}
{{- .image.repository -}}
{{- if .image.digest }}@{{ .image.digest }}{{ else }}:{{ .image.tag | default .defaultTag }}{{ end -}}
{{- end -}}

{{- /* Annotations of users, with their templates. Takes root and annotations; renders nothing when there are none. */ -}}
{{- define "davit.annotations" -}}
{{- with .annotations -}}
annotations:
  {{- tpl (toYaml .) $.root | nindent 2 }}
{{- end }}
{{- end -}}
