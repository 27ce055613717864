package store

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// The questions to the database of beegfs-mgmtd 8 (mgmtd/src/db/schema of 8.0.1 to 8.3.1): the tables that the service reads when it
// starts.
const (
	askVersion = "version of its schema"
	askID      = "UUID of the filesystem"
	askServers = "servers"
	askTargets = "targets"
	askPools   = "storage pools"
	askMirrors = "buddy groups"
	askRoot    = "owner of the root directory"
)

// Queries are these questions in SQL.
var Queries = map[string]string{
	askVersion: "PRAGMA user_version",
	askID:      "SELECT value FROM config WHERE key = 'fs_uuid'",
	askServers: "SELECT node_type, node_id FROM nodes JOIN entities ON uid = node_uid ORDER BY node_type, node_id",
	askTargets: "SELECT node_type, target_id, COALESCE(node_id, 0), COALESCE(pool_id, 0) FROM targets JOIN entities ON uid = target_uid ORDER BY node_type, target_id",
	askPools:   "SELECT pool_id FROM pools JOIN entities ON uid = pool_uid WHERE node_type = 2 ORDER BY pool_id",
	askMirrors: "SELECT node_type, group_id, p_target_id, s_target_id FROM buddy_groups JOIN entities ON uid = group_uid ORDER BY node_type, group_id",
	askRoot:    "SELECT COALESCE(target_id, 0), COALESCE(group_id, 0) FROM root_inode",
}

// The types of nodes (the table node_types), and the pool that always exists.
const (
	typeMeta       = 1
	typeStorage    = 2
	typeManagement = 4
	defaultPool    = 1
)

// uuid is how the service writes the UUID of a filesystem.
var uuid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// ReadDatabase reads the answers of the database of a service of 8 to Queries.
func ReadDatabase(rows map[string][][]string) (Content, error) {
	c := Content{
		Targets: map[int32]int32{}, Pools: map[int32][]int32{}, StorageMirrors: map[int32]Pair{}, MetadataMirrors: map[int32]Pair{},
	}
	var errs []error
	numbers := func(what string, columns int, each func(n []int32)) {
		for _, row := range rows[what] {
			if n, err := numbersOf(row, columns); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", what, err))
			} else {
				each(n)
			}
		}
	}
	version, management := int32(0), false
	numbers(askVersion, 1, func(n []int32) { version = n[0] })
	if version == 0 {
		errs = append(errs, errors.New("its schema has no version: no service has made it"))
	}
	if id := rows[askID]; len(id) == 1 && len(id[0]) == 1 && uuid.MatchString(strings.ToLower(id[0][0])) {
		c.ID = strings.ReplaceAll(strings.ToLower(id[0][0]), "-", "")
	} else {
		errs = append(errs, errors.New("it has no UUID of the filesystem"))
	}
	numbers(askServers, 2, func(n []int32) {
		switch n[0] {
		case typeMeta:
			c.Metadata = append(c.Metadata, n[1])
		case typeStorage:
			c.Storage = append(c.Storage, n[1])
		case typeManagement:
			management = true
		}
	})
	if !management {
		errs = append(errs, errors.New("it lacks the management service itself"))
	}
	numbers(askPools, 1, func(n []int32) { c.Pools[n[0]] = nil })
	if _, there := c.Pools[defaultPool]; !there {
		errs = append(errs, errors.New("it lacks the default storage pool"))
	}
	numbers(askTargets, 4, func(n []int32) {
		if n[0] == typeStorage {
			c.Targets[n[1]] = n[2]
			c.Pools[n[3]] = append(c.Pools[n[3]], n[1])
		}
	})
	numbers(askMirrors, 4, func(n []int32) {
		groups := c.StorageMirrors
		if n[0] == typeMeta {
			groups = c.MetadataMirrors
		}
		groups[n[1]] = Pair{n[2], n[3]}
	})
	numbers(askRoot, 2, func(n []int32) {
		c.Root, c.RootMirrored = n[0], n[0] == 0
		if c.RootMirrored {
			c.Root = n[1]
		}
	})
	return c, errors.Join(errs...)
}

// numbersOf reads a row of so many numbers.
func numbersOf(row []string, columns int) ([]int32, error) {
	if len(row) != columns {
		return nil, fmt.Errorf("%d columns, and not %d", len(row), columns)
	}
	out := make([]int32, columns)
	for i, text := range row {
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return nil, fmt.Errorf("%q is no number", text)
		}
		out[i] = int32(n)
	}
	return out, nil
}
