package backend

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/spec"
)

// Set holds the backends of a program, by the type that they serve.
type Set map[v1alpha1.FileSystemType]Backend

// SetOf returns the set of these backends.
func SetOf(backends ...Backend) Set {
	set := Set{}
	for _, b := range backends {
		set[b.Type()] = b
	}
	return set
}

// Claims returns the claims of filesystems, in their order. The argument nodes holds their FileSystemNodes, by the uid of the FileSystem.
func (s Set) Claims(filesystems []v1alpha1.FileSystem, nodes map[types.UID][]v1alpha1.FileSystemNode) []Claims {
	var out []Claims
	for i := range filesystems {
		if b, ok := s[filesystems[i].Spec.Type].(Claimer); ok {
			out = append(out, b.Claims(&filesystems[i], nodes[filesystems[i].UID]))
		}
	}
	return out
}

// Probers returns the backends whose filesystems have a probe, by spec.Probe.Backend.
func (s Set) Probers() map[string]Asker {
	out := map[string]Asker{}
	for kind, b := range s {
		if p, ok := b.(Asker); ok {
			out[string(kind)] = p
		}
	}
	return out
}

// HostSettings returns the settings of all backends, in the order of their types.
func (s Set) HostSettings() []spec.HostSetting {
	var out []spec.HostSetting
	for _, kind := range SortedKeys(s) {
		if b, ok := s[kind].(HostTuner); ok {
			out = append(out, b.HostSettings()...)
		}
	}
	return out
}

// SettingsOf returns settings for the servers of a filesystem with these roles.
func SettingsOf(kind v1alpha1.FileSystemType, roles []v1alpha1.Role, settings ...spec.HostSetting) []spec.HostSetting {
	for i := range settings {
		settings[i].FileSystem = string(kind)
		for _, role := range roles {
			settings[i].Roles = append(settings[i].Roles, string(role))
		}
	}
	return settings
}

// Modules returns the modules of all backends, by name.
func (s Set) Modules() []spec.KernelModule {
	var out []spec.KernelModule
	for _, b := range s {
		if b, ok := b.(ModuleUser); ok {
			out = append(out, b.Modules()...)
		}
	}
	slices.SortFunc(out, func(a, b spec.KernelModule) int { return strings.Compare(a.Name, b.Name) })
	return out
}
