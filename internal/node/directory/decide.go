// Package directory proves that a directory belongs to a FileSystem before a daemon uses it, and makes an empty one
// usable, once. Decide is pure and says what may be done; Prove looks, decides and does it.
package directory

import (
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"parallelfs.dev/operator/internal/node/durable"
	"parallelfs.dev/operator/internal/node/spec"
)

// Action is what may be done with a directory.
type Action string

// The actions, from least to most change of the disk.
const (
	// Use the directory as it is.
	Use Action = "Use"
	// Adopt the data of a FileSystem of the same name that was deleted: the marker gets the new UID.
	Adopt Action = "Adopt"
	// Resume an initialisation that was cut off.
	Resume Action = "Resume"
	// Initialise an empty directory.
	Initialise Action = "Initialise"
	// Refuse to touch it.
	Refuse Action = "Refuse"
)

// Decision is an action, with a sentence for a person when it is Refuse.
type Decision struct {
	Action Action
	Reason string
}

// Facts are what was found on the node.
type Facts struct {
	// Marker is nil when there is none.
	Marker *spec.Marker
	// Recorded is true when the ledger says that the directory was initialised on this node.
	Recorded bool
	// Strangers are the names in Path that are neither the operator's own, nor Data, nor lost+found.
	Strangers []string
	// Data are the names in Path/Data, without the operator's own temporary files.
	Data []string
	// DataGone is true when Path/Data is not there.
	DataGone bool
	// DataElsewhere is true when Path/Data lies on another device than Path: the marker would prove nothing about it.
	DataElsewhere bool
	// Content is that of Initialise.File, nil when the file is not there or is longer than Initialise.Content.
	Content *string
}

// Decide says what may be done with the directory d of a component of the FileSystem owner. ledger is only named in sentences.
func Decide(d spec.Directory, owner spec.Owner, component, ledger string, f Facts) Decision {
	if f.DataElsewhere {
		return refuse("%s is a disk of its own: while that is not mounted, data would go to the disk below, where nothing could tell the difference. "+
			"Mount the disk on %s", filepath.Join(d.Path, d.Data), d.Path)
	}
	if f.Marker == nil {
		return decideUnmarked(d, owner, component, ledger, f)
	}
	m := f.Marker
	if m.Owner.Namespace == "" || m.Owner.Name == "" {
		return refuse("%s does not say whose the directory is; restore it, nothing is changed until then", filepath.Join(d.Path, spec.MarkerFile))
	}
	if m.Owner.Namespace != owner.Namespace || m.Owner.Name != owner.Name {
		return refuse("%s belongs to the FileSystem %s/%s (%s says so); point %s/%s at another directory, or delete that FileSystem and move the directory away",
			d.Path, m.Owner.Namespace, m.Owner.Name, spec.MarkerFile, owner.Namespace, owner.Name)
	}
	if m.Component != component {
		return refuse("%s belongs to the %s of this FileSystem, not to its %s; give each its own directory", d.Path, m.Component, component)
	}
	switch m.State {
	case spec.MarkerPreparing:
		return decidePreparing(d, f)
	case spec.MarkerInitialised:
		return decideInitialised(d, owner, f)
	default:
		return refuse("%s has the unknown state %q; it was written by another version of the operator", filepath.Join(d.Path, spec.MarkerFile), m.State)
	}
}

func decideInitialised(d spec.Directory, owner spec.Owner, f Facts) Decision {
	m := f.Marker
	if f.DataGone {
		return refuse("%s is gone, though the directory was initialised: what was in it is lost, or not mounted. Bring it back; "+
			"or, to give up what was in it, make it again, empty, and restart the pod", filepath.Join(d.Path, d.Data))
	}
	if d.Initialise != nil && !hasData(d, f.Data) {
		return refuse("the metadata in %s is lost: the directory was initialised, but none of %s is there; it is never initialised again. "+
			"Restore the metadata from a metalogger or a backup into it, then restart the pod",
			filepath.Join(d.Path, d.Data), strings.Join(d.Initialise.DataGlobs, ", "))
	}
	if m.Owner.UID == owner.UID {
		return Decision{Action: Use}
	}
	// A marker without a UID was written by a person, who says that the data is this FileSystem's.
	if d.Initialise != nil && !d.Initialise.Granted && m.Owner.UID != "" {
		return refuse("%s holds the metadata of an earlier FileSystem %s/%s (uid %s), but this one (uid %s) already has its own; with the wrong metadata, "+
			"data is deleted. Find the right directory; or, if this is the right one, remove the uid from %s and restart the pod",
			d.Path, owner.Namespace, owner.Name, m.Owner.UID, owner.UID, filepath.Join(d.Path, spec.MarkerFile))
	}
	return Decision{Action: Adopt}
}

func decideUnmarked(d spec.Directory, owner spec.Owner, component, ledger string, f Facts) Decision {
	if foreign := foreigner(d, f); foreign != "" {
		return refuse("%s is not empty (%s) and has no %s that says whose it is, so it is not touched; move its content away, or point the FileSystem elsewhere. "+
			"If it holds this FileSystem's own data, such as metadata restored from a metalogger, write %s into that file and restart the pod",
			d.Path, foreign, spec.MarkerFile, claim(owner, component))
	}
	if f.Recorded {
		return refuse("%s is empty, but it was initialised on this node before: its disk is not mounted or was replaced. Mount it; "+
			"or, to give up what was on it, remove %q from %s on this node and restart the pod", d.Path, d.Path, ledger)
	}
	if d.Initialise != nil && !d.Initialise.Granted {
		return refuse("%s is empty, but the metadata of %s/%s was initialised before, so it is not initialised again. "+
			"Mount the disk that holds the metadata, or restore it from a metalogger", d.Path, owner.Namespace, owner.Name)
	}
	return Decision{Action: Initialise}
}

// decidePreparing is for a marker that was written before the first change, and no daemon has run since.
func decidePreparing(d spec.Directory, f Facts) Decision {
	untouched := len(f.Data) == 0
	if i := d.Initialise; i != nil {
		if !i.Granted {
			return refuse("%s was being initialised when the node binary was stopped, but meanwhile the FileSystem has its metadata elsewhere; "+
				"remove %s if nothing in the directory is needed, and look where the metadata is",
				d.Path, filepath.Join(d.Path, spec.MarkerFile))
		}
		written := len(i.Files) == 1 && len(f.Data) == 1 && f.Data[0] == i.Files[0].Name && f.Content != nil && *f.Content == i.Files[0].Content
		untouched = untouched || written
	}
	if !untouched {
		return refuse("%s was being initialised, but holds data that the initialisation did not write (%s); move it away, or, if it is this FileSystem's, "+
			"set \"state\" to %q in %s", filepath.Join(d.Path, d.Data), some(f.Data), spec.MarkerInitialised, filepath.Join(d.Path, spec.MarkerFile))
	}
	return Decision{Action: Resume}
}

// foreigner names what is in a directory that should be empty.
func foreigner(d spec.Directory, f Facts) string {
	if len(f.Data) > 0 {
		names := make([]string, len(f.Data))
		for i, name := range f.Data {
			names[i] = path.Join(d.Data, name)
		}
		return some(names)
	}
	return some(f.Strangers)
}

func hasData(d spec.Directory, names []string) bool {
	for _, name := range names {
		for _, glob := range d.Initialise.DataGlobs {
			if ok, err := path.Match(glob, name); err == nil && ok {
				return true
			}
		}
	}
	return false
}

// claim is the marker that a person writes to say that a directory is this FileSystem's.
func claim(owner spec.Owner, component string) string {
	text, err := json.Marshal(map[string]any{
		"owner":     map[string]string{"namespace": owner.Namespace, "name": owner.Name},
		"component": component, "state": spec.MarkerInitialised,
	})
	if err != nil {
		panic(err) // strings only
	}
	return string(text)
}

func some(names []string) string {
	const most = 3
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

func refuse(format string, args ...any) Decision {
	return Decision{Action: Refuse, Reason: fmt.Sprintf(format, args...)}
}

// understand refuses a spec that can't be meant so, before anything is looked at.
func understand(d spec.Directory, ledger string) error {
	absolute := func(name string) bool { return filepath.IsAbs(name) && filepath.Clean(name) == name && name != "/" }
	plain := func(name string) bool {
		return name != "" && name != "." && name != ".." && !strings.Contains(name, "/") && !durable.IsTemporary(name)
	}
	switch {
	case !absolute(d.Path):
		return fmt.Errorf("the directory %q is not an absolute path without . and .. below /", d.Path)
	case !absolute(ledger), strings.HasPrefix(ledger, d.Path+"/"):
		return fmt.Errorf("the ledger %q must be an absolute path outside of the directory %s, or it is lost together with it", ledger, d.Path)
	case !plain(d.Data), d.Data == spec.MarkerFile, d.Data == "lost+found":
		return fmt.Errorf("%q can't be the name of the data's directory in %s", d.Data, d.Path)
	case d.Initialise == nil:
		return nil
	case len(d.Initialise.Files) == 0 || !plain(d.Initialise.Files[0].Name):
		return fmt.Errorf("%v can't be the files that initialise %s", d.Initialise.Files, d.Path)
	case !hasData(d, []string{d.Initialise.Files[0].Name}):
		return fmt.Errorf("none of the patterns %q of metadata matches %q, the file that initialises %s", d.Initialise.DataGlobs, d.Initialise.Files[0].Name, d.Path)
	}
	return nil
}
