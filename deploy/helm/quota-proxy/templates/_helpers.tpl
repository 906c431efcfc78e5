{{- define "quota-proxy.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "quota-proxy.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "quota-proxy.labels" -}}
{{ include "quota-proxy.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "quota-proxy.secret" -}}
{{- .Values.admin.existingSecret | default (printf "%s-admin" (include "quota-proxy.name" .)) -}}
{{- end -}}

{{- /* The configuration with the Service's name where advertised_host is empty. YAML. */ -}}
{{- define "quota-proxy.config" -}}
{{- $root := . -}}
{{- $config := deepCopy .Values.config -}}
{{- range $listener := $config.listeners -}}
{{- if and (not $listener.sni) (not $listener.advertised_host) -}}
{{- $_ := set $listener "advertised_host" (printf "%s.%s.svc" (include "quota-proxy.name" $root) $root.Release.Namespace) -}}
{{- end -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{- /* What needs new pods when it changes: everything but the quotas that are loaded again. */ -}}
{{- define "quota-proxy.restarts" -}}
{{- $quotas := .Values.config.quotas | default dict -}}
{{- $kept := pick $quotas "store" -}}
{{- if $quotas.replication -}}{{- $_ := set $kept "enforce" $quotas.replication.enforce -}}{{- end -}}
{{- dict "file" (omit .Values.config "quotas") "quotas" $kept | toJson | sha256sum -}}
{{- end -}}

{{- define "quota-proxy.adminPort" -}}
{{- (.Values.config.admin).port | default 9644 -}}
{{- end -}}

{{- /* The ports of a listener as JSON: name, port of the Service, port of the pod, and NodePort or 0. */ -}}
{{- define "quota-proxy.ports" -}}
{{- $root := .root -}}
{{- $listener := .listener -}}
{{- $type := $root.Values.service.type -}}
{{- $name := $listener.name | default "clients" -}}
{{- $ports := list -}}
{{- if $listener.sni -}}
{{- $target := int $listener.sni.port -}}
{{- $advertised := int ($listener.sni.advertised_port | default $target) -}}
{{- $node := ternary $advertised 0 (eq $type "NodePort") -}}
{{- $ports = append $ports (dict "name" $name "port" (ternary $target $advertised (eq $type "NodePort")) "target" $target "node" $node) -}}
{{- else -}}
{{- if not $listener.replication -}}
{{- $target := int ($listener.bootstrap_port | default 29092) -}}
{{- $node := int (get $root.Values.service.bootstrapNodePorts $name | default 0) -}}
{{- $ports = append $ports (dict "name" (printf "%s-bootstrap" $name) "port" $target "target" $target "node" $node) -}}
{{- end -}}
{{- $base := int ($listener.broker_port_base | default 29100) -}}
{{- $advertised := int ($listener.advertised_broker_port_base | default $base) -}}
{{- range $id := $root.Values.brokerIds -}}
{{- $target := add $base $id | int -}}
{{- $outside := add $advertised $id | int -}}
{{- $isNode := eq $type "NodePort" -}}
{{- $ports = append $ports (dict "name" (printf "%s-%d" $name (int $id)) "port" (ternary $target $outside $isNode) "target" $target "node" (ternary $outside 0 $isNode)) -}}
{{- end -}}
{{- end -}}
{{- $ports | toJson -}}
{{- end -}}
