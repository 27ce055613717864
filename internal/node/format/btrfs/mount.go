package btrfs

// WithoutReplay leaves the log tree as it is (btrfs(5), rescue).
func (Format) WithoutReplay() []string { return []string{"ro", "rescue=nologreplay"} }

// SpansDevices is true, although a target has one device, because a foreign disk may be the second device of its filesystem.
func (Format) SpansDevices() bool { return true }
