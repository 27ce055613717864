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

// ToldBy reads what the file of a node tells a server, anew with each call: targets come and go while it runs.
func ToldBy(told spec.Serve, node string) func() (Told, string) {
	run := spec.Run{Owner: told.Owner, Daemon: told.Daemon, NodeFile: told.NodeFile, OnTargets: &spec.OnTargets{}}
	return func() (Told, string) {
		member, missing := daemon.Read(run, node)
		if missing != "" {
			return Told{}, missing
		}
		out, missing := toldOf(member)
		for i := range out.Targets {
			out.Targets[i].Lock = spec.MountLock(told.NodeFile, out.Targets[i].Name)
		}
		return out, missing
	}
}

// toldOf is what a member is told. Of a target that nobody has proven yet, only the name is known, and the path.
func toldOf(member spec.Member) (Told, string) {
	out := Told{Targets: make([]Target, 0, len(member.Targets)), Variables: member.Variables, Elsewhere: member.Elsewhere}
	for _, t := range member.Targets {
		target := Target{Name: t.Name, Path: t.Path}
		switch {
		case t.Directory:
			return Told{}, fmt.Sprintf("target %s is a directory, which no kernel serves; the operator and its node image must be of the same version", t.Name)
		case t.UUID == "":
			target.Waits = "its disk is not proven yet; kubectl get storagetarget " + t.Name + " -o wide says why"
		case t.Served == nil:
			target.Waits = "the agent of this node has not said yet what its disk must say; look at its log"
		default:
			if why := target.given(t); why != "" {
				return Told{}, why
			}
		}
		out.Targets = append(out.Targets, target)
	}
	return out, ""
}

// Of is the disk of a target as a server is told of it.
func Of(t spec.Target) (Target, error) {
	out := Target{Name: t.Name, Path: t.Path}
	if t.Served == nil {
		return out, fmt.Errorf("nobody has said what the disk of target %s must say", t.Name)
	}
	if why := out.given(t); why != "" {
		return out, errors.New(why)
	}
	return out, nil
}

// given takes over what a disk must say, or says why that can't be understood.
func (t *Target) given(told spec.Target) string {
	served := told.Served
	found, is := registry.Served(v1alpha1.FormatSpec{FSType: v1alpha1.FSType(served.FSType)})
	if !is {
		return fmt.Sprintf("target %s has the format %q, whose disks no server of their own mounts; the operator and its node image must be of the same version",
			t.Name, served.FSType)
	}
	decoder := json.NewDecoder(bytes.NewReader(served.Given))
	// What it does not know, it would not compare.
	decoder.DisallowUnknownFields()
	var given format.Given
	if err := decoder.Decode(&given); err != nil {
		return fmt.Sprintf("can't understand what target %s was given: %v; the operator and its node image must be of the same version", t.Name, err)
	}
	if format.IsShared(&given) && served.BootID == "" {
		return fmt.Sprintf("target %s is one of two nodes, and it is not said for which start of this node that was told; the operator, its agent and its "+
			"node image must be of the same version", t.Name)
	}
	t.ID, t.Format, t.BootID = v1alpha1.DeviceID(served.DeviceID), found, served.BootID
	t.Wanted = format.New{UUID: told.UUID, Mark: served.Mark, Given: &given}
	return ""
}
