package format

import "io"

// Guarded is a Format whose disks may say who has them mounted. It is all that one node can see of a mount on another one that reaches the
// same disk.
type Guarded interface {
	Format
	// MountedBy says who has the filesystem mounted for writing, or went down with it, and what to do then; empty when nobody has, and when
	// this one does not say. What is read must come from the disk, and not from the memory of this node.
	MountedBy(disk io.ReaderAt) (who string, err error)
	// NotLetGo says why a disk that two nodes reach does not show that whoever had it mounted has unmounted it, empty when it does. One that
	// shows nothing of that kind is none that two nodes may have.
	NotLetGo(disk io.ReaderAt) (why string, err error)
}
