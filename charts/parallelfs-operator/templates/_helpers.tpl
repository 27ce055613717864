{{/* The chart's name, as it stands in labels. */}}
{{- define "parallelfs-operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* The prefix of all names: the release's name, with the chart's where it isn't part of it. 63 less the longest suffix. */}}
{{- define "parallelfs-operator.fullname" -}}
{{- $name := include "parallelfs-operator.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels of every object of the chart. */}}
{{- define "parallelfs-operator.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/name: {{ include "parallelfs-operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Labels of what a Prometheus operator selects. */}}
{{- define "parallelfs-operator.monitorLabels" -}}
{{- toYaml (merge (deepCopy .Values.monitoring.labels) (include "parallelfs-operator.labels" . | fromYaml)) -}}
{{- end -}}

{{/* Labels of pods: those that select them, and those of values. Takes a list: the context, and the name of the template that selects them. */}}
{{- define "parallelfs-operator.podLabels" -}}
{{- $context := index . 0 -}}
{{- $selects := include (index . 1) $context | fromYaml -}}
{{- toYaml (merge $selects (deepCopy $context.Values.podLabels) $context.Values.commonLabels) -}}
{{- end -}}

{{/* Secrets for pulling images, of this chart and of all charts of a release. */}}
{{- define "parallelfs-operator.pullSecrets" -}}
{{- with concat .Values.imagePullSecrets ((.Values.global).imagePullSecrets | default list) | uniq -}}
{{- toYaml . -}}
{{- end -}}
{{- end -}}

{{/* Registry of images that name none: the chart's own, or that of all charts of a release. */}}
{{- define "parallelfs-operator.registry" -}}
{{- .Values.imageRegistry | default (.Values.global).imageRegistry -}}
{{- end -}}

{{/* Labels that select the manager's pods; they never change. */}}
{{- define "parallelfs-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ include "parallelfs-operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: manager
{{- end -}}

{{/* Labels that select the agents; they never change. */}}
{{- define "parallelfs-operator.agentSelectorLabels" -}}
app.kubernetes.io/name: {{ include "parallelfs-operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: agent
{{- end -}}

{{/* Labels that select the MPI operator's pod; they never change. */}}
{{- define "parallelfs-operator.mpiSelectorLabels" -}}
app.kubernetes.io/name: {{ include "parallelfs-operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: mpi-operator
{{- end -}}

{{/* Name of the manager's service account. */}}
{{- define "parallelfs-operator.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (printf "%s-manager" (include "parallelfs-operator.fullname" .)) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name must name an existing service account when serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* Name that the API server knows a service account of the release by. Takes a list: the context, and the account's name. */}}
{{- define "parallelfs-operator.username" -}}
system:serviceaccount:{{ (index . 0).Release.Namespace }}:{{ index . 1 }}
{{- end -}}

{{/*
Repository of an image, with its registry. Takes a list: the context, the value's name, and {repository, tag, digest}. A name without a
registry is what nodes ask docker.io for, where it may be anybody's; a digest is what it says, wherever it comes from.
*/}}
{{- define "parallelfs-operator.repository" -}}
{{- $context := index . 0 -}}
{{- $image := index . 2 -}}
{{- if regexMatch "^([^/]*[.:][^/]*|localhost)/" $image.repository -}}
{{- $image.repository -}}
{{- else if include "parallelfs-operator.registry" $context -}}
{{- printf "%s/%s" (include "parallelfs-operator.registry" $context) $image.repository -}}
{{- else if $image.digest -}}
{{- $image.repository -}}
{{- else -}}
{{- fail (printf "%s names no registry (%s): nodes would pull it from docker.io, where anybody may own that name, and run it privileged; set imageRegistry to the registry that you push the images to" (index . 1) $image.repository) -}}
{{- end -}}
{{- end -}}

{{/* Reference of an image. Takes a list: the context, the value's name, and {repository, tag, digest}. */}}
{{- define "parallelfs-operator.image" -}}
{{- $context := index . 0 -}}
{{- $image := index . 2 -}}
{{- $repository := include "parallelfs-operator.repository" . -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (default $context.Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{/*
Reference of an image of daemons. Takes a list: the context, the image's name, such as moosefs-4.57.5 or beegfs-meta, and {repository, tag, digest}.
The tag is the version in the name, where none is given; without a version, it is the repository alone: the manager adds that of a FileSystem.
*/}}
{{- define "parallelfs-operator.daemonImage" -}}
{{- $version := regexFind "[0-9]+(\\.[0-9]+)*$" (index . 1) -}}
{{- $image := index . 2 -}}
{{- $repository := include "parallelfs-operator.repository" (list (index . 0) (printf "images.daemons.%s" (index . 1)) $image) -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $repository $image.digest -}}
{{- else if $version -}}
{{- printf "%s:%s" $repository (default $version $image.tag) -}}
{{- else -}}
{{- $repository -}}
{{- end -}}
{{- end -}}

{{/* Pod security of the chart's own pods: what the pod security standard "restricted" asks for. Neither needs a user of its own. */}}
{{- define "parallelfs-operator.podSecurityContext" -}}
runAsNonRoot: true
{{- with .Values.runAsUser }}
runAsUser: {{ int64 . }}
runAsGroup: {{ int64 . }}
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* Security of the containers of the chart's own pods. */}}
{{- define "parallelfs-operator.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop:
  - ALL
{{- end -}}

{{/* Where the chart's own pods may run. */}}
{{- define "parallelfs-operator.scheduling" -}}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
