package mgmt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"parallelfs.dev/operator/test/doubles/beegfs/disk"
	"parallelfs.dev/operator/test/doubles/beegfs/wire"
)

// memoryFile is the double's own file with its whole state. It starts only from this file; the files of 7.4.6 are for readers of a store.
const memoryFile = "beegfs-double.json"

// writeStore writes the service's state to files with the names and in the format of 7.4.6 (mgmtd/app/config/Config.h, and saveToFile of
// each part): text with hexadecimal numbers, and the form of its network messages.
func writeStore(directory string, content stored) error {
	var errs []error
	for name, text := range map[string][]byte{
		disk.FormatFile:      []byte("# This file was auto-generated. Do not modify it!\nversion=5\nnodeStates=1\ntargetStates=1\n"),
		"meta.nodes":         nodesFile(content, "meta"),
		"storage.nodes":      nodesFile(content, "storage"),
		"clients.nodes":      {0, 0, 0, 0, 0, 0, 0, 0},
		"targets":            targetsFile(content),
		"targetNumIDs":       reservedFile(content),
		"storagePools":       poolsFile(content),
		"storagebuddygroups": groupsFile(content, "storage"),
		"metabuddygroups":    groupsFile(content, "meta"),
		"targetStates":       statesFile(content, "storage"),
		"nodeStates":         statesFile(content, "meta"),
	} {
		errs = append(errs, disk.Replace(filepath.Join(directory, name), text))
	}
	return errors.Join(errs...)
}

// form writes numbers, little-endian.
type form struct{ bytes.Buffer }

func (f *form) put(values ...any) {
	for _, v := range values {
		_ = binary.Write(f, binary.LittleEndian, v) // a buffer accepts everything
	}
}

func (f *form) text(text string) {
	f.put(uint32(len(text)), []byte(text), byte(0))
}

// sized writes a list of 16-bit numbers with its size in front.
func (f *form) sized(ids ...int) {
	const head, each = 8, 2
	f.put(uint32(head+each*len(ids)), uint32(len(ids)))
	for _, id := range ids {
		f.put(uint16(id))
	}
}

// capacityPools writes Normal, Low and Emergency as empty lists: the service fills them at its start.
func (f *form) capacityPools() {
	const pools, head, empty = 3, 8, 8
	f.put(uint32(head+pools*empty), uint32(pools))
	for range pools {
		f.sized()
	}
}

func nodesFile(content stored, kind string) []byte {
	f := &form{}
	root, mirrored := 0, byte(0)
	if kind == "meta" {
		root = content.Root
		if content.RootMirrored {
			mirrored = 1
		}
	}
	nodes := slices.DeleteFunc(slices.Clone(content.Nodes), func(n wire.NodeView) bool { return n.Type != kind })
	f.put(uint32(0), uint32(root), mirrored, uint32(len(nodes)))
	for i := range nodes {
		n := &nodes[i]
		f.text(n.Alias)
		f.put(uint32(len(n.Interfaces)))
		for _, card := range n.Interfaces {
			var name [16]byte
			copy(name[:len(name)-1], card.Name)
			address, _ := netip.ParseAddr(card.Address) // it is an address of this machine
			f.put(address.As4(), name, [4]byte{})
		}
		f.put(uint32(n.ID), uint16(n.UDP), uint16(n.TCP), map[string]byte{"meta": 1, "storage": 2}[kind])
	}
	return f.Bytes()
}

func targetsFile(content stored) []byte {
	var out strings.Builder
	for i := range content.Targets {
		if t := &content.Targets[i]; t.Type == "storage" {
			fmt.Fprintf(&out, "%X=%X\n", t.ID, t.Node)
		}
	}
	return []byte(out.String())
}

func reservedFile(content stored) []byte {
	var out strings.Builder
	for id, text := range content.Reserved {
		fmt.Fprintf(&out, "%s=%X\n", strings.ReplaceAll(text, "=", "-"), id)
	}
	return []byte(out.String())
}

func groupsFile(content stored, kind string) []byte {
	var out strings.Builder
	for _, g := range content.Groups {
		if g.Type == kind {
			fmt.Fprintf(&out, "%X=%X,%X\n", g.ID, g.Primary, g.Secondary)
		}
	}
	return []byte(out.String())
}

func poolsFile(content stored) []byte {
	f := &form{}
	f.put(uint64(len(content.Pools)))
	for _, p := range content.Pools {
		f.put(uint16(p.ID))
		f.text(p.Name)
		var targets, groups []int
		for i := range content.Targets {
			if t := &content.Targets[i]; t.Type == "storage" && t.Pool == p.ID {
				targets = append(targets, t.ID)
			}
		}
		for _, g := range content.Groups {
			if g.Type == "storage" && g.Pool == p.ID {
				groups = append(groups, g.ID)
			}
		}
		f.sized(targets...)
		f.sized(groups...)
		f.capacityPools()
		const grouped, head, empty = 3, 8, 4
		f.put(uint32(head+grouped*empty), uint32(grouped), uint32(0), uint32(0), uint32(0))
		f.put(uint32(0)) // the server of each of them
		f.capacityPools()
	}
	return f.Bytes()
}

func statesFile(content stored, kind string) []byte {
	f := &form{}
	targets := slices.DeleteFunc(slices.Clone(content.Targets), func(t wire.TargetView) bool { return t.Type != kind })
	f.put(uint32(len(targets)))
	for i := range targets {
		consistency := map[string]byte{wire.Good: 0, wire.NeedsResync: 1, wire.Bad: 2}[targets[i].Consistency]
		f.put(uint16(targets[i].ID), byte(1), consistency, uint64(0), uint64(0))
	}
	return f.Bytes()
}
