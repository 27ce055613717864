package wire

import (
	"fmt"
	"net"
	"slices"
	"strings"
)

// Interface is a network interface that a server publishes.
type Interface struct {
	Name    string `json:"name"`
	Address string `json:"address"`
}

// Node is a server as it registers itself.
type Node struct {
	// Type is management, meta, storage or client.
	Type string `json:"type"`
	ID   int    `json:"id"`
	// Alias is the text id: the first line of nodeID, or the machine's name.
	Alias      string      `json:"alias"`
	TCP        int         `json:"tcp"`
	UDP        int         `json:"udp"`
	Interfaces []Interface `json:"interfaces"`
	// Token proves that a directory is the one that registered first (8.3); empty in earlier versions.
	Token string `json:"token,omitempty"`
}

// Target is a storage target as its server registers it.
type Target struct {
	ID   int `json:"id"`
	Node int `json:"node"`
	// Pool is the content of storagePoolID (7), or 0 if there is none.
	Pool  int    `json:"pool,omitempty"`
	Token string `json:"token,omitempty"`
}

// Space is the capacity of a target, in bytes and inodes.
type Space struct {
	Total      uint64 `json:"total"`
	Free       uint64 `json:"free"`
	Inodes     uint64 `json:"inodes"`
	FreeInodes uint64 `json:"freeInodes"`
}

// Report is a server's periodic report about its targets. Type is meta or storage; a metadata server's target is its node.
type Report struct {
	Type    string        `json:"type"`
	Node    int           `json:"node"`
	Targets map[int]Space `json:"targets"`
	// Unclean lists the targets that were not stopped cleanly before this start; only the first report has it.
	Unclean []int `json:"unclean,omitempty"`
}

// Resync is a request about the resync of a target: each operation uses the fields that it needs.
type Resync struct {
	Target    int    `json:"target"`
	Timestamp int64  `json:"timestamp,omitempty"`
	State     string `json:"state,omitempty"`
	Path      string `json:"path,omitempty"`
	Content   []byte `json:"content,omitempty"`
}

// ResyncStats are the statistics of the last resync from a target, in the words of the servers (BuddyResyncJobStatistics.h, 7.4.6).
type ResyncStats struct {
	// State is 0 to 5: not started, running, a success, interrupted, a failure, with errors.
	State                       int   `json:"state"`
	Start                       int64 `json:"start"`
	End                         int64 `json:"end"`
	Discovered, Synced, Errored int   `json:",omitempty"`
}

// Pattern is the layout of new files in a directory.
type Pattern struct {
	Mirrored  bool   `json:"mirrored,omitempty"`
	ChunkSize uint64 `json:"chunkSize"`
	Targets   int    `json:"targets"`
	Pool      int    `json:"pool"`
}

// Directory is a directory of the filesystem, stored by the metadata server that owns it.
type Directory struct {
	EntryID  string  `json:"entryID"`
	ParentID string  `json:"parentID"`
	Owner    int     `json:"owner"`
	Pattern  Pattern `json:"pattern"`
	// Mirrored is true if the metadata is on the servers of a buddy group.
	Mirrored bool `json:"mirrored,omitempty"`
	// Children holds its subdirectories with their owners.
	Children map[string]Child `json:"children,omitempty"`
}

// Child is a subdirectory: its entry id, and the metadata server that owns it.
type Child struct {
	EntryID string `json:"entryID"`
	Owner   int    `json:"owner"`
}

// EntryRequest is a request of beegfs-ctl or beegfs to a metadata server about one directory.
type EntryRequest struct {
	EntryID string   `json:"entryID"`
	Name    string   `json:"name,omitempty"`
	Child   Child    `json:"child,omitzero"`
	Pattern *Pattern `json:"pattern,omitempty"`
	Flat    bool     `json:"flat,omitempty"`
}

// OpenFiles is the number of files that a client has open. A client reports to each server separately.
type OpenFiles struct {
	Client int `json:"client"`
	Files  int `json:"files"`
}

// Sessions formats the open files like a server of a kind (GenericDebugMsgEx.cpp of storage and meta, 7.4.6 and 8.3.1).
func Sessions(kind string, open []OpenFiles) string {
	var out strings.Builder
	if kind == "meta" {
		fmt.Fprintf(&out, "Found %d non-mirrored sessions and 0 mirrored sessions.\n\nNon-mirrored sessions:\n", len(open))
	} else {
		fmt.Fprintf(&out, "Found %d sessions.\n\n", len(open))
	}
	files := 0
	for _, o := range open {
		files += o.Files
		if o.Files > 0 {
			fmt.Fprintf(&out, "%d: %d\n", o.Client, o.Files)
		}
	}
	if kind == "meta" {
		out.WriteString("Mirrored sessions:\n")
	}
	fmt.Fprintf(&out, "\nFinal results: %d open files in %d checked sessions", files, len(open))
	return out.String()
}

// Usable returns the interfaces that the filters allow, best first: every one that is up, has an IPv4 address, and is neither the loopback
// nor link-local. A filter of 7 is only a name; one of 8 is "[!] name|* address|* 4|6|*".
func Usable(major int, filters []string) []Interface {
	all, err := net.Interfaces()
	if err != nil {
		return nil
	}
	found := map[int][]Interface{}
	for _, card := range all {
		if card.Flags&net.FlagUp == 0 || card.Flags&net.FlagLoopback != 0 {
			continue
		}
		addresses, err := card.Addrs()
		if err != nil {
			continue
		}
		for _, address := range addresses {
			network, is := address.(*net.IPNet)
			if !is || network.IP.IsLinkLocalUnicast() || network.IP.To4() == nil {
				continue
			}
			candidate := Interface{Name: card.Name, Address: network.IP.String()}
			if rank, allowed := allows(major, filters, candidate); allowed {
				found[rank] = append(found[rank], candidate)
			}
		}
	}
	var usable []Interface
	for rank := range max(len(filters), 1) {
		usable = append(usable, found[rank]...)
	}
	return usable
}

func allows(major int, filters []string, candidate Interface) (rank int, allowed bool) {
	if len(filters) == 0 {
		return 0, true
	}
	if major == 7 {
		rank = slices.Index(filters, candidate.Name)
		return rank, rank >= 0
	}
	for rank, filter := range filters {
		words := strings.Fields(filter)
		deny := len(words) > 0 && words[0] == "!"
		if deny {
			words = words[1:]
		}
		matches := len(words) > 0
		for place, word := range words {
			switch {
			case word == "*":
			case place == 0 && word != candidate.Name, place == 1 && word != candidate.Address, place == 2 && word != "4":
				matches = false
			}
		}
		if matches {
			return rank, !deny
		}
	}
	return 0, false
}
