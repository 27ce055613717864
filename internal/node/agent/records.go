package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/record"
	"parallelfs.dev/operator/internal/node/spec"
)

// recordLimit is the default of NodeFiles.patience. A disk that answers needs far less.
const recordLimit = 10 * time.Second

// recorder remembers the record on each disk of the node. A disk that does not answer delays no other disk.
type recorder struct {
	mutex sync.Mutex
	// has holds the written records by the UUID of the disk's filesystem, and busy the UUIDs of records that are being written.
	has  map[string]spec.TargetRecord
	busy map[string]bool
}

// lack is the reason why a disk lacks its record. isNew is true if no server was configured to use the disk before. Otherwise the disk has
// an earlier record with the same ids.
type lack struct {
	why   error
	isNew bool
}

// lacking holds the disks that lack their record, by StorageTarget.
type lacking map[string]lack

// err names the new disks, which no server may use; nil when there is none.
func (l lacking) err() error {
	var out []string
	for name, of := range l {
		if of.isNew {
			out = append(out, fmt.Sprintf("%s (%s)", name, of.why))
		}
	}
	if len(out) == 0 {
		return nil
	}
	slices.Sort(out)
	return errors.New("no server may use these disks before their record lies on them: " + strings.Join(out, ", "))
}

// keepRecords writes the records to the disks of a node's servers before the servers are configured to use them. It returns the disks that
// lack their record. A record is a file in the top directory of a disk. A disk that only its own server mounts has no directory for it and
// gets none. Its own data holds what the record would hold, and its mark names its owner.
func (r *NodeFiles) keepRecords(ctx context.Context, n *v1alpha1.FileSystemNode, without served) lacking {
	type result struct {
		name string
		err  error
	}
	wanted := map[string]spec.Target{}
	targets := 0
	for i := range n.Spec.Members {
		targets += len(n.Spec.Members[i].Targets)
	}
	results := make(chan result, targets) // no goroutine blocks if it ends late
	out := lacking{}
	for i := range n.Spec.Members {
		m := &n.Spec.Members[i]
		for j := range m.Targets {
			t := &m.Targets[j]
			if t.Directory || t.UUID == "" || t.Path == "" || m.Retired || without[t.Name] != nil {
				continue
			}
			says, known := record.Of(n, m, t)
			if !known {
				out[t.Name] = lack{why: errors.New("its FileSystemNode does not say yet what the filesystem was given (spec.facts)")}
				continue
			}
			begun, err := r.records.begin(t.UUID, says)
			if err != nil {
				out[t.Name] = lack{why: err}
			}
			if !begun {
				continue
			}
			of := spec.Target{Name: t.Name, Path: t.Path, UUID: t.UUID}
			wanted[t.Name] = of
			go func() {
				err := r.Record(of, says)
				r.records.end(of.UUID, says, err)
				results <- result{of.Name, err}
			}()
		}
	}
	patience := cmp.Or(r.patience, recordLimit)
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for waits := len(wanted); waits > 0; waits-- {
		select {
		case got := <-results:
			delete(wanted, got.name)
			if got.err != nil {
				out[got.name] = lack{why: got.err}
			}
			continue
		case <-limit.C:
		case <-ctx.Done():
		}
		break
	}
	for name := range wanted {
		out[name] = lack{why: fmt.Errorf("its disk has not answered for %s", patience)}
	}
	if len(out) > 0 {
		r.tellNew(n, out)
		for name, of := range out {
			log.FromContext(ctx).Info("A disk lacks the record of what its server was given; it is tried again", "target", name, "new", of.isNew, "reason", of.why.Error())
		}
	}
	return out
}

// begin is true if a record has to be written. It is an error if the previous write has not ended.
func (r *recorder) begin(uuid string, says spec.TargetRecord) (bool, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.has[uuid] == says {
		return false, nil
	}
	if r.busy[uuid] {
		return false, errors.New("its disk does not answer")
	}
	if r.busy == nil {
		r.busy, r.has = map[string]bool{}, map[string]spec.TargetRecord{}
	}
	delete(r.has, uuid) // the disk's record is unknown until the write has succeeded
	r.busy[uuid] = true
	return true, nil
}

func (r *recorder) end(uuid string, says spec.TargetRecord, err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.busy, uuid)
	if err == nil {
		r.has[uuid] = says
	}
}

// tellNew marks the disks that no server was configured to use before: the node file does not contain them with their current UUID.
func (r *NodeFiles) tellNew(n *v1alpha1.FileSystemNode, of lacking) {
	told := map[string]string{}
	if directory, err := r.directory(n); err == nil {
		var file spec.NodeFile
		content, err := os.ReadFile(filepath.Join(directory, spec.NodeFileName))
		if err == nil && json.Unmarshal(content, &file) == nil && file.FileSystem.UID == n.Spec.FileSystem.UID {
			for _, m := range file.Members {
				for _, t := range m.Targets {
					told[t.Name] = t.UUID
				}
			}
		}
	}
	for _, m := range n.Spec.Members {
		for _, t := range m.Targets {
			if l, lacks := of[t.Name]; lacks {
				l.isNew = told[t.Name] != t.UUID
				of[t.Name] = l
			}
		}
	}
}
