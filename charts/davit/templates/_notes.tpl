{{- /* Pieces of NOTES.txt. */ -}}

{{- define "davit.notes.scope" -}}
{{- if eq .Values.scope "cluster" -}}
all namespaces
{{- else -}}
{{- $watched := include "davit.watchedNamespaces" . | fromYamlArray -}}
{{- eq (len $watched) 1 | ternary "the namespace" "the namespaces" }} {{ join ", " $watched }}
{{- end -}}
{{- with include "davit.adminNamespace" . -}}
; matchAll and priority count in {{ . }}
{{- end -}}
{{- end -}}

{{- define "davit.notes.firstNamespace" -}}
{{- $admin := include "davit.adminNamespace" . -}}
{{- $watched := include "davit.watchedNamespaces" . | fromYamlArray -}}
{{- if or (not $watched) (has $admin $watched) }}{{ $admin }}{{ else }}{{ first $watched }}{{ end -}}
{{- end -}}

{{- /* What somebody has to know who believes that everything in the values is in force. */ -}}
{{- define "davit.notes.warnings" -}}
{{- with include "davit.notes.idle" . | fromYamlArray }}

WARNING: these values are without effect:
{{- range . }}
  {{ . }}
{{- end }}
{{- end }}
{{- if not .Values.advertiseAddress }}

WARNING: advertiseAddress is not set, so that {{ "{{davit.url}}" }} in templates is a pod's address. Set it to HOST:PORT by
which machines reach the Service.
{{- end }}
{{- if eq .Values.service.type "ClusterIP" }}
{{- if not (or .Values.service.externalIPs .Values.ingress.enabled .Values.httpRoute.enabled) }}

WARNING: service.type is ClusterIP, which machines outside of the cluster do not reach. Set it to LoadBalancer or NodePort.
{{- end }}
{{- end }}
{{- if not (or .Values.persistence.enabled (include "davit.hasEtcd" .)) }}

WARNING: persistence.enabled is false. A pod that restarts while the API server is away answers no machine.
{{- end }}
{{- if and .Values.store.expose .Values.networkPolicy.enabled (not .Values.networkPolicy.storeFrom) }}

WARNING: store.expose is true, but the NetworkPolicy lets only followers reach the store. List its clients in
networkPolicy.storeFrom.
{{- end }}
{{- if and (or .Values.serviceMonitor.enabled .Values.podMonitor.enabled .Values.prometheusRule.enabled) (not (.Capabilities.APIVersions.Has "monitoring.coreos.com/v1")) }}

WARNING: the cluster does not seem to have the Prometheus operator's CRDs, which monitors and rules are of.
{{- end }}
{{- if .Values.dnsmasq.enabled }}

WARNING: dnsmasq uses its node's network. The namespace has to admit that:
kubectl label namespace {{ .Release.Namespace }} pod-security.kubernetes.io/enforce=privileged
{{- end }}
{{- end -}}
