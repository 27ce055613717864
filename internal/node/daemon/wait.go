package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/spec"
)

const (
	// pause is the time between two rounds of proofs.
	pause = time.Second
	// patience is the number of rounds that remaining targets get after the first one is proven, if the daemon does not need all. After a boot
	// the disks are mounted one after the other. A daemon that starts with the first alone makes the filesystem copy the data of the rest.
	patience = 30
	// nodeVariable is the environment variable with the name of this node in the cluster.
	nodeVariable = "NODE_NAME"
)

// understand refuses an invalid spec before any wait.
func understand(config spec.Run) error {
	switch {
	case config.OnTargets == nil:
		return nil
	case config.NodeFile == "":
		return errors.New("the spec says how to use targets (onTargets), but not where their list is (nodeFile); " +
			"the operator and its node image must be of the same version")
	case !plain(config.OnTargets.Directory):
		return fmt.Errorf("%q can't be the name of the directory on a target", config.OnTargets.Directory)
	}
	return nil
}

func plain(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.Contains(name, "/") && name != spec.TargetMarkerFile && name != "lost+found"
}

// here is the daemon's entry in the node file when it can start.
type here struct {
	config spec.Member
	// proven holds the targets that it starts with.
	proven []spec.Target
}

// wait returns when the daemon can start: its entry and its targets are there. It returns at once when ctx ends.
func wait(ctx context.Context, config spec.Run, host Host, log *slog.Logger) (here, error) {
	if config.NodeFile == "" {
		return here{}, nil
	}
	node, named := host.Environment(nodeVariable)
	if !named {
		return here{}, fmt.Errorf("the environment variable %s, the name of this node, is not set; it comes from the pod (spec.nodeName)", nodeVariable)
	}
	questions := questions{owner: config.Owner, prove: host.Prove, limit: host.ProveLimit, open: map[asked]question{}}
	said, rounds := "", 0
	for {
		found, missing := Read(config, node)
		if missing == "" {
			faults := questions.ask(ctx, found.Targets)
			var proven []spec.Target
			if proven, missing = start(found.Targets, faults, config.OnTargets, rounds); missing == "" && ctx.Err() == nil {
				for _, t := range found.Targets {
					if fault := faults[t.Name]; fault != nil {
						log.Warn("starting without a target", "target", t.Name, "reason", fault)
					}
				}
				return here{config: found, proven: proven}, nil
			}
			rounds++
			if len(proven) == 0 {
				rounds = 0
			}
		}
		if missing != said && ctx.Err() == nil {
			log.Info("waiting", "for", missing)
			said = missing
		}
		select {
		case <-ctx.Done():
			if said == "" {
				return here{}, errors.New("stopped before the daemon was started")
			}
			return here{}, fmt.Errorf("stopped before the daemon was started; it was waiting: %s", said)
		case <-host.After(pause):
		}
	}
}

// start returns the targets that the daemon starts with. If waiting is not empty it describes what the daemon waits for, and proven holds
// the targets that are proven so far. faults holds the targets that are not proven. rounds is the number of earlier rounds with at least
// one proven target.
func start(targets []spec.Target, faults map[string]error, use *spec.OnTargets, rounds int) (proven []spec.Target, waiting string) {
	if use == nil {
		return nil, ""
	}
	var reasons []string
	for _, t := range targets {
		if fault, ok := faults[t.Name]; ok {
			reasons = append(reasons, fault.Error())
			continue
		}
		proven = append(proven, t)
	}
	switch {
	case len(targets) == 0:
		return nil, "this node has no target for the daemon yet; kubectl get storagetargets -o wide shows what there is"
	case len(reasons) == 0, len(proven) > 0 && !use.All && rounds >= patience:
		return proven, ""
	default:
		return proven, strings.Join(reasons, "; ")
	}
}

// sameVersion ends the messages about content from another version of the operator.
const sameVersion = "the agent of this node and the node image of this pod are of different versions: wait until the operator's update is " +
	"complete: a pod that is older is then made again within minutes"

// Read reads a daemon's entry in the node file; missing describes what is wrong with it. All such faults can be corrected while the daemon
// waits, because the node's agent rewrites the file. It uses Owner, Daemon, NodeFile and OnTargets of told.
func Read(config spec.Run, node string) (found spec.Member, missing string) {
	path, member := config.NodeFile, spec.MemberName(config.Daemon)
	describe := fmt.Sprintf("kubectl describe filesystem %s -n %s shows why", config.Owner.Name, config.Owner.Namespace)
	content, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return found, fmt.Sprintf("%s is not there: the agent of this node has not written the configuration of its servers yet; look whether it runs here "+
			"(kubectl label node %s %s=); %s", path, node, v1alpha1.LabelAgent, describe)
	case err != nil:
		return found, fmt.Sprintf("the file of this node can't be read: %v", err)
	}
	var form struct {
		Version int `json:"version"`
	}
	switch err := json.Unmarshal(content, &form); {
	case err != nil:
		return found, fmt.Sprintf("%s can't be understood: %v; remove it, and the agent of this node writes it again", path, err)
	case form.Version < 1:
		return found, path + " has no version of its form, so no agent wrote it; remove it, and the agent of this node writes it again"
	case form.Version > spec.NodeFileVersion:
		return found, fmt.Sprintf("%s has version %d of its form, and this pod's image reads versions up to %d: the image is older than the agent of this node; %s",
			path, form.Version, spec.NodeFileVersion, sameVersion)
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	// Unknown fields would be ignored.
	decoder.DisallowUnknownFields()
	var all spec.NodeFile
	if err := decoder.Decode(&all); err != nil {
		return found, fmt.Sprintf("%s can't be understood: %v; %s", path, err, sameVersion)
	}
	switch {
	case all.FileSystem != config.Owner:
		return found, fmt.Sprintf("%s is that of FileSystem %s in namespace %s with the uid %s, and this pod belongs to %s in namespace %s with the uid %s: "+
			"the agent of this node writes it again when that one is gone; look at the agent's log, or delete this pod where its FileSystem is gone",
			path, all.FileSystem.Name, all.FileSystem.Namespace, all.FileSystem.UID, config.Owner.Name, config.Owner.Namespace, config.Owner.UID)
	case all.Node != node:
		return found, fmt.Sprintf("%s is that of node %s, and this node is %s: it was copied, or the node has another name than before; remove the file, "+
			"and the agent of this node writes its own", path, all.Node, node)
	}
	i := slices.IndexFunc(all.Members, func(m spec.Member) bool { return m.Name == member })
	if i < 0 {
		return found, fmt.Sprintf("%s has no entry for %q yet; %s", path, member, describe)
	}
	found = all.Members[i]
	for i, t := range found.Targets {
		if slices.ContainsFunc(found.Targets[:i], func(other spec.Target) bool { return other.Name == t.Name }) {
			return found, fmt.Sprintf("%s names the target %s twice for %q; %s", path, t.Name, member, sameVersion)
		}
	}
	switch {
	case found.Waits != "":
		return found, fmt.Sprintf("%s; %s", found.Waits, describe)
	case config.OnTargets == nil && len(found.Targets) > 0:
		return found, fmt.Sprintf("%s gives targets to %q, which does not use any; %s", path, member, sameVersion)
	}
	return found, ""
}

// questions asks for the proof of each target separately, so that a hanging disk does not keep the others from being used. A target is
// asked again after it has answered, and the others don't wait for it twice.
type questions struct {
	owner spec.Owner
	prove func(spec.Target, spec.Owner) error
	limit time.Duration
	// open holds the proofs without an answer.
	open map[asked]question
}

// asked holds all fields of a target that the proof depends on. If one changes during a proof, the target has no result.
type asked struct {
	name, path, uuid string
	directory        bool
}

func askedOf(t spec.Target) asked { return asked{t.Name, t.Path, t.UUID, t.Directory} }

// question is a running proof; overdue is closed when its limit has passed.
type question struct {
	answer  chan error
	overdue chan struct{}
}

// ask returns the fault of each target that is not proven, by name. It returns when all have answered, the limit has passed or ctx ends.
func (q questions) ask(ctx context.Context, targets []spec.Target) map[string]error {
	for _, t := range targets {
		if _, waiting := q.open[askedOf(t)]; waiting {
			continue
		}
		next := question{make(chan error, 1), make(chan struct{})}
		q.open[askedOf(t)] = next
		go func() { next.answer <- q.prove(t, q.owner) }()
		time.AfterFunc(q.limit, func() { close(next.overdue) })
	}
	faults := map[string]error{}
	for _, t := range targets {
		fault, answered := q.open[askedOf(t)].wait(ctx)
		if !answered {
			faults[t.Name] = fmt.Errorf("target %s at %s does not answer; look into the kernel's log (dmesg) for the disk", t.Name, t.Path)
			continue
		}
		delete(q.open, askedOf(t))
		if fault != nil {
			faults[t.Name] = fault
		}
	}
	return faults
}

// wait returns an available answer before anything else.
func (q question) wait(ctx context.Context) (fault error, answered bool) {
	select {
	case fault = <-q.answer:
		return fault, true
	default:
	}
	select {
	case fault = <-q.answer:
		return fault, true
	case <-q.overdue:
	case <-ctx.Done():
	}
	return nil, false
}
