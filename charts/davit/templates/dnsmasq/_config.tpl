{{- /* Proxy-DHCP says only where to boot from; addresses are the business of the network's own DHCP server. */ -}}
{{- define "davit.dnsmasq.config" -}}
{{- with .Values.dnsmasq -}}
# No DNS.
port=0
keep-in-foreground
log-facility=-
log-dhcp
# Root with three capabilities: another user would lose them when dnsmasq is started.
user=root
{{- with .interface }}
interface={{ . }}
# Not bind-interfaces, with which tftp-single-port sends nothing (dnsmasq 2.90).
bind-dynamic
{{- end }}
# Opened even where no address is leased.
dhcp-leasefile=/run/dnsmasq.leases
dhcp-range={{ .subnet }},proxy
enable-tftp
tftp-root={{ include "davit.dnsmasq.tftpRoot" $ }}
# All of a transfer on port 69, which firewalls know.
tftp-single-port
# iPXE says so of itself, by its user class or by option 175.
dhcp-userclass=set:ipxe,iPXE
dhcp-match=set:ipxe,175
{{- range $firmware, $file := .loaders }}
pxe-service=tag:!ipxe,{{ $firmware }},"iPXE",{{ $file }}
pxe-service=tag:ipxe,{{ $firmware }},"davit",http://{{ $.Values.advertiseAddress }}/boot.ipxe
{{- end }}
{{- with .extraConfig }}
{{ . | trim }}
{{- end }}
{{- end -}}
{{- end -}}

{{- define "davit.dnsmasq.tftpRoot" -}}
{{- .Values.dnsmasq.download | empty | ternary .Values.dnsmasq.tftpRoot "/var/lib/davit-assets" -}}
{{- end -}}
