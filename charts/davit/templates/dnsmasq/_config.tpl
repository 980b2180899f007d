{{- /* `davit serve --dhcp` writes the same text (src/dhcp/config.ts): change both. With ranges dnsmasq is the network's DHCP server. Else it is a proxy-DHCP, which only adds what to boot. */ -}}
{{- define "davit.dnsmasq.config" -}}
{{- with .Values.dnsmasq -}}
{{- $script := printf "http://%s/chain.ipxe" $.Values.advertiseAddress -}}
# No DNS.
port=0
log-facility=-
log-dhcp
# The user that it is. Another one would lose the capabilities.
user=root
{{- with .interface }}
interface={{ . }}
# Not bind-interfaces, with which tftp-single-port sends nothing (dnsmasq 2.90).
bind-dynamic
{{- end }}
# dnsmasq opens it even as a proxy-DHCP.
dhcp-leasefile=/run/dnsmasq.leases
{{- if .ranges }}
# At its start it has no leases: it takes over those that machines still have.
dhcp-authoritative
{{- range .ranges }}
dhcp-range={{ . }}
{{- end }}
# Without an address no router: the default would be this computer.
dhcp-option=option:router{{ with .router }},{{ . }}{{ end }}
{{- else }}
dhcp-range={{ .subnet }},proxy
{{- end }}
enable-tftp
tftp-root={{ include "davit.dnsmasq.tftpRoot" $ }}
# All of a transfer on port 69, which firewalls know.
tftp-single-port
# iPXE identifies itself by its user class or by option 175. As a client of a proxy-DHCP it takes the URL of a service on
# a BIOS, and that of dhcp-boot on UEFI.
dhcp-userclass=set:ipxe,iPXE
dhcp-match=set:ipxe,175
dhcp-boot=tag:ipxe,{{ $script }}
{{- $ranges := .ranges }}
{{- range $firmware, $file := .loaders }}
{{- if $ranges }}
dhcp-match=set:{{ $firmware }},option:client-arch,{{ get (include "davit.dnsmasq.architectures" $ | fromYaml) $firmware | default $firmware }}
dhcp-boot=tag:!ipxe,tag:{{ $firmware }},{{ $file }}
{{- else }}
pxe-service=tag:!ipxe,{{ $firmware }},"{{ hasPrefix "grub" $file | ternary "GRUB" "iPXE" }}",{{ $file }}
pxe-service=tag:ipxe,{{ $firmware }},"davit",{{ $script }}
{{- end }}
{{- end }}
{{- with .extraConfig }}
{{ . | trim }}
{{- end }}
{{- end -}}
{{- end -}}

{{- /* DHCP option 93 by the names that dnsmasq has for its values. */ -}}
{{- define "davit.dnsmasq.architectures" -}}
x86PC: "0"
PC98: "1"
IA64_EFI: "2"
Alpha: "3"
Arc_x86: "4"
Intel_Lean_Client: "5"
IA32_EFI: "6"
x86-64_EFI: "7"
Xscale_EFI: "8"
BC_EFI: "9"
ARM32_EFI: "10"
ARM64_EFI: "11"
{{- end -}}

{{- /* GRUB sends the machine to davit, and leaves to the firmware when davit has nothing for it. */ -}}
{{- define "davit.dnsmasq.grubConfig" -}}
smbios --type 1 --get-uuid 8 --set uuid
configfile "(http,{{ .Values.advertiseAddress }})/grub?uuid=$uuid&mac=$net_default_mac&arch=$grub_cpu"
exit
{{- end -}}

{{- /* Those loaders that the pod makes with davit's address in them, each with its GRUB. */ -}}
{{- define "davit.dnsmasq.grubs" -}}
{{- $grubs := dict "grub-i386.0" "i386-pc" "grub-x86_64.efi" "x86_64-efi" "grub-arm64.efi" "arm64-efi" -}}
{{- $wanted := dict -}}
{{- if not .Values.dnsmasq.download -}}
{{- range $file := .Values.dnsmasq.loaders -}}
{{- if hasKey $grubs $file }}{{ $_ := set $wanted $file (get $grubs $file) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- toYaml $wanted -}}
{{- end -}}

{{- define "davit.dnsmasq.tftpRoot" -}}
{{- .Values.dnsmasq.download | empty | ternary .Values.dnsmasq.tftpRoot "/var/lib/davit-assets" -}}
{{- end -}}

{{- define "davit.dnsmasq.image" -}}
{{- $registry := dict "registry" (.Values.dnsmasq.image.registry | default .Values.image.registry) -}}
image: {{ include "davit.image" (dict "image" (merge $registry .Values.dnsmasq.image) "defaultTag" .Chart.AppVersion) }}
imagePullPolicy: {{ .Values.dnsmasq.image.pullPolicy }}
{{- end -}}
