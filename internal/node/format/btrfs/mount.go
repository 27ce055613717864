package btrfs

// WithoutReplay leaves the log tree as it is (btrfs(5), rescue).
func (Format) WithoutReplay() []string { return []string{"ro", "rescue=nologreplay"} }

// SpansDevices is true, although a target has one device: a disk of somebody else's can be the second one of theirs.
func (Format) SpansDevices() bool { return true }
