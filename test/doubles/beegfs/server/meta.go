package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"parallelfs.dev/operator/test/doubles/beegfs/disk"
	"parallelfs.dev/operator/test/doubles/beegfs/option"
	"parallelfs.dev/operator/test/doubles/beegfs/program"
	"parallelfs.dev/operator/test/doubles/beegfs/wire"
)

// RunMeta runs beegfs-meta and returns its exit code.
func RunMeta(ctx context.Context, arguments []string, output, errors io.Writer) int {
	_, major := program.Version()
	return role{
		kind: "meta", title: "Metadata Node", file: "beegfs-meta.conf", port: "Meta", number: 8005, table: option.Meta(major),
		directories: metaDirectory, prepare: prepareMeta,
		lockFailure: func(directory string) string { return "Unable to lock working directory: " + directory },
	}.run(ctx, arguments, output, errors)
}

func metaDirectory(values option.Values) ([]string, error) {
	directory := values["storeMetaDirectory"]
	if directory == "" {
		return nil, &option.Error{Text: "No metadata storage directory specified"}
	}
	if !filepath.IsAbs(directory) {
		return nil, &option.Error{Text: "Path to storage directory must be absolute: " + directory}
	}
	if !disk.Prepared(directory) {
		if !values.Bool("storeAllowFirstRunInit", true) {
			return nil, &option.Error{Text: "Storage directory not initialized and initialization has been disabled: " + directory}
		}
		return nil, &option.Error{Text: "This double prepares no directories: " + directory}
	}
	return []string{filepath.Clean(directory)}, nil
}

// prepareMeta creates the directories for dentries and inodes, and opens the namespace.
func prepareMeta(d *daemon) error {
	directory := d.directories[0]
	format, err := disk.Format(directory, 3, 4)
	if err != nil {
		return err
	}
	if _, given := format["xattr"]; !given {
		return &option.Error{Text: "Property missing from storage format file: xattr (dir: " + directory + ")"}
	}
	if option.Values(format).Bool("xattr", true) != d.values.Bool("storeUseExtendedAttribs", true) {
		return &option.Error{Text: "Mismatch of extended attributes settings in storage format file and daemon config file."}
	}
	for _, name := range []string{"dentries", "inodes", "buddymir/dentries", "buddymir/inodes"} {
		if err := os.MkdirAll(filepath.Join(directory, name), 0o777); err != nil {
			return &option.Error{Text: "Unable to create directory: " + filepath.Join(directory, name)}
		}
	}
	if d.major >= 8 {
		if d.node.Token, err = disk.Token(directory); err != nil {
			return err
		}
	}
	d.space[d.node.ID] = directory
	d.namespace = &namespace{
		file: filepath.Join(directory, "inodes", "directories.json"), node: d.node.ID,
		pattern: wire.Pattern{
			ChunkSize: d.values.Bytes("tuneDefaultChunkSize", "512k"), Targets: d.values.Int("tuneDefaultNumStripeTargets", 4), Pool: 1,
		},
	}
	return disk.Load(d.namespace.file, &d.namespace.directories)
}

// namespace holds the directories that a metadata server owns, by their entry ids. The root directory is "root".
type namespace struct {
	mutex       sync.Mutex
	file        string
	node        int
	pattern     wire.Pattern
	directories map[string]*wire.Directory
	made        int
}

// ErrNoEntry and ErrExists are answers of the metadata servers.
var (
	ErrNoEntry = errors.New("Path does not exist")  //nolint:staticcheck // the server's own text
	ErrExists  = errors.New("Entry exists already") //nolint:staticcheck // the server's own text
)

// answer returns a server's response to beegfs-ctl, to beegfs and to other metadata servers.
func (d *daemon) answer(op string, body json.RawMessage) (any, error) {
	if op == "ping" {
		return d.node.ID, nil
	}
	if op == "open-files" {
		return nil, d.open.tell(body)
	}
	if op == "list-open-files" {
		return d.open.list(), nil
	}
	if isResync(op) {
		return d.answerResync(op, body)
	}
	if d.namespace == nil {
		return nil, fmt.Errorf("unknown question %q", op)
	}
	var request wire.EntryRequest
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, err
	}
	return d.namespace.answer(op, request)
}

func (n *namespace) answer(op string, request wire.EntryRequest) (any, error) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.directories == nil {
		n.directories = map[string]*wire.Directory{}
	}
	if request.EntryID == "root" && n.directories["root"] == nil {
		// The root directory is created on the server that the management service reports as its owner.
		n.directories["root"] = &wire.Directory{EntryID: "root", Owner: n.node, Pattern: n.pattern}
	}
	directory := n.directories[request.EntryID]
	switch {
	case op == "make-directory":
		n.made++
		id := fmt.Sprintf("%X-%08X-%X", len(n.directories), os.Getpid()+n.made<<20, n.node)
		pattern := n.pattern
		if request.Pattern != nil {
			pattern = *request.Pattern
		}
		made := &wire.Directory{EntryID: id, ParentID: request.EntryID, Owner: n.node, Pattern: pattern, Mirrored: !request.Flat}
		n.directories[id] = made
		return made, disk.Save(n.file, n.directories)
	case directory == nil:
		return nil, ErrNoEntry
	case op == "link":
		if _, there := directory.Children[request.Name]; there {
			return nil, ErrExists
		}
		if directory.Children == nil {
			directory.Children = map[string]wire.Child{}
		}
		directory.Children[request.Name] = request.Child
		return directory, disk.Save(n.file, n.directories)
	case op == "look":
		return directory, nil
	case op == "set-pattern" && request.Pattern != nil:
		directory.Pattern = *request.Pattern
		return directory, disk.Save(n.file, n.directories)
	case op == "mirror":
		directory.Mirrored = true
		return directory, disk.Save(n.file, n.directories)
	}
	return nil, fmt.Errorf("unknown question %q", op)
}
