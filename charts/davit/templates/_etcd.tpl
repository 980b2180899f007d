{{- /* A store whose log is in etcd, so that several members share it. */ -}}

{{- /* "true" when the store's log is in etcd, "" when it is on a volume. */ -}}
{{- define "davit.hasEtcd" -}}
{{- if (.Values.store.etcd).endpoints -}}true{{- end -}}
{{- end -}}

{{- /* Two releases with one prefix would be one store, so the default names the release. */ -}}
{{- define "davit.etcd.prefix" -}}
{{- .Values.store.etcd.prefix | default (printf "/davit.dev/%s/%s/" .Release.Namespace (include "davit.fullname" .)) -}}
{{- end -}}

{{- /* How clients reach one member: its own name, which also identifies it. The kubelet replaces $(POD_NAME). */ -}}
{{- define "davit.etcd.memberUrl" -}}
{{- $scheme := include "davit.hasStore" . | eq "true" | ternary "https" "http" -}}
{{- printf "%s://$(POD_NAME).%s:2379" $scheme (include "davit.store.host" .) -}}
{{- end -}}

{{- define "davit.args.etcd" -}}
{{- with .Values.store.etcd -}}
- --store-etcd-endpoints={{ join "," .endpoints }}
- --store-etcd-prefix={{ include "davit.etcd.prefix" $ }}
- --limit=store-etcd-lease={{ .lease }}
{{- if .shared }}
- --store-etcd-shared
{{- end }}
{{- if (.tls).existingSecret }}
- --store-etcd-tls=/etc/davit/etcd-tls
{{- end }}
{{- if (.auth).existingSecret }}
- --store-etcd-auth=/etc/davit/etcd-auth
{{- end }}
{{- end }}
{{- if not (include "davit.hasStore" .) }}
- --store-advertise-url={{ include "davit.etcd.memberUrl" . }}
{{- end }}
{{- end -}}

{{- /* Environment that these arguments refer to, as a YAML list. */ -}}
{{- define "davit.etcd.env" -}}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
{{- end -}}

{{- /* Files of these arguments, in the form of davit.serve.doorFiles. */ -}}
{{- define "davit.etcd.files" -}}
{{- with .Values.store.etcd -}}
{{- if (.tls).existingSecret }}
- name: etcd-tls
  secret: {{ .tls.existingSecret }}
  keys: {ca.crt: ca.crt{{ if .tls.clientCertificate }}, tls.crt: tls.crt, tls.key: tls.key{{ end }}}
{{- end }}
{{- if (.auth).existingSecret }}
- {name: etcd-auth, secret: {{ .auth.existingSecret }}, keys: {username: username, password: password}}
{{- end }}
{{- end }}
{{- end -}}

{{- /* The user's affinity, and members on different nodes if it says nothing of pods. */ -}}
{{- define "davit.etcd.affinity" -}}
{{- $affinity := .Values.affinity | default dict -}}
{{- if not (hasKey $affinity "podAntiAffinity") -}}
{{- $labels := include "davit.selectorLabels" (dict "root" . "component" "serve") | fromYaml -}}
{{- $term := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" $labels) -}}
{{- $preferred := list (dict "weight" 100 "podAffinityTerm" $term) -}}
{{- $spread := dict "preferredDuringSchedulingIgnoredDuringExecution" $preferred -}}
{{- $affinity = merge (dict "podAntiAffinity" $spread) $affinity -}}
{{- end -}}
{{- toYaml $affinity -}}
{{- end -}}

{{- /* The ports of etcd's endpoints, as a YAML list. A URL without a port has its scheme's. */ -}}
{{- define "davit.etcd.ports" -}}
{{- include "davit.portsOf" (.Values.store.etcd).endpoints -}}
{{- end -}}
