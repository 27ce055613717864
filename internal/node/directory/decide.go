// Package directory proves that a directory belongs to a FileSystem before a daemon uses it, and initializes an empty one, once. Decide is
// a pure function that returns the action; Prove inspects, decides and acts.
package directory

import (
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"parallelfs.dev/operator/internal/node/spec"
)

// Action is an action on a directory.
type Action string

// The actions, ordered by how much they change the disk.
const (
	// Use the directory as it is.
	Use Action = "Use"
	// Adopt the data of a FileSystem of the same name that was deleted: the marker gets the new UID.
	Adopt Action = "Adopt"
	// Resume an interrupted initialization.
	Resume Action = "Resume"
	// Initialize an empty directory.
	Initialize Action = "Initialize"
	// Refuse to touch it.
	Refuse Action = "Refuse"
)

// Decision is an action, with a sentence for a person if it is Refuse.
type Decision struct {
	Action Action
	Reason string
}

// Facts holds the observations on the node.
type Facts struct {
	// Marker is nil if there is none.
	Marker *spec.Marker
	// Recorded is true if the ledger contains the directory's initialization on this node.
	Recorded bool
	// Strangers lists the names in Path other than the operator's own, Data and lost+found.
	Strangers []string
	// Data lists the names in Path/Data, without the operator's own temporary files.
	Data []string
	// DataGone is true if Path/Data does not exist.
	DataGone bool
	// DataElsewhere is true if Path/Data is on another device than Path. The marker proves nothing about another device.
	DataElsewhere bool
	// Contents holds the contents of the existing files of Initialize.Files, by name. A file that is not regular or far too long counts as
	// missing.
	Contents map[string]string
	// EmptyDirectories lists the directories of Initialize.Directories that exist and are empty.
	EmptyDirectories []string
	// Made is the SHA-256 of the file Initialize.Makes in hexadecimal, if the file exists and the marker has a hash.
	Made string
}

// Decide returns the action for the directory d of a component of the FileSystem owner. The variables in d are already replaced by their
// values. ledger is used only in messages.
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
		return refuse("%s names no owner of the directory; restore it, nothing is changed until then", filepath.Join(d.Path, spec.MarkerFile))
	}
	if m.Owner.Namespace != owner.Namespace || m.Owner.Name != owner.Name {
		return refuse("%s belongs to the FileSystem %s/%s (see %s); point %s/%s at another directory, or delete that FileSystem and move the directory away",
			d.Path, m.Owner.Namespace, m.Owner.Name, spec.MarkerFile, owner.Namespace, owner.Name)
	}
	if m.Component != component {
		return refuse("%s belongs to the %s of this FileSystem, not to its %s; give each its own directory", d.Path, m.Component, component)
	}
	switch m.State {
	case spec.MarkerPreparing:
		return decidePreparing(d, f)
	case spec.MarkerInitialized:
		return decideInitialized(d, owner, f)
	default:
		return refuse("%s has the unknown state %q; it was written by another version of the operator", filepath.Join(d.Path, spec.MarkerFile), m.State)
	}
}

func decideInitialized(d spec.Directory, owner spec.Owner, f Facts) Decision {
	m := f.Marker
	if f.DataGone {
		return refuse("%s is gone, though the directory was initialized: what was in it is lost, or not mounted. Bring it back; "+
			"or, to go on without its data, make it again, empty, and restart the pod", filepath.Join(d.Path, d.Data))
	}
	if d.Initialize != nil && !hasData(d, f.Data) {
		return refuse("the data in %s is lost: the directory was initialized, but none of %s is there; it is never initialized again. "+
			"Restore the data from a backup into it, then restart the pod",
			filepath.Join(d.Path, d.Data), strings.Join(d.Initialize.DataGlobs, ", "))
	}
	if reason := stranger(d, f); reason != "" {
		return Decision{Action: Refuse, Reason: reason}
	}
	if m.Owner.UID == owner.UID {
		return Decision{Action: Use}
	}
	// A marker without a UID was written by a person, who claims the data for this FileSystem.
	if d.Initialize != nil && !d.Initialize.Granted && !d.Initialize.Expected && m.Owner.UID != "" {
		return refuse("%s holds the data of an earlier FileSystem %s/%s (uid %s), but this one (uid %s) already has its own; with the wrong one, "+
			"files are lost. Find the right directory; or, if this is the right one, remove the uid from %s and restart the pod",
			d.Path, owner.Namespace, owner.Name, m.Owner.UID, owner.UID, filepath.Join(d.Path, spec.MarkerFile))
	}
	return Decision{Action: Adopt}
}

func decideUnmarked(d spec.Directory, owner spec.Owner, component, ledger string, f Facts) Decision {
	if foreign := foreigner(d, f); foreign != "" {
		return refuse("%s is not empty (%s) and has no %s that names its owner, so it is not touched; move its content away, or point the FileSystem elsewhere. "+
			"If it holds this FileSystem's own data, such as what was restored from a backup, write %s into that file and restart the pod",
			d.Path, foreign, spec.MarkerFile, claim(owner, component))
	}
	if f.Recorded {
		return refuse("%s is empty, but it was initialized on this node before: its disk is not mounted or was replaced. Mount it; "+
			"or, to go on without its data, remove %q from %s on this node and restart the pod", d.Path, d.Path, ledger)
	}
	if d.Initialize != nil && !d.Initialize.Granted {
		return refuse("%s is empty, but what belongs there was initialized before, as %s/%s has recorded, so it is not initialized again. "+
			"Mount the disk that holds the data, or restore the data from a backup", d.Path, owner.Namespace, owner.Name)
	}
	return Decision{Action: Initialize}
}

// decidePreparing handles a marker that was written before the first change, when no daemon has run since.
func decidePreparing(d spec.Directory, f Facts) Decision {
	marker := filepath.Join(d.Path, spec.MarkerFile)
	if f.Marker.Restored != "" {
		return refuse("what was lost is being made again in %s, by the plan %s that a person has approved; it is used when that is over", d.Path, f.Marker.Restored)
	}
	if d.Initialize != nil && !d.Initialize.Granted {
		return refuse("%s was being initialized when the node binary was stopped, but meanwhile it is recorded that it was initialized, so its data is elsewhere; "+
			"remove %s if nothing in the directory is needed, and look where the data is", d.Path, marker)
	}
	unknown := slices.DeleteFunc(slices.Clone(f.Data), func(name string) bool { return written(d.Initialize, f, name) })
	if len(unknown) > 0 {
		return refuse("%s was being initialized, but holds data that the initialization did not write (%s); move it away, or, if it is this FileSystem's, "+
			"set \"state\" to %q in %s", filepath.Join(d.Path, d.Data), some(unknown), spec.MarkerInitialized, marker)
	}
	if len(f.Strangers) > 0 {
		return refuse("%s was being initialized, but holds what the initialization did not write (%s); move it away", d.Path, some(f.Strangers))
	}
	return Decision{Action: Resume}
}

// written is true if the named entry in the data is exactly what the initialization writes.
func written(i *spec.Initialize, f Facts, name string) bool {
	if i == nil {
		return false
	}
	if name == i.Makes && len(i.Command) > 0 {
		return f.Marker.Made != "" && f.Made == f.Marker.Made
	}
	for _, file := range i.Files {
		if content, there := f.Contents[name]; there && name == file.Name {
			return content == file.Content
		}
	}
	return slices.Contains(i.Directories, name) && slices.Contains(f.EmptyDirectories, name)
}

// foreigner names the content of a directory that should be empty.
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

// stranger explains by the identity files why an initialized directory is another one than expected.
func stranger(d spec.Directory, f Facts) string {
	if d.Initialize == nil {
		return ""
	}
	var says, missing []string
	differs := false
	for _, file := range d.Initialize.Files {
		if !file.Identity {
			continue
		}
		content, there := f.Contents[file.Name]
		if !there {
			missing = append(missing, file.Name)
			continue
		}
		says = append(says, file.Name+" "+text(content))
		differs = differs || strings.TrimSpace(content) != strings.TrimSpace(file.Content)
	}
	data := filepath.Join(d.Path, d.Data)
	switch {
	case len(missing) > 0:
		return fmt.Sprintf("%s has no identity: %s can't be read there, though the directory was initialized, and is to say %s. "+
			"Restore it from a backup, and nothing else, if you are sure that the data is that; then restart the pod",
			data, strings.Join(missing, ", "), identity(d.Initialize))
	case differs:
		return fmt.Sprintf("%s is another one's: it holds %s, and this is to be %s. Bring the right disk or directory back; or, if this data is to be "+
			"used, give the FileSystem the ids that the data has (adopt in its spec), which is possible before it has given others",
			data, strings.Join(says, ", "), identity(d.Initialize))
	}
	return ""
}

// identity returns the expected content of the identity files.
func identity(i *spec.Initialize) string {
	var says []string
	for _, file := range i.Files {
		if file.Identity {
			says = append(says, file.Name+" "+text(file.Content))
		}
	}
	return strings.Join(says, ", ")
}

// text formats a content for a sentence. Anything but a short plain word is quoted.
func text(content string) string {
	const most = 64
	content = strings.TrimSpace(content)
	if len(content) > most {
		content = content[:most] + "..."
	}
	if strings.ContainsFunc(content, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.", r)
	}) || content == "" {
		return strconv.Quote(content)
	}
	return content
}

func hasData(d spec.Directory, names []string) bool {
	for _, name := range names {
		for _, glob := range d.Initialize.DataGlobs {
			if ok, err := path.Match(glob, name); err == nil && ok {
				return true
			}
		}
	}
	return false
}

// claim returns the marker with which a person claims a directory for this FileSystem.
func claim(owner spec.Owner, component string) string {
	text, err := json.Marshal(map[string]any{
		"version":   spec.MarkerVersion,
		"owner":     map[string]string{"namespace": owner.Namespace, "name": owner.Name},
		"component": component, "state": spec.MarkerInitialized,
	})
	if err != nil {
		panic(err) // it contains only strings
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
