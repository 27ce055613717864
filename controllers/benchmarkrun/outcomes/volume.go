package outcomes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
)

// UnknownOfVolume lists what is unknown for every result on a volume.
const UnknownOfVolume = "the servers behind the volume, their configuration and activity, and whether anything disturbed them: the target is no FileSystem of this operator"

// foundVolume returns what the results on a volume will be measured on. The check adds what only a pod can see.
func foundVolume(w *scope.Scope, version string) scope.Provenance {
	var out scope.Provenance
	out.Operator, out.Image, out.Unknown = version, w.Image, UnknownOfVolume
	v := w.Volume
	if v.Claim == nil {
		return out
	}
	volume := &v1alpha1.VolumeProvenance{Claim: v.Claim.Name + " " + string(v.Claim.UID), PersistentVolume: v.Claim.Spec.VolumeName}
	var modes []string
	for _, m := range v.AccessModes() {
		modes = append(modes, string(m))
	}
	volume.AccessModes = v1alpha1.Cut(strings.Join(modes, ", "), scope.MaxNodeText)
	if size := v.Claim.Status.Capacity.Storage(); !size.IsZero() {
		volume.Capacity = size.String()
	}
	if v.Claim.Spec.StorageClassName != nil {
		volume.StorageClass = *v.Claim.Spec.StorageClassName
	}
	if v.Class != nil {
		volume.Parameters = pairs(v.Class.Parameters)
	}
	if v.PersistentVolume != nil {
		volume.Driver, volume.Attributes = sourceOf(&v.PersistentVolume.Spec)
	}
	out.Volume = volume
	return out
}

// AddSeen adds what a pod has seen of a volume and of its node.
func AddSeen(found *scope.Provenance, nodes []string) {
	if found.Volume == nil || found.CheckFailed != "" {
		return
	}
	found.Volume.Mount = v1alpha1.Cut(found.Checked.Mounted, scope.MaxPinning)
	for _, node := range nodes {
		found.Clients = append(found.Clients, v1alpha1.NodeProvenance{
			Node: node, Kernel: v1alpha1.Cut(found.Checked.Kernel, scope.MaxNodeText),
			CPUs: int32(found.Checked.CPUs), //nolint:gosec // CPUs of one node
		})
	}
}

// sourceOf names what serves a volume, with its attributes except secrets.
func sourceOf(pv *corev1.PersistentVolumeSpec) (driver string, attributes []string) {
	switch s := pv.PersistentVolumeSource; {
	case s.CSI != nil:
		known := maps.Clone(s.CSI.VolumeAttributes)
		if known == nil {
			known = map[string]string{}
		}
		if s.CSI.FSType != "" {
			known["fsType"] = s.CSI.FSType
		}
		return s.CSI.Driver, pairs(known)
	case s.NFS != nil:
		return "nfs", pairs(map[string]string{"server": s.NFS.Server, "path": s.NFS.Path})
	case s.HostPath != nil:
		return "hostPath", pairs(map[string]string{"path": s.HostPath.Path})
	case s.Local != nil:
		return "local", pairs(map[string]string{"path": s.Local.Path})
	default:
		return "another", nil
	}
}

// The limits of the lists in VolumeProvenance.
const maxPairs, maxPair = 32, 256

// secretive lists parts of the names of secret values.
var secretive = []string{"secret", "password", "passwd", "passphrase", "token", "key", "credential", "auth", "sig"}

// pairs formats a map as name=value, sorted. It leaves out values that may be secret, and the identity of a provisioner, which differs at
// each start.
func pairs(of map[string]string) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		small := strings.ToLower(name)
		secret := slices.ContainsFunc(secretive, func(part string) bool { return strings.Contains(small, part) })
		if secret || strings.HasSuffix(small, "provisioneridentity") {
			continue
		}
		value := of[name]
		if userinfo(value) {
			value = "(left out: it may hold a password)"
		}
		if len(out) < maxPairs {
			out = append(out, v1alpha1.Cut(fmt.Sprintf("%s=%s", name, value), maxPair))
		}
	}
	return out
}

// userinfo reports whether a value is a URL, or a part of one, that may contain a password before an @.
func userinfo(value string) bool {
	_, after, is := strings.Cut(value, "://")
	return strings.Contains(cmp.Or(after, value), "@") && (is || strings.Contains(value, ":"))
}
