package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/daemon"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/format/registry"
	"parallelfs.dev/operator/internal/node/spec"
)

// ConfigBy returns a function that reads a server's part of the node file at each call, because targets come and go while the server runs.
func ConfigBy(config spec.Serve, node string) func() (ServerConfig, string) {
	run := spec.Run{Owner: config.Owner, Daemon: config.Daemon, NodeFile: config.NodeFile, OnTargets: &spec.OnTargets{}}
	return func() (ServerConfig, string) {
		member, missing := daemon.Read(run, node)
		if missing != "" {
			return ServerConfig{}, missing
		}
		out, missing := configOf(member)
		for i := range out.Targets {
			out.Targets[i].Lock = spec.MountLock(config.NodeFile, out.Targets[i].Name)
		}
		return out, missing
	}
}

// configOf returns the configuration of a member. For a target that is not proven yet, only the name and the path are known.
func configOf(member spec.Member) (ServerConfig, string) {
	out := ServerConfig{Targets: make([]Target, 0, len(member.Targets)), Variables: member.Variables, Elsewhere: member.Elsewhere}
	for _, t := range member.Targets {
		target := Target{Name: t.Name, Path: t.Path}
		switch {
		case t.Directory:
			return ServerConfig{}, fmt.Sprintf("target %s is a directory, which no kernel serves; the operator and its node image must be of the same version", t.Name)
		case t.UUID == "":
			target.Waits = "its disk is not proven yet; kubectl get storagetarget " + t.Name + " -o wide shows why"
		case t.Served == nil:
			target.Waits = "the agent of this node has not recorded yet what its disk must contain; look at its log"
		default:
			if why := target.given(t); why != "" {
				return ServerConfig{}, why
			}
		}
		out.Targets = append(out.Targets, target)
	}
	return out, ""
}

// Of returns the disk of a target as it is configured for a server.
func Of(t spec.Target) (Target, error) {
	out := Target{Name: t.Name, Path: t.Path}
	if t.Served == nil {
		return out, fmt.Errorf("the expected content of the disk of target %s is not recorded", t.Name)
	}
	if why := out.given(t); why != "" {
		return out, errors.New(why)
	}
	return out, nil
}

// given copies the required content of a disk, or returns why it can't be parsed.
func (t *Target) given(config spec.Target) string {
	served := config.Served
	found, is := registry.Served(v1alpha1.FormatSpec{FSType: v1alpha1.FSType(served.FSType)})
	if !is {
		return fmt.Sprintf("target %s has the format %q, whose disks no server of their own mounts; the operator and its node image must be of the same version",
			t.Name, served.FSType)
	}
	decoder := json.NewDecoder(bytes.NewReader(served.Given))
	// Unknown fields would not be compared.
	decoder.DisallowUnknownFields()
	var given format.Given
	if err := decoder.Decode(&given); err != nil {
		return fmt.Sprintf("can't understand what target %s was given: %v; the operator and its node image must be of the same version", t.Name, err)
	}
	if format.IsShared(&given) && served.BootID == "" {
		return fmt.Sprintf("target %s is one of two nodes, and its configuration names no start of this node; the operator, its agent and its "+
			"node image must be of the same version", t.Name)
	}
	t.ID, t.Format, t.BootID = v1alpha1.DeviceID(served.DeviceID), found, served.BootID
	t.Wanted = format.New{UUID: config.UUID, Mark: served.Mark, Given: &given}
	return ""
}
