//go:build scale

package main

import (
	"fmt"
	"math"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/internal/node/spec"
)

const (
	// disksPerNode is the number of disks of each storage node.
	disksPerNode = 24
	// clientsPerNode is how many client nodes there are for each storage node.
	clientsPerNode = 5
	// diskBytes is the size of a disk: 16 TiB, as hard disks of storage servers have.
	diskBytes = int64(16) << 40
	// diskRate is how much programs write to each disk, in bytes a second: slightly less than such a disk can do.
	diskRate = int64(150) << 20
	// usedAtFirst is the part of a disk's capacity below which all disks are used at first, evenly spread, so that about the same number of
	// disks passes a step of five percent in each minute.
	usedAtFirst = 0.5
)

// world is everything except the API server: nodes with disks, and the daemons that run on them.
type world struct {
	nodes    int
	machines []*machine

	mutex sync.Mutex
	// disks by node and id.
	disks map[string]map[string]*disk
	// daemons that run.
	daemons map[place]*daemon
	// files has the configuration of servers as the agents have written it: a place here has no component.
	files map[place]*spec.NodeFile
	// jobs that have ended: each has no node.
	jobs map[place]bool
	// away has the storage servers of the large filesystem that are restarting now, by node. awayMost and domainsMost are the most servers and
	// failure domains that were away at a time, and restarts counts the restarts.
	away                            map[string]bool
	awayMost, domainsMost, restarts int
	// grown is how much programs have written to each disk, until growing; they have been writing since then, unless it is zero.
	grown   int64
	growing time.Time
}

// place identifies a component of a filesystem on a node.
type place struct{ fileSystem, node, component string }

// machine is a node.
type machine struct {
	name, ip string
	labels   map[string]string
	disks    []*disk
	agent    *agent // nil where none runs
}

// disk is a disk of a node.
type disk struct {
	kernelName, id string
	// target (namespace/name), label and uuid of the filesystem on it; all are empty while it is blank.
	target, label, uuid string
	// mountPath is where it is mounted; empty when it is not. data is the directory that its server lists.
	mountPath, data string
	// dead is true for a disk that was removed.
	dead bool
	// first is the used space before programs write; over all disks it is spread evenly over the steps and within them.
	first int64
}

// daemon is a daemon, or a mount, that runs in a pod.
type daemon struct {
	pod     types.UID
	place   place
	machine *machine
	// targets are the names of the StorageTargets that it uses.
	targets []string
}

// newWorld makes the hardware: one node for the metadata, storage nodes, and client nodes; and a node for each of the small filesystems.
func newWorld(nodes int) *world {
	w := &world{nodes: nodes, disks: map[string]map[string]*disk{}, daemons: map[place]*daemon{}, files: map[place]*spec.NodeFile{},
		jobs: map[place]bool{}, away: map[string]bool{}}
	add := func(name string, disks int, labels ...string) *machine {
		number := len(w.machines)
		m := &machine{name: name, ip: fmt.Sprintf("10.%d.%d.%d", number>>16, number>>8&255, number&255), labels: map[string]string{}}
		for _, l := range labels {
			m.labels[l] = ""
		}
		w.disks[name] = map[string]*disk{}
		for i := range disks {
			// The fractional parts of the multiples of the golden ratio are spread as evenly as possible.
			_, part := math.Modf(float64(number*disksPerNode+i) * math.Phi)
			d := &disk{
				kernelName: fmt.Sprintf("sd%c", 'b'+i), id: fmt.Sprintf("wwn-0x5000c500%04x%04x", number, i),
				first: int64(part * usedAtFirst * float64(diskBytes)),
			}
			m.disks = append(m.disks, d)
			w.disks[name][d.id] = d
		}
		w.machines = append(w.machines, m)
		return m
	}
	add(metadataNode, 1, labelMetadata, labelAgent).ip = "127.0.0.1" // the probe of the filesystem listens there
	for i := range nodes {
		add(fmt.Sprintf("oss-%04d", i), disksPerNode, labelStorage, labelAgent).labels[labelRack] = fmt.Sprintf("rack-%d", i%racks)
	}
	for i := range nodes * clientsPerNode {
		add(fmt.Sprintf("client-%05d", i), 0, labelClient)
	}
	clients := w.machines[1+nodes:]
	for i := range smallFileSystems {
		name := smallName(i)
		add(name, 0, labelOf(name), labelAgent).ip = fmt.Sprintf("127.0.1.%d", i+1)
		clients[i%len(clients)].labels[labelClientOf(name)] = ""
	}
	return w
}

// targets is the expected number of StorageTargets.
func (w *world) targets() int { return w.nodes*disksPerNode + 1 }

// used is the used space of a disk. The caller holds the mutex.
func (w *world) used(d *disk) int64 {
	now := w.grown
	if !w.growing.IsZero() {
		now += int64(time.Since(w.growing).Seconds() * float64(diskRate))
	}
	return min(d.first+now, diskBytes)
}

// write starts the programs that write.
func (w *world) write() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.growing = time.Now()
}

// rest ends the programs that write.
func (w *world) rest() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.grown += int64(time.Since(w.growing).Seconds() * float64(diskRate))
	w.growing = time.Time{}
}

// breakDisk removes a disk from a node in the middle, and returns it.
func (w *world) breakDisk() (*machine, *disk) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	m := w.machines[1+w.nodes/2]
	d := m.disks[disksPerNode/2]
	d.dead, d.mountPath = true, ""
	return m, d
}

// start notes that a daemon runs.
func (w *world) start(d *daemon) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.daemons[d.place] = d
	if isStorage(d.place) {
		delete(w.away, d.place.node)
	}
}

// leave notes that the storage server of a node is restarting.
func (w *world) leave(node string) {
	w.away[node] = true
	w.restarts++
	domains := map[string]bool{}
	for name := range w.away {
		domains[w.machine(name).labels[labelRack]] = true
	}
	w.awayMost, w.domainsMost = max(w.awayMost, len(w.away)), max(w.domainsMost, len(domains))
}

// end notes that the daemon of a pod no longer runs.
func (w *world) end(at place, pod types.UID) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if d := w.daemons[at]; d != nil && d.pod == pod {
		delete(w.daemons, at)
		if isStorage(at) {
			w.leave(at.node)
		}
	}
}

// jobEnds notes that a job of a filesystem has done its work.
func (w *world) jobEnds(fileSystem, component string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.jobs[place{fileSystem: fileSystem, component: component}] = true
}

func (w *world) machine(name string) *machine {
	for _, m := range w.machines {
		if m.name == name {
			return m
		}
	}
	return nil
}
