{{- define "sparkgate.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* The name of the objects: that of the release, with that of the chart unless it contains it. Suffixes must fit, too. */}}
{{- define "sparkgate.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- $name := include "sparkgate.name" . }}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) }}
{{- $full | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* The labels of an object: (list CONTEXT COMPONENT). */}}
{{- define "sparkgate.labels" -}}
{{- $root := index . 0 -}}
{{ include "sparkgate.selector" . }}
app.kubernetes.io/version: {{ $root.Values.image.tag | default $root.Chart.AppVersion | trunc 63 | trimSuffix "-" | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "sparkgate.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "sparkgate.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "sparkgate.account" -}}
{{- if .Values.serviceAccount.create }}
{{- .Values.serviceAccount.name | default (include "sparkgate.fullname" .) }}
{{- else }}
{{- .Values.serviceAccount.name | default "default" }}
{{- end }}
{{- end }}

{{- define "sparkgate.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/* The namespaces of drivers, separated by commas: those of the values, and those of the tenants. */}}
{{- define "sparkgate.namespaces" -}}
{{- $all := .Values.drivers.namespaces }}
{{- range (.Values.access.content).tenants }}
{{- $all = concat $all (without (.namespaces | default list) "*") }}
{{- end }}
{{- if empty $all }}
{{- fail "drivers.namespaces: list the namespaces of drivers, or tenants with namespaces in access.content" }}
{{- end }}
{{- if has .Release.Namespace $all }}
{{- fail (printf "drivers.namespaces: %s is the namespace of the gateway. Drivers run code of users: give them another one" .Release.Namespace) }}
{{- end }}
{{- $all | uniq | join "," }}
{{- end }}

{{/* The port of Spark's clients without credentials, if the access file has one. */}}
{{- define "sparkgate.sparkListenerPort" -}}
{{- with (((.Values.access.content).authentication).sparkListener) }}
{{- regexFind "[0-9]+$" (.listen | default "") }}
{{- end }}
{{- end }}

{{/* The port of Livy's clients, if there is one. */}}
{{- define "sparkgate.livyPort" -}}
{{- regexFind "[0-9]+$" (index .Values.settings "livy-listen" | default "") }}
{{- end }}

{{/* The port of clients of Spark Connect, if there is one. */}}
{{- define "sparkgate.connectPort" -}}
{{- regexFind "[0-9]+$" (index .Values.settings "connect-listen" | default "") }}
{{- end }}

{{/* The port of signed URLs of files, for drivers and executors, if files can be uploaded. */}}
{{- define "sparkgate.filesPort" -}}
{{- if index .Values.settings "files-url" }}
{{- regexFind "[0-9]+$" (index .Values.settings "files-listen" | default "0.0.0.0:6069") }}
{{- end }}
{{- end }}

{{/* The source of the access file, if there is one. */}}
{{- define "sparkgate.accessConfigMap" -}}
{{- if .Values.access.existingConfigMap }}
{{- if .Values.access.content }}{{ fail "access.content and access.existingConfigMap exclude each other" }}{{ end }}
{{- .Values.access.existingConfigMap }}
{{- else if .Values.access.content }}
{{- include "sparkgate.fullname" . }}-access
{{- end }}
{{- end }}

{{/* The source of the file of Spark lines, if there is one. */}}
{{- define "sparkgate.sparkLinesConfigMap" -}}
{{- if .Values.sparkLines.existingConfigMap }}
{{- if .Values.sparkLines.content }}{{ fail "sparkLines.content and sparkLines.existingConfigMap exclude each other" }}{{ end }}
{{- .Values.sparkLines.existingConfigMap }}
{{- else if .Values.sparkLines.content }}
{{- include "sparkgate.fullname" . }}-spark-lines
{{- end }}
{{- end }}

{{/* The folders of the submitter directory that have files: a JSON object of their values by the folders' names. */}}
{{- define "sparkgate.submitter" -}}
{{- $folders := dict }}
{{- range $key, $name := dict "defaults" "defaults" "files" "files" "sparkConf" "spark-conf" "hadoopConf" "hadoop-conf" }}
{{- $folder := index $.Values.submitter $key }}
{{- if or $folder.content $folder.from }}{{ $_ := set $folders $name $folder }}{{ end }}
{{- end }}
{{- toJson $folders }}
{{- end }}

{{- define "sparkgate.databaseUrl" -}}
- name: SPARKGATE_DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ .existingSecret }}
      key: {{ .key }}
{{- end }}

{{/* The settings of the file, as a JSON object: those of the values, and where drivers find their files. */}}
{{- define "sparkgate.settings" -}}
{{- $settings := dict }}
{{- with include "sparkgate.filesPort" . }}
{{- $scheme := ternary "https" "http" (not (empty $.Values.tls.existingSecret)) }}
{{- $_ := set $settings "files-listen" (printf "0.0.0.0:%s" .) }}
{{- $_ := set $settings "files-base-url" (printf "%s://%s.%s.svc:%s" $scheme (include "sparkgate.fullname" $) $.Release.Namespace .) }}
{{- end }}
{{- toJson (mergeOverwrite $settings .Values.settings) }}
{{- end }}

{{/* Variables with the settings of the log, for Jobs. The file of settings may not exist when they run. */}}
{{- define "sparkgate.logSettings" -}}
{{- range $key := list "log" "log-format" }}
{{- with index $.Values.settings $key }}
- name: SPARKGATE_{{ $key | replace "-" "_" | upper }}
  value: {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* A value as a setting is written. Helm reads numbers as floating-point numbers. */}}
{{- define "sparkgate.text" -}}
{{- if kindIs "slice" . }}{{ join "," . }}
{{- else if and (kindIs "float64" .) (eq (floor .) .) }}{{ printf "%.0f" . }}
{{- else }}{{ toString . }}
{{- end }}
{{- end }}

{{/* What all pods have in common. */}}
{{- define "sparkgate.pod" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What all containers have in common, but for their variables and volumes. */}}
{{- define "sparkgate.container" -}}
image: {{ include "sparkgate.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
resources:
  {{- toYaml .Values.resources | nindent 2 }}
securityContext:
  {{- toYaml .Values.securityContext | nindent 2 }}
{{- end }}
